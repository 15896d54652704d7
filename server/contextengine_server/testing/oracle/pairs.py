"""What a session must look like, from its whole list: which result answers which call, what is made
up, what is not shown.

The rules, over the list as a whole:

- A message *carries* when it holds results and nothing else. Whatever else there is *speaks*, an
  empty message too.
- A result answers the newest call with its id that stands before it and has no answer yet; else
  nothing, and it is not shown.
- A call is abandoned by the first message behind its own that speaks. An answer that came no later
  than that is timely.
- A late answer takes the place of the result that was made up; where a summary older than it covers
  the call, it is a note.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from contextengine_proto.v1 import message_pb2 as pb


class ViewRow(msgspec.Struct, frozen=True):
    """A stored message that is in the view."""

    sequence: int
    message: pb.Message
    created: int
    """The revision that stored it."""

    def __repr__(self) -> str:
        """In a line, for the report of a failing session."""
        parts = []
        for part in self.message.parts:
            kind = part.WhichOneof("kind") or "unknown"
            call = getattr(part, kind).call_id if kind in ("tool_call", "tool_result") else ""
            parts.append(f"{kind} {call}".strip())
        labels = " pinned" if pinned(self.message) else ""
        return f"<{self.sequence} role {self.message.role}{labels}: {', '.join(parts)}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


class CoveredRange(msgspec.Struct, frozen=True):
    """A summary: what it covers and since when."""

    first_sequence: int
    last_sequence: int
    created: int
    retired: int = 0
    """The revision that took it back; 0: it is live."""


class Shown(msgspec.Struct, frozen=True):
    """One item that the view must show."""

    kind: str
    """`whole`, `parts`, `no result` or `note`."""
    sequence: int
    """The message shown; for a result that was made up, the message with the call."""
    parts: tuple[int, ...] = ()
    """The parts shown, where `kind` is `parts` or `note`."""
    call: str = ""
    """The id of the call that was given up, where the result was made up."""


@dataclass
class ListedGroup:
    """Messages that stand or fall together."""

    first: int
    shown: list[Shown] = field(default_factory=list)
    members: list[int] = field(default_factory=list)
    """The sequences of the messages of which something is shown here."""
    pending: bool = False
    user: bool = False
    pinned: bool = False
    leading: bool = False


@dataclass
class WaitingCall:
    """A call that waits for another message's result."""

    id: str
    row: int
    answer: tuple[int, int] | None = None
    """(row, part) of the result that answers it."""


@dataclass
class WholeList:
    """The view of a whole list."""

    groups: list[ListedGroup]
    dropped: set[int]
    """The sequences of messages of which nothing is shown."""
    newest_user: tuple[int, int] | None
    """(group, sequence) of the newest message in which a user speaks."""


_TOLD = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)


def speaks(message: pb.Message) -> bool:
    """True unless it holds results and nothing else."""
    return not message.parts or any(
        part.WhichOneof("kind") != "tool_result" for part in message.parts
    )


def carries(message: pb.Message) -> bool:
    """True for results and nothing else, or nothing else but texts that a harness put between its
    tags, in a message of the user's."""
    if not speaks(message):
        return True
    kinds = {part.WhichOneof("kind") for part in message.parts}
    if message.role != pb.ROLE_USER or kinds != {"text", "tool_result"}:
        return False
    texts = [part.text.text for part in message.parts if part.HasField("text")]
    return not any(_TOLD.sub("", t).strip() for t in texts)


def only_reasoning(message: pb.Message) -> bool:
    """True for an assistant's message of reasoning alone."""
    kinds = {part.WhichOneof("kind") for part in message.parts}
    return message.role == pb.ROLE_ASSISTANT and kinds == {"reasoning"}


def pinned(message: pb.Message) -> bool:
    """True where it carries the label, with any value but `false`."""
    return "pinned" in message.labels and message.labels["pinned"] != "false"


