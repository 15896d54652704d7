"""What validators share: findings, and how a table of rules is asked. Knows nothing of the
renderers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

S = TypeVar("S")

Breach = tuple[str, str]
"""Where in the JSON, and what is wrong there."""

Rule = Callable[[S], Iterable[Breach]]


class RuleFinding(msgspec.Struct, frozen=True):
    """A rule that is broken, where, and how."""

    rule: str
    where: str
    what: str
    advice: bool = False
    """True where the provider takes it, though it is better otherwise."""


def run(
    rules: Sequence[Rule[S]], subject: S, advice: frozenset[str] = frozenset()
) -> list[RuleFinding]:
    """Every finding of every rule. A rule is named by its function up to the first underscore;
    `advice` has whole names."""
    return [
        RuleFinding(rule.__name__.partition("_")[0].upper(), where, what, rule.__name__ in advice)
        for rule in rules
        for where, what in rule(subject)
    ]


_NAMES = ("id", "call_id", "tool_call_id", "tool_use_id", "type")


def mapping(value: Any) -> Mapping[str, Any]:
    """The object, or an empty one where it is none: another rule says that. A name in it that is a
    list or an object becomes its text: it is nobody's name, and rules look names up."""
    if not isinstance(value, Mapping):
        return {}
    odd = {name: str(value[name]) for name in _NAMES if isinstance(value.get(name), list | Mapping)}
    return {**value, **odd} if odd else value


def objects(value: Any) -> list[Mapping[str, Any]]:
    """The entries of a list of objects, an empty one for an entry that is none."""
    return [mapping(entry) for entry in value] if isinstance(value, list) else []


def numbered(value: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The entries of a list of objects with their paths."""
    for index, entry in enumerate(objects(value)):
        yield f"{path}[{index}]", entry


def prefix_breaks(earlier: Sequence[Any], later: Sequence[Any], path: str) -> Iterator[Breach]:
    """Where a later list does not begin with the earlier one."""
    for index, (before, now) in enumerate(zip(earlier, later, strict=False)):
        if before != now:
            yield (
                f"{path}[{index}]",
                "differs from the earlier request: the cached prefix ends here",
            )
            return
    if len(later) < len(earlier):
        yield path, "is shorter than in the earlier request"
