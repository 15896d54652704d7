"""What is read, on a plain connection: rows in, dataclasses out. Nothing here limits what it was
not asked to limit."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import (
    Assignment,
    Changes,
    Debt,
    MessageRow,
    SessionHead,
    StoredReply,
    SummaryRow,
)

from . import statements as sql

Row = TypeVar("Row")

_LAST = 2**63 - 1
"""Behind every sequence: the greatest integer that SQLite holds."""

_ENDED = sql.HEAD_COLUMNS.index("ended")
_PINNED = sql.MESSAGE_COLUMNS.index("pinned")
_FALLBACK = sql.SUMMARY_COLUMNS.index("fallback")
CHILDREN = sql.SUMMARY_COLUMNS.index("children")
_HELD = sql.DEBT_COLUMNS.index("held")


def named(scope: Scope, **more: Any) -> dict[str, Any]:
    """The parameters that name a session, and others."""
    return {"tenant": scope.tenant, "agent": scope.agent, "session": scope.session, **more}


@contextmanager
def snapshot(db: sqlite3.Connection) -> Iterator[None]:
    """Several reads of one state."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("ROLLBACK")


def _rows(found: Iterable[tuple[Any, ...]], make: Callable[..., Row], flag: int) -> list[Row]:
    """Rows made of columns. SQLite has no type for flags; each of our rows has one."""
    made = []
    for columns in found:
        values = list(columns)
        values[flag] = bool(values[flag])
        made.append(make(*values))
    return made


def _head(tenant: str, agent: str, session: str, *rest: Any) -> SessionHead:
    return SessionHead(Scope(tenant, agent, session), *rest)


def _debt(tenant: str, agent: str, session: str, *rest: Any) -> Debt:
    return Debt(Scope(tenant, agent, session), *rest)


def _summary(*values: Any) -> SummaryRow:
    columns = list(values)
    columns[CHILDREN] = tuple(json.loads(columns[CHILDREN]))
    return SummaryRow(*columns)


def _heads(db: sqlite3.Connection, query: str, names: dict[str, Any]) -> list[SessionHead]:
    return _rows(db.execute(query, names), _head, _ENDED)


def _messages(db: sqlite3.Connection, query: str, names: dict[str, Any]) -> list[MessageRow]:
    return _rows(db.execute(query, names), MessageRow, _PINNED)


def _one(db: sqlite3.Connection, query: str, names: dict[str, Any]) -> Any:
    """The first column of the first row, or None."""
    found = db.execute(query, names).fetchone()
    return None if found is None else found[0]


# Sessions


def head(db: sqlite3.Connection, scope: Scope) -> SessionHead | None:
    return next(iter(_heads(db, sql.HEAD, named(scope))), None)


