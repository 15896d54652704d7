"""A store as plain as can be: dictionaries, whole-list scans, no speed. What the real ones are
compared with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.debts import Debt
from contextengine_server.store.errors import (
    DuplicateHostIds,
    DuplicateRequest,
    HasDependents,
    RevisionConflict,
)
from contextengine_server.store.rows import (
    Commit,
    Deleted,
    MessageRow,
    SessionHead,
    StoredReply,
    SummaryRow,
)


@dataclass
class ModelSession:
    """All rows of one session."""

    head: SessionHead
    messages: dict[int, MessageRow] = field(default_factory=dict)
    summaries: dict[str, SummaryRow] = field(default_factory=dict)
    replies: dict[str, StoredReply] = field(default_factory=dict)
    debts: dict[str, Debt] = field(default_factory=dict)

    def live(self, as_of: int | None = None) -> list[MessageRow]:
        return [row for _, row in sorted(self.messages.items()) if alive(row, as_of)]

    def live_summaries(self, as_of: int | None = None) -> list[SummaryRow]:
        return ordered(row for row in self.summaries.values() if alive(row, as_of))

    def atom(self, first: int) -> list[MessageRow]:
        """The atom that begins at a sequence."""
        step = self.messages[first].step
        own = [
            row
            for row in self.live()
            if row.step == step and row.late_of is None and row.sequence >= first
        ]
        return own + [row for row in self.live() if row.late_of == first]

    def atoms(self) -> dict[int, list[MessageRow]]:
        """Every live atom by the sequence that it begins at."""
        return {
            row.sequence: self.atom(row.sequence) for row in self.live() if row.start is not None
        }


def alive(row: MessageRow | SummaryRow, as_of: int | None) -> bool:
    if as_of is None:
        return row.retired_revision == 0
    return row.created_revision <= as_of and (
        row.retired_revision == 0 or row.retired_revision > as_of
    )


def ordered(rows: Iterable[SummaryRow]) -> list[SummaryRow]:
    return sorted(
        rows, key=lambda row: (row.first_sequence, row.depth, row.created_revision, row.id)
    )


class StoreModel:
    """The store. A refused commit changes nothing, because everything is checked before anything is
    written."""

    def __init__(self) -> None:
        self.sessions: dict[Scope, ModelSession] = {}
        self.keys: dict[tuple[str, str, str], str] = {}

    def commit(self, change: Commit) -> None:
        scope, head = change.head.scope, change.head
        there = self.sessions.get(scope)
        self._check(change, there)
        session = self.sessions.setdefault(scope, ModelSession(head))
        session.head = head
        if change.reply is not None:
            session.replies[change.reply.request_id] = change.reply
        for sequence, row in session.messages.items():
            if (
                change.retire_after is not None
                and sequence > change.retire_after
                and not row.retired_revision
            ):
                session.messages[sequence] = replace(row, retired_revision=head.revision)
        for id in change.retire_summaries:
            session.summaries[id] = replace(session.summaries[id], retired_revision=head.revision)
        for after, delta in change.shifts:
            for row in session.live():
                if row.sequence > after and row.start is not None:
                    session.messages[row.sequence] = replace(row, start=row.start + delta)
            for note in session.live_summaries():
                if note.first_sequence > after:
                    session.summaries[note.id] = replace(
                        note, span_start=note.span_start + delta, span_end=note.span_end + delta
                    )
        for fact in change.facts:
            row = session.messages[fact.sequence]
            session.messages[fact.sequence] = replace(
                row, step=fact.step, start=fact.start, late_of=fact.late_of
            )
        session.messages.update({row.sequence: row for row in change.messages})
        session.summaries.update({note.id: note for note in change.summaries})
        if change.bind_key:
            self.keys[(scope.tenant, scope.agent, head.session_key)] = scope.session
        session.debts.pop(change.settle_debt, None)
        if change.debt is not None:
            owed = session.debts.setdefault(change.debt.kind, change.debt)
            session.debts[change.debt.kind] = replace(owed, held=change.debt.held)

    def _check(self, change: Commit, there: ModelSession | None) -> None:
        scope = change.head.scope
        if (
            there is not None
            and change.reply is not None
            and change.reply.request_id in there.replies
        ):
            raise DuplicateRequest(there.replies[change.reply.request_id])
        actual = None if there is None else there.head.revision
        if (actual or 0) != change.expected_revision:
            raise RevisionConflict(scope, change.expected_revision, actual)
        if there is not None and there.head.incarnation != change.head.incarnation:
            raise RevisionConflict(scope, change.expected_revision, actual)
        kept = [row for row in (there.live() if there else []) if row.sequence <= self._cut(change)]
        ids = [row.host_id for row in change.messages if row.host_id]
        taken = {row.host_id for row in kept}
        duplicates = list(dict.fromkeys(id for id in ids if id in taken or ids.count(id) > 1))
        if duplicates:
            raise DuplicateHostIds(duplicates)

    @staticmethod
    def _cut(change: Commit) -> int:
        return 2**63 if change.retire_after is None else change.retire_after

    def dependents(self, scope: Scope) -> list[Scope]:
        return sorted(
            one
            for one, session in self.sessions.items()
            if one[:2] == scope[:2] and session.head.parent_session == scope.session
        )

    def delete(self, scope: Scope, cascade: bool) -> Deleted:
        if scope not in self.sessions:
            return Deleted()
        doomed = [scope]
        for one in doomed:
            doomed.extend(each for each in self.dependents(one) if each not in doomed)
            if len(doomed) > 1 and not cascade:
                raise HasDependents([each.session for each in doomed[1:]])
        gone = [self.sessions.pop(one) for one in doomed]
        names = {one.session for one in doomed}
        self.keys = {
            key: session
            for key, session in self.keys.items()
            if not (key[:2] == scope[:2] and session in names)
        }
        return Deleted(
            tuple(one.session for one in doomed),
            sum(len(one.messages) for one in gone),
            sum(len(one.summaries) for one in gone),
        )
