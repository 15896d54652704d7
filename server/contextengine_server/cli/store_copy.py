"""`store copy` and `store compare`: one store into another, of whatever kind, and whether two are
equal."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from contextengine_server.cli.output import CommandFailed, complain, note, print_json
from contextengine_server.cli.store import refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contextengine_server.store.kinds import StoreKind

_EVERY_S = 2.0


async def copy(source: str, target: str, replace: bool, json: bool) -> None:
    """Makes the target what the source is now, and prints what was done. Raises CommandFailed."""
    from contextengine_server.store.transfer.copy import Copy

    of, to = _kind(source, "the source"), _kind(target, "the target")
    places = of.place(source), to.place(target)
    if places[0] == places[1]:
        raise CommandFailed(f"{places[0]} cannot be copied into itself", 2)
    with refused("stop that server first"):
        await _require_present(of, source)
        async with of.copied_from(source) as read:
            await to.migrate(target)
            async with to.copied_into(target) as written:
                with _progress() as told:
                    work = Copy(read, written, places[0], told)
                    done = await work.run(replace=replace)
    if json:
        print_json(msgspec.to_builtins(done))
        return
    print(
        f"{places[0]} is copied to {places[1]}: {done.sessions:,} sessions, {done.unchanged:,} were"
        f" there already, {done.erased:,} erased; {done.rows:,} rows read back and equal"
    )


async def compare(one: str, other: str, json: bool) -> bool:
    """Prints what is not the same in two stores; whether they are equal. Raises CommandFailed, with
    status 2."""
    from contextengine_server.store.transfer.copy import differences

    first, second = _kind(one, "the first"), _kind(other, "the second")
    with refused(status=2):
        await _require_present(first, one)
        await _require_present(second, other)
        async with first.copied_from(one) as mine, second.copied_from(other) as theirs:
            with _progress() as told:
                found = await differences(mine, theirs, told)
    if json:
        print_json({"equal": not found, "differences": found})
    elif not found:
        print(f"{first.place(one)} and {second.place(other)} hold the same")
    else:
        for difference in found:
            complain(difference)
    return not found


def _kind(url: str, which: str) -> StoreKind:
    from contextengine_server.plugins.stores import kind_of

    try:
        kind = kind_of(url)
        kind.check(url)
    except ValueError as error:
        raise CommandFailed(f"{which} {error}", 2) from None
    return kind


async def _require_present(kind: StoreKind, url: str) -> None:
    made = await kind.plan(url)
    if not made.found:
        raise CommandFailed(f"no store at {kind.place(url)}", 2)
    if made.steps:
        raise CommandFailed(
            f"{kind.place(url)} has schema {made.found}: contextengine migrate apply --store first",
            2,
        )


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """Says on standard error how many sessions are done, every now and then."""
    done, said = 0, time.monotonic()

    def told(count: int) -> None:
        nonlocal done, said
        done += count
        if time.monotonic() - said >= _EVERY_S:
            said = time.monotonic()
            note(f"{done:,} sessions")
            sys.stderr.flush()

    yield told
