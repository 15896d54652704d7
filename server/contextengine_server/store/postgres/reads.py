"""What is read, on a connection: rows in, values out. Nothing here limits what it was not asked to
limit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

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

from .connections import Db
from .keys import named
from .statements import PASSAGES_SIZE, SQL

_LAST = 2**63 - 1
"""Behind every sequence: the greatest integer that a column holds."""


@asynccontextmanager
async def snapshot(db: Db) -> AsyncIterator[None]:
    """Several reads of one state; within a transaction that writes, of what its locks keep."""
    if db.raw.is_in_transaction():
        yield
        return
    async with db.raw.transaction(isolation="repeatable_read", readonly=True):
        yield


async def _messages(db: Db, query: str, names: Mapping[str, Any]) -> list[MessageRow]:
    return columns.messages(await db.rows(query, names))


# Sessions


async def head(db: Db, scope: Scope, lock: str = "") -> SessionHead | None:
    found = columns.heads(await db.rows(SQL.heads.one + lock, named(scope)))
    return found[0] if found else None


async def current_session(db: Db, tenant: str, agent: str, session_key: str) -> str | None:
    names = {"tenant": tenant, "agent": agent, "session_key": session_key}
    found: str | None = await db.value(SQL.heads.current, names)
    return found


async def list_sessions(
    db: Db,
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
    return columns.heads(await db.rows(query, names))


async def agent_sessions(
    db: Db,
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
    return columns.heads(await db.rows(query, names))


async def staged(db: Db, before_ms: int, limit: int) -> list[SessionHead]:
    names = {"before_ms": before_ms, "limit": limit}
    return columns.heads(await db.rows(SQL.heads.staged, names))


async def idle_sessions(db: Db, before_ms: int, limit: int) -> list[SessionHead]:
    names = {"before_ms": before_ms, "limit": limit}
    return columns.heads(await db.rows(SQL.heads.idle, names))


async def tenants(db: Db) -> list[str]:
    found: list[str] = []
    tenant = await db.value(SQL.heads.first_tenant)
    while tenant is not None:
        found.append(tenant)
        tenant = await db.value(SQL.heads.next_tenant, {"tenant": tenant})
    return found


async def dependents(db: Db, scope: Scope) -> list[Scope]:
    rows = await db.rows(SQL.heads.dependents, named(scope))
    return [scope._replace(session=session) for (session,) in rows]


async def counts(db: Db, tenant: str | None) -> dict[str, int]:
    async with snapshot(db):
        if tenant is None:
            return {kind: await db.value(query) for kind, query in SQL.heads.count_all.items()}
        names = {"tenant": tenant}
        return {
            kind: await db.value(query, names) for kind, query in SQL.heads.count_tenant.items()
        }


async def changes(db: Db, scope: Scope, since: int) -> Changes | None:
    async with snapshot(db):
        now = await head(db, scope)
        if now is None:
            return None
        names = named(scope, since=since)
        older = await db.value(SQL.messages.older, names) or 0
        retired = await _messages(db, SQL.messages.retired_since, {**names, "last": older})
        span = {**names, "first": older + 1, "last": _LAST}
        created = await _messages(db, SQL.messages.all, span)
        summarized = columns.summaries(await db.rows(SQL.summaries.since, names))
    return Changes(now, [*retired, *created], summarized)


# Messages


async def messages(
    db: Db, scope: Scope, first: int, last: int | None, as_of: int | None, retired: bool
) -> list[MessageRow]:
    names = named(scope, first=first, last=_LAST if last is None else last, as_of=as_of)
    if as_of is None:
        return await _messages(db, SQL.messages.all if retired else SQL.messages.live, names)
    query = SQL.messages.all_as_of if retired else SQL.messages.as_of
    return await _messages(db, query, names)


async def messages_at(
    db: Db, scope: Scope, sequences: Sequence[int], as_of: int | None, retired: bool
) -> list[MessageRow]:
    names = named(scope, sequences=list(sequences), as_of=as_of)
    if as_of is None:
        query = SQL.messages.all_among if retired else SQL.messages.live_among
    else:
        query = SQL.messages.all_as_of_among if retired else SQL.messages.as_of_among
    return await _messages(db, query, names)


async def messages_by_host_id(db: Db, scope: Scope, host_ids: Sequence[str]) -> list[MessageRow]:
    return await _messages(db, SQL.messages.by_host_id, named(scope, host_ids=list(host_ids)))


async def atom_from(db: Db, scope: Scope, start: int) -> MessageRow | None:
    found = await _messages(db, SQL.messages.atom_from, named(scope, start=start))
    return found[0] if found else None


async def pinned_atoms(db: Db, scope: Scope, before: int) -> list[list[MessageRow]]:
    async with snapshot(db):
        rows = await _messages(db, SQL.messages.pinned, named(scope))
        begins = {await _begin(db, scope, row) for row in rows}
        return [
            await _atom(db, scope, *begin)
            for begin in sorted(filter(None, begins))
            if begin[0] < before
        ]


async def atom_of(db: Db, scope: Scope, sequence: int) -> list[MessageRow]:
    async with snapshot(db):
        for row in await _messages(db, SQL.messages.at, named(scope, sequence=sequence)):
            begin = await _begin(db, scope, row)
            if begin is not None:
                return await _atom(db, scope, *begin)
    return []


async def _begin(db: Db, scope: Scope, row: MessageRow) -> tuple[int, int] | None:
    """(first sequence, step) of the atom that shows a message; None where none does."""
    if row.step is None:
        return None
    first = row.late_of
    if first is None:
        names = named(scope, sequence=row.sequence, step=row.step)
        first = await db.value(SQL.messages.atom_first, names)
    return None if first is None else (first, row.step)


async def _atom(db: Db, scope: Scope, first: int, step: int) -> list[MessageRow]:
    """The live messages of the atom that begins here, late results last."""
    names = named(scope, first=first, step=step)
    after = await db.value(SQL.messages.atom_next, names)
    span = {**names, "last": _LAST if after is None else after - 1}
    rows = await _messages(db, SQL.messages.atom_rows, span)
    return rows + await _messages(db, SQL.messages.atom_late, names)


async def late_results(db: Db, scope: Scope, first: int, last: int) -> list[MessageRow]:
    return await _messages(db, SQL.messages.late_between, named(scope, first=first, last=last))


# Summaries, requests, debts, assignments


async def summaries(db: Db, scope: Scope, as_of: int | None, retired: bool) -> list[SummaryRow]:
    if as_of is None:
        query = SQL.summaries.all if retired else SQL.summaries.live
    else:
        query = SQL.summaries.all_as_of if retired else SQL.summaries.as_of
    return columns.summaries(await db.rows(query, named(scope, as_of=as_of)))


async def reply(db: Db, scope: Scope, request_id: str) -> StoredReply | None:
    found = columns.replies(await db.rows(SQL.replies.one, named(scope, request_id=request_id)))
    return found[0] if found else None


async def stray_replies(db: Db, scope: Scope, newest: int) -> int:
    return int(await db.value(SQL.replies.count_stray, named(scope, newest=newest)))


async def debts(db: Db, scope: Scope) -> list[Debt]:
    return columns.debts(await db.rows(SQL.debts.of_session, named(scope)))


async def debtors(db: Db, now_ms: int) -> list[str]:
    """The tenants with a debt that may be claimed, who has waited longest first."""
    return [tenant for (tenant,) in await db.rows(SQL.debts.debtors, {"now": now_ms})]


async def assignments(db: Db, tenant: str | None) -> list[Assignment]:
    if tenant is None:
        return columns.assignments(await db.rows(SQL.assignments.all))
    return columns.assignments(await db.rows(SQL.assignments.of_tenant, {"tenant": tenant}))


async def size(db: Db, scope: Scope) -> int:
    """Bytes of a session's rows, and of the texts that are kept of it for search."""
    names = named(scope)
    async with snapshot(db):
        taken = [await db.value(query, names) for query in (*SQL.heads.sizes, PASSAGES_SIZE)]
    return sum(map(int, taken))
