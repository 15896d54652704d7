"""What is read, on a plain connection: rows in, dataclasses out. Nothing here limits what it was
not asked to limit."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from contextengine_server.context.scope import Scope
from contextengine_server.store.debts import Debt
from contextengine_server.store.rows import (
    Assignment,
    Changes,
    MessageRow,
    SessionHead,
    StoredReply,
    SummaryRow,
)
from contextengine_server.store.sql import columns
from contextengine_server.store.sql.columns import named

from .statements import SQL

Row = TypeVar("Row")

_LAST = 2**63 - 1
"""Behind every sequence: the greatest integer that SQLite holds."""


@contextmanager
def snapshot(db: sqlite3.Connection) -> Iterator[None]:
    """Several reads of one state."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("ROLLBACK")


def _messages(db: sqlite3.Connection, query: str, names: dict[str, Any]) -> list[MessageRow]:
    return columns.messages(db.execute(query, names))


def _summaries(db: sqlite3.Connection, query: str, names: dict[str, Any]) -> list[SummaryRow]:
    return columns.summaries(db.execute(query, names))


def _one(db: sqlite3.Connection, query: str, names: dict[str, Any]) -> Any:
    """The first column of the first row, or None."""
    found = db.execute(query, names).fetchone()
    return None if found is None else found[0]


# Sessions


def head(db: sqlite3.Connection, scope: Scope) -> SessionHead | None:
    return next(iter(columns.heads(db.execute(SQL.heads.one, named(scope)))), None)


def current_session(
    db: sqlite3.Connection, tenant: str, agent: str, session_key: str
) -> str | None:
    found: str | None = _one(
        db, SQL.heads.current, {"tenant": tenant, "agent": agent, "session_key": session_key}
    )
    return found


def list_sessions(
    db: sqlite3.Connection,
    tenant: str,
    agent: str,
    session_key: str,
    limit: int,
    after: tuple[int, str, str] | None,
) -> list[SessionHead]:
    names: dict[str, Any] = {
        "tenant": tenant,
        "agent": agent,
        "session_key": session_key,
        "limit": limit,
    }
    if after is not None:
        names["after_ms"], names["after_agent"], names["after_session"] = after
    query = SQL.heads.listing(agent=bool(agent), key=bool(session_key), after=after is not None)
    return columns.heads(db.execute(query, names))


def agent_sessions(
    db: sqlite3.Connection,
    tenant: str,
    agent: str,
    session_key: str,
    limit: int,
    after: tuple[int, str] | None,
) -> list[SessionHead]:
    names: dict[str, Any] = {
        "tenant": tenant,
        "agent": agent,
        "session_key": session_key,
        "limit": limit,
    }
    if after is not None:
        names["after_ms"], names["after_session"] = after
    query = SQL.heads.of_agent(key=bool(session_key), after=after is not None)
    return columns.heads(db.execute(query, names))


def staged(db: sqlite3.Connection, before_ms: int, limit: int) -> list[SessionHead]:
    return columns.heads(db.execute(SQL.heads.staged, {"before_ms": before_ms, "limit": limit}))


def idle_sessions(db: sqlite3.Connection, before_ms: int, limit: int) -> list[SessionHead]:
    return columns.heads(db.execute(SQL.heads.idle, {"before_ms": before_ms, "limit": limit}))


def dependents(db: sqlite3.Connection, scope: Scope) -> list[Scope]:
    return [
        scope._replace(session=session)
        for (session,) in db.execute(SQL.heads.dependents, named(scope))
    ]


def changes(db: sqlite3.Connection, scope: Scope, since: int) -> Changes | None:
    with snapshot(db):
        now = head(db, scope)
        if now is None:
            return None
        names = named(scope, since=since)
        older = _one(db, SQL.messages.older, names) or 0
        retired = _messages(db, SQL.messages.retired_since, {**names, "last": older})
        created = _messages(db, SQL.messages.all, {**names, "first": older + 1, "last": _LAST})
        summarized = _summaries(db, SQL.summaries.since, names)
    return Changes(now, [*retired, *created], summarized)


# Messages


def messages(
    db: sqlite3.Connection,
    scope: Scope,
    first: int,
    last: int | None,
    as_of: int | None,
    retired: bool,
) -> list[MessageRow]:
    names = named(scope, first=first, last=_LAST if last is None else last)
    if as_of is None:
        return _messages(db, SQL.messages.all if retired else SQL.messages.live, names)
    return _messages(
        db, SQL.messages.all_as_of if retired else SQL.messages.as_of, {**names, "as_of": as_of}
    )


def messages_at(
    db: sqlite3.Connection,
    scope: Scope,
    sequences: Sequence[int],
    as_of: int | None,
    retired: bool,
) -> list[MessageRow]:
    names = named(scope, sequences=json.dumps(list(sequences)))
    if as_of is None:
        among = SQL.messages.all_among if retired else SQL.messages.live_among
        return _messages(db, among, names)
    among = SQL.messages.all_as_of_among if retired else SQL.messages.as_of_among
    return _messages(db, among, {**names, "as_of": as_of})


