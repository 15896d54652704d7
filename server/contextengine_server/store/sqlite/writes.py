"""What is written, on the writer's connection, inside the transaction that the writer has begun.

Duplicates and lost races are found by the constraints that they break, so the usual commit asks
nothing first.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.debts import Debt
from contextengine_server.store.errors import (
    DuplicateHostIds,
    DuplicateRequest,
    HasDependents,
    ParentGone,
    RevisionConflict,
    StoreError,
)
from contextengine_server.store.rows import Assignment, Commit, Deleted, StoredReply, SummaryRow
from contextengine_server.store.sql.columns import (
    REPLY,
    debt_values,
    head_values,
    message_values,
    named,
    reply_values,
    summary_values,
    updated_values,
)

from . import passages, reads
from .agents import ledger
from .disk import purge
from .statements import SQL, insert_messages
from .writer import at_once


def commit(db: sqlite3.Connection, change: Commit) -> None:
    """Writes one commit. Raises DuplicateRequest, RevisionConflict, ParentGone, DuplicateHostIds or
    StoreError, in this order."""
    scope, head = change.head.scope, change.head
    if change.reply is not None:
        _answer(db, change)
    _advance(db, change)
    if change.parent is not None:
        parent = reads.head(db, change.parent.scope)
        if parent is None or parent.incarnation != change.parent.incarnation:
            raise ParentGone(change.parent.scope)
    names = named(scope, revision=head.revision)
    if change.retire_after is not None:
        db.execute(SQL.messages.retire_after, {**names, "after": change.retire_after})
        if not change.keeps_facts:
            db.execute(SQL.memory.take_back, {**names, "after": change.retire_after})
    if change.retire_summaries:
        _each(
            db,
            SQL.summaries.retire,
            [{**names, "id": id} for id in change.retire_summaries],
            "no such live summary",
        )
    for after, delta in change.shifts:
        db.execute(SQL.messages.shift, {**names, "after": after, "delta": delta})
        db.execute(SQL.summaries.shift, {**names, "after": after, "delta": delta})
    if change.facts:
        facts = [
            {
                **names,
                "sequence": fact.sequence,
                "step": fact.step,
                "start": fact.start,
                "late_of": fact.late_of,
            }
            for fact in change.facts
        ]
        _each(db, SQL.messages.facts, facts, "facts of a message that is not there")
    put_rows(db, change)
    if change.bind_key:
        db.execute(SQL.heads.bind_key, (scope.tenant, scope.agent, head.session_key, scope.session))
    if change.settle_debt:
        db.execute(SQL.debts.settle, named(scope, kind=change.settle_debt))
    if change.debt is not None:
        db.execute(SQL.debts.add_or_hold, change.debt.scope + debt_values(change.debt))
    if change.charge is not None:
        ledger.charge(db, scope, change.charge)


def put_rows(db: sqlite3.Connection, change: Commit) -> None:
    """Adds the messages and summaries of a commit. Raises DuplicateHostIds or StoreError."""
    if change.messages:
        _append(db, change)
    if change.summaries:
        _summarize(db, change.head.scope, change.summaries)


def _answer(db: sqlite3.Connection, change: Commit) -> None:
    scope, answer = change.head.scope, change.reply
    assert answer is not None
    try:
        db.execute(SQL.replies.insert, scope + reply_values(answer) + (change.head.revision,))
    except sqlite3.IntegrityError:
        stored = reads.reply(db, scope, answer.request_id)
        if stored is None:
            raise
        raise DuplicateRequest(stored) from None


def _advance(db: sqlite3.Connection, change: Commit) -> None:
    """Brings the head from the expected revision to the next."""
    head, expected = change.head, change.expected_revision
    if expected or change.adopts:
        row = updated_values(head) + head.scope
        row += head.incarnation, expected, change.expected_commit
        if db.execute(SQL.heads.update, row).rowcount:
            return
    else:
        for _ in range(2):
            try:
                db.execute(SQL.heads.insert, head.scope + head_values(head))
                return
            except sqlite3.IntegrityError:
                names, (messages, staged) = named(head.scope), SQL.heads.replace_staged
                db.execute(messages, names)
                if not db.execute(staged, names).rowcount:
                    break
    found = reads.head(db, head.scope)
    raise RevisionConflict(head.scope, expected, None if found is None else found.revision)


def _each(
    db: sqlite3.Connection, statement: str, rows: list[dict[str, Any]], otherwise: str
) -> None:
    """Runs a statement that must meet one row each time."""
    if db.executemany(statement, rows).rowcount != len(rows):
        raise StoreError(f"{otherwise}: {len(rows)} rows were named, not all of them are stored")


def _append(db: sqlite3.Connection, change: Commit) -> None:
    scope, rows = change.head.scope, change.messages
    try:
        at_once(db, insert_messages, [scope + message_values(row) for row in rows])
    except sqlite3.IntegrityError:
        # Some of the new rows are in the table by now. A host id is a duplicate where another row
        # than the new one has it, or where it comes twice among the new ones.
        times = Counter(row.host_id for row in rows if row.host_id)
        own = {row.sequence for row in rows}
        there = {
            row.host_id
            for row in reads.messages_by_host_id(db, scope, list(times))
            if row.sequence not in own
        }
        duplicates = [id for id in times if times[id] > 1 or id in there]
        if duplicates:
            raise DuplicateHostIds(duplicates) from None
        raise StoreError(
            f"messages {min(own)} to {max(own)}: a sequence among them is stored already"
        ) from None


def _summarize(db: sqlite3.Connection, scope: Scope, rows: Sequence[SummaryRow]) -> None:
    try:
        db.executemany(SQL.summaries.insert, [scope + summary_values(row) for row in rows])
    except sqlite3.IntegrityError:
        raise StoreError(
            f"summaries {', '.join(row.id for row in rows)}: an id among them is stored already"
        ) from None


def mend(db: sqlite3.Connection, scope: Scope, bodies: Sequence[tuple[int, bytes, bytes]]) -> int:
    rows = [
        named(scope, sequence=sequence, content_hash=content_hash, body=body)
        for sequence, content_hash, body in bodies
    ]
    return db.executemany(SQL.messages.mend, rows).rowcount if rows else 0


def mend_summaries(db: sqlite3.Connection, scope: Scope, rows: Sequence[SummaryRow]) -> int:
    mended = [
        named(
            scope,
            id=row.id,
            content_hash=row.content_hash,
            text=row.text,
            children=json.dumps(row.children),
        )
        for row in rows
    ]
    return db.executemany(SQL.summaries.mend, mended).rowcount if mended else 0


def delete(
    db: sqlite3.Connection, scope: Scope, expected_revision: int | None, cascade: bool
) -> Deleted:
    """Erases sessions. Raises RevisionConflict, HasDependents."""
    head = reads.head(db, scope)
    if expected_revision is not None and (head is None or head.revision != expected_revision):
        raise RevisionConflict(scope, expected_revision, None if head is None else head.revision)
    if head is None:
        return Deleted()
    doomed = [scope]
    for each in doomed:  # grows as dependents of dependents are found
        standing = [one for one in reads.dependents(db, each) if one not in doomed]
        if standing and not cascade:
            raise HasDependents([one.session for one in standing])
        doomed.extend(standing)
    gone = [erase(db, each) for each in doomed]
    messages, summaries = (sum(counts) for counts in zip(*gone, strict=True))
    return Deleted(tuple(each.session for each in doomed), messages, summaries)


def unstage(db: sqlite3.Connection, scope: Scope, incarnation: str, above: int) -> None:
    names = named(scope, incarnation=incarnation)
    db.execute(SQL.heads.unstage_messages, {**names, "above": above})
    if not above:
        db.execute(SQL.heads.unstage, names)


def erase(db: sqlite3.Connection, scope: Scope) -> tuple[int, int]:
    """Erases a session with everything derived from it; answers how many messages and summaries
    went."""
    names = named(scope)
    messages = db.execute(SQL.heads.delete_messages, names).rowcount
    summaries = db.execute(SQL.heads.delete_summaries, names).rowcount
    for statement in SQL.heads.delete_rest:
        db.execute(statement, names)
    passages.doom(db, scope)
    purge.ask(db)
    return messages, summaries


def forget(db: sqlite3.Connection, tenant: str, agent: str) -> int:
    """Erases what stands beside sessions; answers how many rows went."""
    statements = SQL.heads.forget_agent if agent else SQL.heads.forget_tenant
    names = {"tenant": tenant, "agent": agent}
    rows = sum(db.execute(statement, names).rowcount for statement in statements)
    purge.ask(db)
    return rows


def remember(db: sqlite3.Connection, scope: Scope, answer: StoredReply) -> None:
    db.execute(
        SQL.replies.remember,
        named(scope, **dict(zip(REPLY, reply_values(answer), strict=True))),
    )


def remember_of_agent(db: sqlite3.Connection, scope: Scope, answer: StoredReply) -> None:
    """Keeps an answer that outlives the session that it is about; the first one under an id
    stays."""
    db.execute(
        SQL.replies.remember_of_agent, (scope.tenant, scope.agent, "", *reply_values(answer), 0)
    )


def erase_stray_replies(db: sqlite3.Connection, scope: Scope, newest: int) -> int:
    return db.execute(SQL.replies.erase_stray, named(scope, newest=newest)).rowcount


def add_debt(db: sqlite3.Connection, debt: Debt) -> None:
    db.execute(SQL.debts.add, debt.scope + debt_values(debt))


def claim_debt(
    db: sqlite3.Connection, owner: str, now_ms: int, lease_ms: int, tenant: str
) -> Debt | None:
    debt = reads.due_debt(db, now_ms, tenant)
    if debt is None:
        return None
    until = now_ms + lease_ms
    db.execute(SQL.debts.lease, named(debt.scope, kind=debt.kind, owner=owner, until=until))
    return replace(debt, lease_owner=owner, lease_until_ms=until, attempts=debt.attempts + 1)


def extend_debt(db: sqlite3.Connection, debt: Debt, until_ms: int) -> bool:
    return db.execute(SQL.debts.extend, _lease(debt, until=until_ms)).rowcount > 0


def release_debt(
    db: sqlite3.Connection, debt: Debt, done: bool, not_before_ms: int, error: str, held: bool
) -> None:
    if done:
        db.execute(SQL.debts.finish, _lease(debt))
    else:
        db.execute(
            SQL.debts.put_back, _lease(debt, not_before=not_before_ms, error=error, hold=held)
        )


def take_back_debts(db: sqlite3.Connection) -> None:
    """Ends all leases: whoever had them is gone, since nobody else has the database open. A disk
    that is full leaves them to lapse."""
    with suppress(sqlite3.OperationalError):
        db.execute(SQL.debts.take_back)


def _lease(debt: Debt, **more: Any) -> dict[str, Any]:
    return named(
        debt.scope,
        kind=debt.kind,
        lease_owner=debt.lease_owner,
        attempts=debt.attempts,
        queued_ms=debt.queued_ms,
        **more,
    )


def assign(db: sqlite3.Connection, choice: Assignment) -> None:
    key = (choice.tenant, choice.agent, choice.session)
    if choice.engine_id or choice.options not in (b"", b"{}"):
        db.execute(SQL.assignments.assign, (*key, choice.engine_id, choice.options))
    else:
        db.execute(SQL.assignments.unassign, named(Scope(*key)))
