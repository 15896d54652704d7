"""What is written, on the writer's connection, inside the transaction that the writer has begun.

Duplicates and lost races are found by the constraints that they break, so the usual commit asks
nothing first.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import (
    DuplicateHostIds,
    DuplicateRequest,
    HasDependents,
    RevisionConflict,
    StoreError,
)
from contextengine_server.store.rows import (
    Assignment,
    Commit,
    Debt,
    Deleted,
    StoredReply,
    SummaryRow,
)

from . import passages, reads
from . import statements as sql
from .reads import named


def _getter(columns: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Reads a row's columns, those that name its session apart. (`astuple` copies deeply and takes
    ten times as long.)"""
    return attrgetter(*(name for name in columns if name not in ("tenant", "agent", "session")))


_head_columns = _getter(sql.HEAD_COLUMNS)
_updated_columns = _getter(sql.UPDATED_COLUMNS)
_message_columns = _getter(sql.MESSAGE_COLUMNS)
_summary_columns = _getter(sql.SUMMARY_COLUMNS)
_reply_columns = _getter(sql.REPLY_COLUMNS)
_debt_columns = _getter(sql.DEBT_COLUMNS)


def check(change: Commit) -> None:
    """Raises StoreError where a commit is at odds with itself."""
    head = change.head
    if not head.scope.complete:
        raise StoreError(f"{head.scope}: a session needs a tenant, an agent and an id")
    if change.bind_key and not head.session_key:
        raise StoreError(f"{head.scope.session}: bind_key needs a session key in the head")
    if change.debt is not None and change.debt.scope != head.scope:
        raise StoreError(
            f"{head.scope.session}: a debt of another session, {change.debt.scope.session}"
        )


def commit(db: sqlite3.Connection, change: Commit) -> None:
    """Writes one commit. Raises DuplicateRequest, RevisionConflict, DuplicateHostIds or StoreError,
    in this order."""
    scope, head = change.head.scope, change.head
    if change.reply is not None:
        _answer(db, change)
    _advance(db, change)
    names = named(scope, revision=head.revision)
    if change.retire_after is not None:
        db.execute(sql.RETIRE_AFTER, {**names, "after": change.retire_after})
    if change.retire_summaries:
        _each(
            db,
            sql.RETIRE_SUMMARY,
            [{**names, "id": id} for id in change.retire_summaries],
            "no such live summary",
        )
    for after, delta in change.shifts:
        db.execute(sql.SHIFT, {**names, "after": after, "delta": delta})
        db.execute(sql.SHIFT_SUMMARIES, {**names, "after": after, "delta": delta})
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
        _each(db, sql.FACTS, facts, "facts of a message that is not there")
    if change.messages:
        _append(db, change)
    if change.summaries:
        _summarize(db, scope, change.summaries)
    if change.bind_key:
        db.execute(sql.BIND_KEY, (scope.tenant, scope.agent, head.session_key, scope.session))
    if change.settle_debt:
        db.execute(sql.SETTLE_DEBT, named(scope, kind=change.settle_debt))
    if change.debt is not None:
        db.execute(sql.ADD_DEBT_OR_HOLD, change.debt.scope + _debt_columns(change.debt))


class Apart(Exception):
    """Several commits could not be written in one go. One by one each tells what it meets."""


def appends(change: Commit) -> bool:
    """True for the usual commit, which brings an existing session's head on and adds messages, and
    nothing else."""
    return bool(change.expected_revision and change.messages) and not (
        change.reply or change.facts or change.shifts or change.summaries or change.retire_summaries
        or change.bind_key or change.settle_debt or change.debt or change.retire_after is not None
    )  # fmt: skip


def append_all(db: sqlite3.Connection, changes: Sequence[Commit]) -> None:
    """Writes usual commits by a few statements for all of them. Between any two statements this
    thread gives up the interpreter and waits for it again, which beside a busy event loop is what a
    group costs. Raises Apart, or what SQLite raises."""
    heads = [
        _updated_columns(change.head)
        + change.head.scope
        + (change.head.incarnation, change.expected_revision)
        for change in changes
    ]
    if _at_once(db, sql.update_heads, heads) != len(heads):
        raise Apart
    rows = [
        change.head.scope + _message_columns(row) for change in changes for row in change.messages
    ]
    _at_once(db, sql.insert_messages, rows)


_MOST_AT_ONCE = 64
"""Rows of one statement: far below SQLite's limit of parameters."""


