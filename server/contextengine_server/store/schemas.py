"""What is said of a database's schema: where it stands, what is still to be done, and whether what
is there is what this program works on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec


class SchemaStep(msgspec.Struct, frozen=True):
    """One migration."""

    revision: str
    said: str
    """What it brings, in a sentence."""


class SchemaPlan(msgspec.Struct, frozen=True):
    """What bringing a database to the present schema would do."""

    found: str
    """The revision that it has; empty: it has no tables yet, or is not there."""
    wanted: str
    """The revision that this program makes."""
    steps: tuple[SchemaStep, ...] = ()
    """What is still to be done, in order."""
    script: str = ""
    """The same as SQL. What a step works out of stored rows is not in it."""


class Table(msgspec.Struct, frozen=True):
    """A table as the database knows it."""

    columns: Mapping[str, str]
    """What is said of each: its type, and whatever else must be so."""
    indexes: Mapping[str, str]
    """How each is made, its keys' among them."""
    kind: str = ""
    """What is said of the table itself."""
    forced: frozenset[str] = frozenset()
    """Columns that every row must be given."""


def faults(wanted: Mapping[str, Table], found: Mapping[str, Table]) -> list[str]:
    """What is not there as it must be, in the order of names. What is there besides does no harm
    (tables, indexes, columns), but for columns that nobody here gives a value."""
    return [fault for name in sorted(wanted) for fault in _of(name, wanted[name], found.get(name))]


def _of(name: str, wanted: Table, found: Table | None) -> Iterable[str]:
    if found is None:
        yield f"table {name} is missing"
        return
    if found.kind != wanted.kind:
        yield f"table {name} is {found.kind or 'an ordinary table'}, not {wanted.kind}"
    yield from _unlike(f"column {name}.", wanted.columns, found.columns)
    for column in sorted(found.forced - set(wanted.columns)):
        yield f"column {name}.{column} is not ours and takes no row without a value"
    yield from _unlike("index ", wanted.indexes, found.indexes)


def _unlike(what: str, wanted: Mapping[str, str], found: Mapping[str, str]) -> Iterable[str]:
    for name in sorted(wanted):
        if name not in found:
            yield f"{what}{name} is missing"
        elif found[name] != wanted[name]:
            yield f"{what}{name} is {found[name]}, not {wanted[name]}"
