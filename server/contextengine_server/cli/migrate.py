"""`migrate`: what upgrading a store would do, doing it, and whether it is as it must be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from contextengine_server.cli.connection import Where
from contextengine_server.cli.output import complain, print_json, printable
from contextengine_server.cli.store import of_settings, refused

if TYPE_CHECKING:
    from contextengine_server.store.schemas import SchemaPlan

_IN_USE = "stop that server first"


async def plan(where: Where, json: bool) -> None:
    """Prints what bringing the store of the settings to the present schema would do, as SQL. Raises
    CommandFailed."""
    kind, url = of_settings(where, "migrate")
    with refused():
        made = await kind.plan(url)
    if json:
        print_json({"store": kind.place(url), **msgspec.to_builtins(made)})
        return
    print(f"-- {_told(kind.place(url), made)}")
    for step in made.steps:
        print(f"-- {step.revision}: {step.said}")
    if made.script:
        print(printable(made.script), end="")


async def apply(where: Where) -> None:
    """Brings the store of the settings to the present schema, and prints what was done. Raises
    CommandFailed."""
    kind, url = of_settings(where, "migrate")
    with refused(_IN_USE):
        made = await kind.plan(url)
        await kind.migrate(url)
    place = kind.place(url)
    if not made.steps:
        print(_told(place, made))
        return
    print(f"{place} has schema {made.wanted}: {len(made.steps)} steps from {made.found or 'none'}")


async def verify(where: Where, json: bool) -> bool:
    """Prints whether the store of the settings is what this version works on; whether it is. Raises
    CommandFailed, with status 2 where that cannot be told."""
    kind, url = of_settings(where, "migrate")
    place = kind.place(url)
    with refused(status=2):
        made = await kind.plan(url)
        faults = await kind.faults(url) if made.found and not made.steps else []
    right = bool(made.found) and not made.steps and not faults
    if json:
        told = {"store": place, "found": made.found, "wanted": made.wanted, "faults": faults}
        print_json({**told, "right": right})
        return right
    if right:
        print(f"{_told(place, made)}, and every table, column and index is as it must be")
        return True
    if not faults:
        complain(f"{_told(place, made)}: contextengine migrate apply")
    for fault in faults:
        complain(f"{place}: {fault}")
    if faults:
        complain("put it right by hand, or restore a backup: no migration does")
    return False


def _told(place: str, made: SchemaPlan) -> str:
    if made.steps:
        count = f"{len(made.steps)} step{'s' * (len(made.steps) > 1)}"
        return (
            f"{place} has schema {made.found or 'none'}, this version wants {made.wanted}: {count}"
        )
    if made.found != made.wanted:
        return (
            f"{place} has schema {made.found}, newer than {made.wanted}, which serves this version"
        )
    return f"{place} has schema {made.wanted}, which this version wants"
