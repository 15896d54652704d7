"""Where Anthropic's cache breakpoints stand: at the ends of what the next request will begin with
as well."""

from __future__ import annotations

from collections.abc import Iterator

from .blocks import RoleTurn, marked


def place(
    system: list[RoleTurn], turns: list[RoleTurn], summaries: int, limit: int, *, long: bool
) -> None:
    """Marks at most `limit` blocks: the end of the system prompt, the end of the summaries (the
    first `summaries` blocks of the first turn), the newest block, and the end of the user's turn
    before that, where the request before had its own. `system` holds one turn at most, of the
    system's blocks.

    The newest come first where there is room for few: a breakpoint looks back over 20 blocks only.
    `long`: what only a compaction changes is kept for an hour; the newest blocks move on with every
    request, and writing them for so long would be paid for each time.
    """
    wanted = [
        (turns, len(turns) - 1, None, False),
        (system, 0, None, long),
        (turns, 0, summaries, long),
    ]
    users = [at for at in range(len(turns) - 2, -1, -1) if turns[at].role == "user"][:1]
    wanted += [(turns, at, None, False) for at in users]
    places: dict[tuple[int, int, int], tuple[list[RoleTurn], bool]] = {}
    for where, at, count, stays in wanted:
        for block in _last(where[at], count) if where else ():
            places.setdefault((id(where), at, block), (where, stays))
    for (_, at, block), (where, stays) in list(places.items())[:limit]:
        where[at] = marked(where[at], block, long=stays)


def _last(turn: RoleTurn, count: int | None) -> Iterator[int]:
    """Where the last block stands that takes a mark, of all or of the first `count`."""
    for at in range(len(turn.blocks[:count]) - 1, -1, -1):
        if turn.blocks[at].markable:
            yield at
            return
