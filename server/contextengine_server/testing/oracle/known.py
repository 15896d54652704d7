"""What the oracles are told: all that is known when an assembly is made, and the assembly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from contextengine_proto.v1 import message_pb2 as pb

from .pairs import ListedGroup, ViewRow, WholeList, outside
from .summaries import Covering

MOST_NOTICES = 4
"""docs/semantics.md, law 6."""


@dataclass
class Known:
    """Everything that is known when an assembly is made."""

    rows: Sequence[ViewRow]
    listing: WholeList
    budget: int
    tail: int
    """The steps that the engine declares."""
    forms: frozenset[int] = frozenset()
    evicts: bool = True
    coverings: Sequence[Covering] = ()
    costs: dict[int, int] = field(default_factory=dict)
    """What a group would cost, by its first sequence: of what is not shown, no item says it."""
    complete_scope: bool = True
    reasoning_may_go: bool = False

    @cached_property
    def by_sequence(self) -> dict[int, ViewRow]:
        return {row.sequence: row for row in self.rows}

    @cached_property
    def covered(self) -> dict[int, Covering]:
        """The groups that a summary covers."""
        return {
            index: covering
            for index, group in enumerate(self.listing.groups)
            for covering in self.coverings
            if covering.first_sequence <= group.first <= covering.last_sequence
        }

    @cached_property
    def stays(self) -> set[int]:
        """The groups that law 4 keeps."""
        user = self.listing.newest_user
        stays = {
            index
            for index, group in enumerate(self.listing.groups)
            if group.leading or group.pinned
        }
        return stays | ({user[0]} if user else set())

    @cached_property
    def waiting(self) -> list[int]:
        """The groups that the next reply answers: the newest, and, where at most so many messages
        that are not the model's stand behind its last calls or behind another such message, what
        they stand behind as well. Behind more it is the newest alone until the model speaks."""
        first, many, groups = 0, False, self.listing.groups
        for at, group in enumerate(groups):
            before = groups[at - 1] if at else None
            begins = before is None or before.leading or self._replies(group)
            many = not begins and (many or at - first > MOST_NOTICES)
            said = before is not None and self._replies(before) and not self._calls(before)
            if begins or said or many:
                first = at
        return list(range(first, len(groups)))

    def _replies(self, group: ListedGroup) -> bool:
        return self.by_sequence[group.first].message.role == pb.ROLE_ASSISTANT

    def _calls(self, group: ListedGroup) -> bool:
        return any(outside(self.by_sequence[member].message)[0] for member in group.members)


@dataclass
class SentList:
    """An assembly."""

    items: Sequence[pb.Item]
    over: bool = False
    """It says OVER_BUDGET."""
    prompt_bounded: bool = False
    """It says PROMPT_BOUNDED: the newest user message exceeds the budget alone."""

    @property
    def tokens(self) -> int:
        return sum(item.tokens for item in self.items)


@dataclass
class Placed:
    """Where the items stand in the view."""

    shown: dict[int, dict[int, pb.Item]] = field(default_factory=dict)
    """By group, then by its place in the group."""
    wrong: list[str] = field(default_factory=list)
