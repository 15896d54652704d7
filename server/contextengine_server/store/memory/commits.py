"""How the rows change. Everything that may be wrong is looked for before anything is written, so a
change that is refused has changed nothing."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import (
    DuplicateHostIds,
    DuplicateRequest,
    HasDependents,
    ParentGone,
    RevisionConflict,
    StoreError,
)
from contextengine_server.store.rows import Commit, Deleted

from . import agent_facts, ledger
from .tables import SessionTables, Tables, live


def commit(tables: Tables, change: Commit) -> None:
    """Writes one commit. Raises DuplicateRequest, RevisionConflict, ParentGone, DuplicateHostIds or
    StoreError, in this order."""
    scope = change.head.scope
    session = (tables.staged if change.adopts else tables.sessions).get(scope)
    _look(tables, change, session)
    tables.staged.pop(scope, None)
    session = session or SessionTables(change.head)
    session.head = change.head
    (tables.sessions if change.head.revision else tables.staged)[scope] = session
    _retire(session, change)
    if change.retire_after is not None and not change.keeps_facts:
        agent_facts.take_back(tables, scope, change.retire_after)
    _shift(session, change)
    for fact in change.facts:
        row = session.messages[fact.sequence]
        session.put(replace(row, step=fact.step, start=fact.start, late_of=fact.late_of))
    for row in change.messages:
        session.put(row)
    for summary in change.summaries:
        session.summaries[summary.id] = summary
    _around(tables, change)


def _look(tables: Tables, change: Commit, session: SessionTables | None) -> None:
    """Raises what is wrong with a commit."""
    head, reply = change.head, change.reply
    if reply is not None and reply.request_id in (known := tables.replies.get(head.scope, {})):
        raise DuplicateRequest(known[reply.request_id][0])
    actual = None if session is None else session.head
    wanted = (change.expected_revision, head.incarnation, change.expected_commit)
    found = (actual.revision, actual.incarnation, actual.commit_id) if actual else None
    expects = change.expected_revision or change.adopts
    gone = change.adopts and head.scope in tables.sessions
    if gone or (wanted != found if expects else actual is not None):
        revision = None if actual is None else actual.revision
        raise RevisionConflict(head.scope, change.expected_revision, revision)
    if change.parent is not None:
        parent = tables.head(change.parent.scope)
        if parent is None or parent.incarnation != change.parent.incarnation:
            raise ParentGone(change.parent.scope)
    before = session or SessionTables(head)
    for id in change.retire_summaries:
        if id not in before.summaries or not live(before.summaries[id]):
            raise StoreError(f"summary {id} is to be retired: it is not live")
    for fact in change.facts:
        if fact.sequence not in before.messages:
            raise StoreError(f"facts of message {fact.sequence}: it is not stored")
    _look_at_ids(before, change)


def _look_at_ids(before: SessionTables, change: Commit) -> None:
    cut = change.retire_after
    times = Counter(row.host_id for row in change.messages if row.host_id)
    duplicates = [
        id
        for id, count in times.items()
        if count > 1 or (id in before.host_ids and (cut is None or before.host_ids[id] <= cut))
    ]
    if duplicates:
        raise DuplicateHostIds(duplicates)
    sequences = [row.sequence for row in change.messages]
    if len(set(sequences)) < len(sequences) or not before.messages.keys().isdisjoint(sequences):
        raise StoreError(
            f"messages {min(sequences)} to {max(sequences)}: a sequence among them is stored"
            " already"
        )
    ids = [row.id for row in change.summaries]
    if len(set(ids)) < len(ids) or not before.summaries.keys().isdisjoint(ids):
        raise StoreError(f"summaries {', '.join(ids)}: an id among them is stored already")


def _retire(session: SessionTables, change: Commit) -> None:
    revision = change.head.revision
    if change.retire_after is not None:
        for row in list(session.between(change.retire_after + 1)):
            if live(row):
                session.put(replace(row, retired_revision=revision))
    for id in change.retire_summaries:
        session.summaries[id] = replace(session.summaries[id], retired_revision=revision)


def _shift(session: SessionTables, change: Commit) -> None:
    for after, delta in change.shifts:
        for row in list(session.between(after + 1)):
            if live(row) and row.start is not None:
                session.put(replace(row, start=row.start + delta))
        for summary in list(session.summaries.values()):
            if live(summary) and summary.first_sequence > after:
                session.summaries[summary.id] = replace(
                    summary,
                    span_start=summary.span_start + delta,
                    span_end=summary.span_end + delta,
                )


def _around(tables: Tables, change: Commit) -> None:
    """What stands beside the session's rows: key, answer, debts."""
    head, scope = change.head, change.head.scope
    if change.bind_key:
        tables.keys[scope.tenant, scope.agent, head.session_key] = scope.session
    if change.reply is not None:
        answers = tables.replies.setdefault(scope, {})
        answers[change.reply.request_id] = (change.reply, head.revision)
    tables.debts.pop((scope, change.settle_debt), None)
    if change.debt is not None:
        place = (scope, change.debt.kind)
        owed = tables.debts.get(place)
        tables.debts[place] = replace(owed, held=change.debt.held) if owed else change.debt
    if change.charge is not None:
        ledger.charge(tables, scope, change.charge)


def delete(
    tables: Tables, scope: Scope, expected_revision: int | None, *, cascade: bool
) -> Deleted:
    """Erases sessions. Raises RevisionConflict, HasDependents."""
    head = tables.head(scope)
    if expected_revision is not None and (head is None or head.revision != expected_revision):
        raise RevisionConflict(scope, expected_revision, None if head is None else head.revision)
    if head is None:
        return Deleted()
    doomed = [scope]
    for each in doomed:  # grows as dependents of dependents are found
        standing = [one for one in tables.dependents(each) if one not in doomed]
        if standing and not cascade:
            raise HasDependents([one.session for one in standing])
        doomed.extend(standing)
    gone = [tables.erase(each) for each in doomed]
    messages, summaries = (sum(counts) for counts in zip(*gone, strict=True))
    return Deleted(tuple(each.session for each in doomed), messages, summaries)