def outside(message: pb.Message) -> tuple[list[str], list[int]]:
    """The ids of the calls, and the parts with results, that its own message does not match with
    each other."""
    calls: list[str] = []
    results: list[int] = []
    for index, part in enumerate(message.parts):
        if part.WhichOneof("kind") == "tool_call":
            calls.append(part.tool_call.call_id)
        if part.WhichOneof("kind") == "tool_result":
            if part.tool_result.call_id in calls:
                calls.remove(part.tool_result.call_id)
            else:
                results.append(index)
    return calls, results


def listing(rows: Sequence[ViewRow], stretches: Sequence[CoveredRange] = ()) -> WholeList:
    """The view that these rows, in order, must have."""
    return _Reader(rows, stretches).read()


class _Reader:
    def __init__(self, rows: Sequence[ViewRow], stretches: Sequence[CoveredRange]) -> None:
        self.rows, self.stretches = rows, stretches
        self.outside = [outside(row.message) for row in rows]
        self.calls: list[list[WaitingCall]] = [
            [WaitingCall(id, at) for id in ids] for at, (ids, _) in enumerate(self.outside)
        ]
        self.speakers = [at for at, row in enumerate(rows) if speaks(row.message)]
        self.timely: dict[tuple[int, int], WaitingCall] = {}
        self.late: dict[tuple[int, int], WaitingCall] = {}
        self._match()
        self.groups: list[ListedGroup] = []
        self.home: dict[int, ListedGroup] = {}
        """The group in which a row stands at its own place."""
        self.dropped: set[int] = set()

    def _end(self, at: int) -> int:
        """The first row behind `at` that speaks; the number of rows where there is none."""
        place = bisect_right(self.speakers, at)
        return self.speakers[place] if place < len(self.speakers) else len(self.rows)

    def _speaker(self, end: int) -> int | None:
        """The newest row before `end` that speaks."""
        place = bisect_left(self.speakers, end)
        return self.speakers[place - 1] if place else None

    def _match(self) -> None:
        """Which result answers which call."""
        waiting: dict[str, list[WaitingCall]] = {}
        for at, row in enumerate(self.rows):
            for part in self.outside[at][1]:
                same = [
                    call
                    for call in waiting.get(row.message.parts[part].tool_result.call_id, ())
                    if call.answer is None
                ]
                if not same:
                    continue
                newest = max(call.row for call in same)
                call = next(call for call in same if call.row == newest)
                call.answer = (at, part)
                # A message that calls tools itself begins something new: its results come from
                # behind.
                in_time = at <= self._end(call.row) and not self.calls[at]
                (self.timely if in_time else self.late)[at, part] = call
            for call in self.calls[at]:
                waiting.setdefault(call.id, []).append(call)

    def read(self) -> WholeList:
        newest_user = None
        for at, row in enumerate(self.rows):
            results = self.outside[at][1]
            joins = [part for part in results if (at, part) in self.timely]
            late = [part for part in results if (at, part) in self.late]
            stands = speaks(row.message) or bool(joins)
            if stands:
                self._stand(at, joins)
            if late:
                self._show_late(at, late, stands)
            if not stands and not late:
                self._drop(row.sequence)
            if stands and row.message.role == pb.ROLE_USER and not carries(row.message):
                newest_user = self.groups.index(self.home[at]), row.sequence
        self._mark_leading()
        if self.groups:
            self.groups[-1].pending = self._open_at(len(self.rows))
        return WholeList(self.groups, self.dropped, newest_user)

    def _stand(self, at: int, joins: list[int]) -> None:
        """The row at its own place, and the results that are made up because it speaks."""
        row = self.rows[at]
        shown_parts = tuple(
            part
            for part in range(len(row.message.parts))
            if part in joins or part not in self.outside[at][1]
        )
        whole = len(shown_parts) == len(row.message.parts)
        shown = Shown("whole", row.sequence) if whole else Shown("parts", row.sequence, shown_parts)
        if joins:
            group = self.home[self.timely[at, joins[0]].row]
            group.shown.append(shown)
            if speaks(row.message):
                self._give_up(group, at)
        else:
            if self.groups:
                self._give_up(self.groups[-1], at)
            if self._follows_reasoning(at):
                group = self.groups[-1]
            else:
                group = ListedGroup(row.sequence)
                self.groups.append(group)
            group.shown.append(shown)
        self.home[at] = group
        group.members.append(row.sequence)
        group.pinned = group.pinned or pinned(row.message)
        group.user = group.user or (row.message.role == pb.ROLE_USER and not carries(row.message))

    def _give_up(self, group: ListedGroup, at: int) -> None:
        """Row `at` speaks: the calls before it that stand open get a result that says that there
        was none."""
        newest = self._speaker(at)
        for call in self.calls[newest] if newest is not None else ():
            if call.answer not in self.timely:
                group.shown.append(Shown("no result", self.rows[call.row].sequence, call=call.id))

    def _follows_reasoning(self, at: int) -> bool:
        """True where it is what the reasoning right before it produced."""
        if self.rows[at].message.role != pb.ROLE_ASSISTANT or self.outside[at][1]:
            return False
        return self._thinking_at(at)

    def _closed(self, group: ListedGroup) -> bool:
        """True where a group ended although nothing may have spoken since: a note stands behind
        it."""
        return group is not self.groups[-1]

    def _show_late(self, at: int, late: list[int], stands: bool) -> None:
        row = self.rows[at]
        notes: list[int] = []
        for part in late:
            call = self.late[at, part]
            group = self.home[call.row]
            if any(
                one.first_sequence <= group.first <= one.last_sequence
                and one.created < row.created < (one.retired or math.inf)
                for one in self.stretches
            ):
                notes.append(part)
                continue
            made_up = Shown("no result", self.rows[call.row].sequence, call=call.id)
            alone = len(row.message.parts) == 1
            place = group.shown.index(made_up)
            group.shown[place] = (
                Shown("whole", row.sequence) if alone else Shown("parts", row.sequence, (part,))
            )
            if row.sequence not in group.members:
                group.members.append(row.sequence)
            group.pinned = group.pinned or pinned(row.message)
        if notes:
            self._note(at, Shown("note", row.sequence, tuple(notes)), stands)

    def _note(self, at: int, note: Shown, stands: bool) -> None:
        """A note never parts calls from results, nor reasoning from its product: it goes before
        them. Else it comes last."""
        unfinished = bool(self.groups) and (self._open_at(at + 1) or self._thinking_at(at + 1))
        if unfinished:
            group = self.groups[-1]
            group.shown.insert(sum(1 for shown in group.shown if shown.kind == "note"), note)
        elif stands:
            group = self.home[at]
            group.shown.append(note)
        else:
            group = ListedGroup(note.sequence, [note])
            self.groups.append(group)
        if not stands:
            group.members.append(note.sequence)

    def _open_at(self, end: int) -> bool:
        """True where, of the rows before `end`, the newest that speaks left calls that are still
        open."""
        newest = self._speaker(end)
        if newest is None or self._closed(self.home[newest]):
            return False
        return any(call.answer is None or call.answer[0] >= end for call in self.calls[newest])

    def _thinking_at(self, end: int) -> bool:
        """True where, of the rows before `end`, the newest that speaks is reasoning whose product
        is still to come."""
        newest = self._speaker(end)
        return (
            newest is not None
            and only_reasoning(self.rows[newest].message)
            and not self._closed(self.home[newest])
        )

    def _drop(self, sequence: int) -> None:
        self.dropped.add(sequence)
        if not self.groups:
            # Nothing is shown of it, but it is a step of its own, and what leads the session may
            # still follow.
            self.groups.append(ListedGroup(sequence))

    def _mark_leading(self) -> None:
        roles = {row.sequence: row.message.role for row in self.rows}
        for group in self.groups:
            group.leading = not group.shown or roles[group.first] in (
                pb.ROLE_SYSTEM,
                pb.ROLE_DEVELOPER,
            )
            if not group.leading:
                break
