"""What is shown of all that stands before the newest raw history: summaries, and what lies
uncovered between them.

It has room of its own, in which the newest stands longest, and which depends on nothing that
shrinks again. What does not fit into that is shown as well where it has always had room: what the
newest step once took away from it stays away until it is summarized anew.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

import msgspec

from .carried import most_since
from .layout import Range
from .view import Summary, View

USER_SHARE = 8
"""At most this part of the room is kept free for the largest user message, beside summaries."""
STEP_SHARE = 0.8
"""At most this part of what is left then is kept free for the largest step."""
SCRAP = 200
"""Tokens of steps before the newest user message that are not worth a summary of their own: no
eviction takes them, so that nothing stays evicted for ever."""


def settled_room(view: View, room: int) -> int:
    """How much of the room what stands before the newest raw history may take: all but what law 4
    keeps, and what is kept free for the largest user message and the largest step."""
    rest = _beside_leading(view, room)
    rest -= min(view.user_peak, rest // USER_SHARE)
    return max(0, rest - min(view.fold.step_peak, int(rest * STEP_SHARE)))


def _beside_leading(view: View, room: int) -> int:
    stays = (*range(view.leading), *view.pinned)
    return max(0, room - sum(view.atom(step).tokens for step in stays if view.holds(step)))


def settled(
    view: View, room: int, free: int, reached: int, saved: Mapping[int, int]
) -> tuple[list[Range], list[Summary], int]:
    """What is shown of all that stands before the newest raw history: the newest of it that fits
    the room for it, with its tokens. `free` is what the least list leaves; `reached` the running
    sum before which history had been evicted.

    A summary is shown where it has had room beside the newest step and the newest user message ever
    since it was made.
    """
    left = min(settled_room(view, room), free)
    steps, taken = list[int](), 0
    scraps, stays = _scraps(view), set(view.must_stay())
    summaries: list[Summary] = []
    behind = view.summaries[-1].span_end if view.summaries else 0
    for piece, before, after in _settled_pieces(view):
        if isinstance(piece, Summary):
            behind = piece.span_start
            wanted = taken + piece.tokens
            since = Since(piece.created, piece.before.total, piece.first_step, before)
            if wanted > free or not _always_fitted(view, room, since, wanted, steps):
                continue
            summaries.append(piece)
            taken += piece.tokens
        elif piece not in stays:
            if not view.holds(piece):
                if behind > reached:
                    break  # more than the room holds is in memory
                continue
            atom = view.atom(piece)
            behind = atom.start
            wanted = taken + atom.tokens - saved.get(piece, 0)
            if piece in scraps:
                since = Since(after.created, after.before.total, piece, before)
                if wanted > free or not _always_fitted(view, room, since, wanted, {*steps, piece}):
                    continue
            elif atom.start < reached:
                continue
            elif wanted > left:
                break
            steps.append(piece)
            taken = wanted
    return [(step, step) for step in sorted(steps)], summaries[::-1], taken


class Since(msgspec.Struct, frozen=True):
    """Since when something stands before the newest history, and behind what."""

    created: int
    """The revision of the commit that made it so."""
    total: int
    """The running token sum behind the newest atom then."""
    step: int
    """Its first step."""
    before: int
    """The tokens that stand before it."""


def _always_fitted(view: View, room: int, since: Since, tokens: int, shown: Container[int]) -> bool:
    """True where the room always held it and what stood behind it, `tokens` now, beside what no law
    lets go. What is made anew in fewer tokens, and a smaller step, bring nothing back. `shown`: the
    steps that are counted in the tokens."""
    peaks, behind = view.fold.peaks, since.total
    room = _beside_leading(view, room)
    for commit in view.evictions.since(since.created):
        within = range(since.step, view.steps) if commit.asked_within else ()
        taken = commit.fixed - since.before
        if taken + most_since(peaks, behind, within, commit.total) > room:
            return False
        behind = commit.total
    return tokens + most_since(peaks, behind, shown) <= room


def _scraps(view: View) -> set[int]:
    """The steps between summaries that were never evicted for what came behind them: users'
    messages, which were the newest when an engine summarized what was done for them, and scraps
    beside them."""
    found: set[int] = set()
    asked = {s.first_step for s in view.summaries if s.origin == "engine" and s.asked_before}
    for first, last, _ in view.uncovered():
        steps = range(first, last + 1)
        if last + 1 not in asked or not all(map(view.holds, steps)):
            continue
        users = {step for step in steps if view.atom(step).user}
        if sum(view.atom(step).tokens for step in steps if step not in users) <= SCRAP:
            found.update(steps)
    return found


def _settled_pieces(view: View) -> Iterator[tuple[Summary | int, int, Summary]]:
    """Summaries, and the steps uncovered between them, the newest first: each with the tokens that
    stand before it, and the summary that it is or that follows it."""
    told = sum(summary.tokens for summary in view.summaries)
    covered = sum(summary.covered_tokens for summary in view.summaries)
    for at in range(len(view.summaries) - 1, -1, -1):
        summary = view.summaries[at]
        told, covered = told - summary.tokens, covered - summary.covered_tokens
        yield summary, summary.span_start - covered + told, summary
        first = view.summaries[at - 1].last_step + 1 if at else 0
        for step in range(summary.first_step - 1, first - 1, -1):
            start = view.atom(step).start if view.holds(step) else 0
            yield step, start - covered + told, summary