def messages_by_host_id(
    db: sqlite3.Connection, scope: Scope, host_ids: Sequence[str]
) -> list[MessageRow]:
    return _messages(db, SQL.messages.by_host_id, named(scope, host_ids=json.dumps(list(host_ids))))


def atom_from(db: sqlite3.Connection, scope: Scope, start: int) -> MessageRow | None:
    return next(iter(_messages(db, SQL.messages.atom_from, named(scope, start=start))), None)


def pinned_atoms(db: sqlite3.Connection, scope: Scope, before: int) -> list[list[MessageRow]]:
    with snapshot(db):
        begins = {
            _begin(db, scope, row) for row in _messages(db, SQL.messages.pinned, named(scope))
        }
        return [
            _atom(db, scope, *begin) for begin in sorted(filter(None, begins)) if begin[0] < before
        ]


def atom_of(db: sqlite3.Connection, scope: Scope, sequence: int) -> list[MessageRow]:
    with snapshot(db):
        for row in _messages(db, SQL.messages.at, named(scope, sequence=sequence)):
            begin = _begin(db, scope, row)
            if begin is not None:
                return _atom(db, scope, *begin)
    return []


def _begin(db: sqlite3.Connection, scope: Scope, row: MessageRow) -> tuple[int, int] | None:
    """(first sequence, step) of the atom that shows a message; None where none does."""
    if row.step is None:
        return None
    first = row.late_of
    if first is None:
        first = _one(
            db, SQL.messages.atom_first, named(scope, sequence=row.sequence, step=row.step)
        )
    return None if first is None else (first, row.step)


def _atom(db: sqlite3.Connection, scope: Scope, first: int, step: int) -> list[MessageRow]:
    """The live messages of the atom that begins here, late results last."""
    names = named(scope, first=first, step=step)
    after = _one(db, SQL.messages.atom_next, names)
    rows = _messages(
        db, SQL.messages.atom_rows, {**names, "last": _LAST if after is None else after - 1}
    )
    return rows + _messages(db, SQL.messages.atom_late, names)


def stray_replies(db: sqlite3.Connection, scope: Scope, newest: int) -> int:
    return int(db.execute(SQL.replies.count_stray, named(scope, newest=newest)).fetchone()[0])


def late_results(db: sqlite3.Connection, scope: Scope, first: int, last: int) -> list[MessageRow]:
    return _messages(db, SQL.messages.late_between, named(scope, first=first, last=last))


# Summaries, requests, debts, assignments


def summaries(
    db: sqlite3.Connection, scope: Scope, as_of: int | None, retired: bool
) -> list[SummaryRow]:
    names = named(scope)
    if as_of is None:
        query = SQL.summaries.all if retired else SQL.summaries.live
    else:
        query = SQL.summaries.all_as_of if retired else SQL.summaries.as_of
        names["as_of"] = as_of
    return _summaries(db, query, names)


def reply(db: sqlite3.Connection, scope: Scope, request_id: str) -> StoredReply | None:
    found = db.execute(SQL.replies.one, named(scope, request_id=request_id))
    return next(iter(columns.replies(found)), None)


def debts(db: sqlite3.Connection, scope: Scope) -> list[Debt]:
    return columns.debts(db.execute(SQL.debts.of_session, named(scope)))


def debtors(db: sqlite3.Connection, now_ms: int) -> list[str]:
    """The tenants with a debt that may be claimed, who has waited longest first."""
    return [tenant for (tenant,) in db.execute(SQL.debts.debtors, {"now": now_ms})]


def due_debt(db: sqlite3.Connection, now_ms: int, tenant: str) -> Debt | None:
    """The oldest debt that may be claimed, of a tenant or (empty) of any."""
    names = {"now": now_ms, "tenant": tenant}
    return next(iter(columns.debts(db.execute(SQL.debts.due, names))), None)


def assignments(db: sqlite3.Connection, tenant: str | None) -> list[Assignment]:
    if tenant is None:
        return columns.assignments(db.execute(SQL.assignments.all))
    return columns.assignments(db.execute(SQL.assignments.of_tenant, {"tenant": tenant}))


def tenants(db: sqlite3.Connection) -> list[str]:
    with snapshot(db):
        found = [_maybe(db, SQL.heads.first_tenant, {})]
        while found[-1] is not None:
            found.append(_maybe(db, SQL.heads.next_tenant, {"tenant": found[-1]}))
    return [tenant for tenant in found if tenant is not None]


def _maybe(db: sqlite3.Connection, query: str, names: dict[str, str]) -> str | None:
    found: str | None = db.execute(query, names).fetchone()[0]
    return found


def counts(db: sqlite3.Connection, tenant: str | None) -> dict[str, int]:
    with snapshot(db):
        if tenant is None:
            return {kind: _one(db, query, {}) for kind, query in SQL.heads.count_all.items()}
        return {
            kind: _one(db, query, {"tenant": tenant})
            for kind, query in SQL.heads.count_tenant.items()
        }
