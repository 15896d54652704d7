"""What the oracles are told: all that is known when an assembly is made, and the assembly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from contextengine_proto.v1 import message_pb2 as pb

from .pairs import ViewRow, WholeList
from .summaries import Covering


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