def _at_once(
    db: sqlite3.Connection, statement: Callable[[int], str], rows: Sequence[tuple[Any, ...]]
) -> int:
    """Runs a statement over rows in pieces whose sizes are powers of two, so that few statements
    are prepared. Answers how many rows it met."""
    met = done = 0
    while done < len(rows):
        size = min(_MOST_AT_ONCE, 1 << (len(rows) - done).bit_length() - 1)
        values = [value for row in rows[done : done + size] for value in row]
        met += db.execute(statement(size), values).rowcount
        done += size
    return met


def _answer(db: sqlite3.Connection, change: Commit) -> None:
    scope, answer = change.head.scope, change.reply
    assert answer is not None
    try:
        db.execute(sql.INSERT_REPLY, scope + _reply_columns(answer) + (change.head.revision,))
    except sqlite3.IntegrityError:
        stored = reads.reply(db, scope, answer.request_id)
        if stored is None:
            raise
        raise DuplicateRequest(stored) from None


def _advance(db: sqlite3.Connection, change: Commit) -> None:
    """Brings the head from the expected revision to the next."""
    head, expected = change.head, change.expected_revision
    if expected:
        row = _updated_columns(head) + head.scope + (head.incarnation, expected)
        if db.execute(sql.UPDATE_HEAD, row).rowcount:
            return
    else:
        try:
            db.execute(sql.INSERT_HEAD, head.scope + _head_columns(head))
            return
        except sqlite3.IntegrityError:
            pass
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
        db.executemany(sql.INSERT_MESSAGE, [scope + _message_columns(row) for row in rows])
    except sqlite3.IntegrityError:
        # Some of the rows are in by now: another row with the same id is what tells a duplicate.
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
    flat = []
    for row in rows:
        columns = list(_summary_columns(row))
        columns[reads.CHILDREN] = json.dumps(row.children)
        flat.append((*scope, *columns))
    try:
        db.executemany(sql.INSERT_SUMMARY, flat)
    except sqlite3.IntegrityError:
        raise StoreError(
            f"summaries {', '.join(row.id for row in rows)}: an id among them is stored already"
        ) from None


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


def erase(db: sqlite3.Connection, scope: Scope) -> tuple[int, int]:
    """Erases a session with everything derived from it; answers how many messages and summaries
    went."""
    names = named(scope)
    messages = db.execute(sql.DELETE_MESSAGES, names).rowcount
    summaries = db.execute(sql.DELETE_SUMMARIES, names).rowcount
    for statement in sql.DELETE_REST:
        db.execute(statement, names)
    passages.doom(db, scope)
    return messages, summaries


def remember(db: sqlite3.Connection, scope: Scope, answer: StoredReply) -> None:
    db.execute(
        sql.REMEMBER,
        named(scope, **dict(zip(sql.REPLY_COLUMNS, _reply_columns(answer), strict=True))),
    )


def remember_of_agent(db: sqlite3.Connection, scope: Scope, answer: StoredReply) -> None:
    """Keeps an answer that outlives the session that it is about; the first one under an id
    stays."""
    db.execute(sql.REMEMBER_OF_AGENT, (scope.tenant, scope.agent, "", *_reply_columns(answer), 0))


def erase_stray_replies(db: sqlite3.Connection, scope: Scope, newest: int) -> int:
    return db.execute(sql.ERASE_STRAY_REPLIES, named(scope, newest=newest)).rowcount


def add_debt(db: sqlite3.Connection, debt: Debt) -> None:
    db.execute(sql.ADD_DEBT, debt.scope + _debt_columns(debt))


def claim_debt(db: sqlite3.Connection, owner: str, now_ms: int, lease_ms: int) -> Debt | None:
    debt = reads.due_debt(db, now_ms)
    if debt is None:
        return None
    until = now_ms + lease_ms
    db.execute(sql.LEASE_DEBT, named(debt.scope, kind=debt.kind, owner=owner, until=until))
    return replace(debt, lease_owner=owner, lease_until_ms=until, attempts=debt.attempts + 1)


def extend_debt(db: sqlite3.Connection, debt: Debt, until_ms: int) -> bool:
    return db.execute(sql.EXTEND_DEBT, _lease(debt, until=until_ms)).rowcount > 0


def release_debt(
    db: sqlite3.Connection, debt: Debt, done: bool, not_before_ms: int, error: str, held: bool
) -> None:
    if done:
        db.execute(sql.FINISH_DEBT, _lease(debt))
    else:
        db.execute(
            sql.PUT_BACK_DEBT, _lease(debt, not_before=not_before_ms, error=error, hold=held)
        )


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
        db.execute(sql.ASSIGN, (*key, choice.engine_id, choice.options))
    else:
        db.execute(sql.UNASSIGN, named(Scope(*key)))