def current_session(
    db: sqlite3.Connection, tenant: str, agent: str, session_key: str
) -> str | None:
    found: str | None = _one(
        db, sql.CURRENT, {"tenant": tenant, "agent": agent, "session_key": session_key}
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
    return _heads(
        db, sql.listing(agent=bool(agent), key=bool(session_key), after=after is not None), names
    )


def idle_sessions(db: sqlite3.Connection, before_ms: int, limit: int) -> list[SessionHead]:
    return _heads(db, sql.IDLE, {"before_ms": before_ms, "limit": limit})


def dependents(db: sqlite3.Connection, scope: Scope) -> list[Scope]:
    return [
        scope._replace(session=session) for (session,) in db.execute(sql.DEPENDENTS, named(scope))
    ]


def changes(db: sqlite3.Connection, scope: Scope, since: int) -> Changes | None:
    with snapshot(db):
        now = head(db, scope)
        if now is None:
            return None
        names = named(scope, since=since)
        older = _one(db, sql.OLDER, names) or 0
        retired = _messages(db, sql.RETIRED_SINCE, {**names, "last": older})
        created = _messages(db, sql.MESSAGES_ALL, {**names, "first": older + 1, "last": _LAST})
        summarized = _rows(db.execute(sql.SUMMARIES_SINCE, names), _summary, _FALLBACK)
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
        return _messages(db, sql.MESSAGES_ALL if retired else sql.MESSAGES_LIVE, names)
    return _messages(
        db, sql.MESSAGES_ALL_AS_OF if retired else sql.MESSAGES_AS_OF, {**names, "as_of": as_of}
    )


def messages_by_host_id(
    db: sqlite3.Connection, scope: Scope, host_ids: Sequence[str]
) -> list[MessageRow]:
    return _messages(db, sql.BY_HOST_ID, named(scope, host_ids=json.dumps(list(host_ids))))


def atom_from(db: sqlite3.Connection, scope: Scope, start: int) -> MessageRow | None:
    return next(iter(_messages(db, sql.ATOM_FROM, named(scope, start=start))), None)


def pinned_atoms(db: sqlite3.Connection, scope: Scope, before: int) -> list[list[MessageRow]]:
    with snapshot(db):
        begins = {_begin(db, scope, row) for row in _messages(db, sql.PINNED, named(scope))}
        return [
            _atom(db, scope, *begin) for begin in sorted(filter(None, begins)) if begin[0] < before
        ]


def atom_of(db: sqlite3.Connection, scope: Scope, sequence: int) -> list[MessageRow]:
    with snapshot(db):
        for row in _messages(db, sql.MESSAGE_AT, named(scope, sequence=sequence)):
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
        first = _one(db, sql.ATOM_FIRST, named(scope, sequence=row.sequence, step=row.step))
    return None if first is None else (first, row.step)


def _atom(db: sqlite3.Connection, scope: Scope, first: int, step: int) -> list[MessageRow]:
    """The live messages of the atom that begins here, late results last."""
    names = named(scope, first=first, step=step)
    after = _one(db, sql.ATOM_NEXT, names)
    rows = _messages(db, sql.ATOM_ROWS, {**names, "last": _LAST if after is None else after - 1})
    return rows + _messages(db, sql.ATOM_LATE, names)


def stray_replies(db: sqlite3.Connection, scope: Scope, newest: int) -> int:
    return int(db.execute(sql.COUNT_STRAY_REPLIES, named(scope, newest=newest)).fetchone()[0])


def late_results(db: sqlite3.Connection, scope: Scope, first: int, last: int) -> list[MessageRow]:
    return _messages(db, sql.LATE_BETWEEN, named(scope, first=first, last=last))


# Summaries, requests, debts, assignments


def summaries(
    db: sqlite3.Connection, scope: Scope, as_of: int | None, retired: bool
) -> list[SummaryRow]:
    names = named(scope)
    if as_of is None:
        query = sql.SUMMARIES_ALL if retired else sql.SUMMARIES_LIVE
    else:
        query = sql.SUMMARIES_ALL_AS_OF if retired else sql.SUMMARIES_AS_OF
        names["as_of"] = as_of
    return _rows(db.execute(query, names), _summary, _FALLBACK)


def reply(db: sqlite3.Connection, scope: Scope, request_id: str) -> StoredReply | None:
    found = db.execute(sql.REPLY, named(scope, request_id=request_id)).fetchone()
    return None if found is None else StoredReply(*found)


def debts(db: sqlite3.Connection, scope: Scope) -> list[Debt]:
    return _rows(db.execute(sql.DEBTS, named(scope)), _debt, _HELD)


def due_debt(db: sqlite3.Connection, now_ms: int) -> Debt | None:
    """The oldest debt that may be claimed."""
    return next(iter(_rows(db.execute(sql.DUE_DEBT, {"now": now_ms}), _debt, _HELD)), None)


def assignments(db: sqlite3.Connection, tenant: str) -> list[Assignment]:
    return [Assignment(*columns) for columns in db.execute(sql.ASSIGNMENTS, {"tenant": tenant})]


def counts(db: sqlite3.Connection, tenant: str | None) -> dict[str, int]:
    with snapshot(db):
        if tenant is None:
            return {kind: _one(db, query, {}) for kind, query in sql.COUNT_ALL.items()}
        return {
            kind: _one(db, query, {"tenant": tenant}) for kind, query in sql.COUNT_TENANT.items()
        }
