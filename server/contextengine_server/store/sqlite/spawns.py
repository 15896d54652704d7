"""The spawns of the SQLite store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.commits import check
from contextengine_server.store.errors import RevisionConflict, TooManyChildren
from contextengine_server.store.rows import KEPT_MS, Commit, EndedSpawn, Spawn
from contextengine_server.store.sql import columns
from contextengine_server.store.sql.columns import named, spawn_values

from . import reads, writes
from .index import Run, Write
from .statements import SQL

T = TypeVar("T")


class SqliteSpawns:
    """`Spawns` in a table. `read` and `write` run work on a reading connection and on the one that
    writes; `committed` and `erased` keep what the store remembers of sessions true."""

    def __init__(
        self,
        read: Run,
        write: Write,
        committed: Callable[[Commit], None],
        erased: Callable[[Sequence[Scope]], None],
    ) -> None:
        self._read, self._write = read, write
        self._committed, self._erased = committed, erased

    async def prepare(self, spawn: Spawn, commit: Commit, most_live: int) -> Spawn:
        """Writes a spawn and the commit that makes its child; or answers the one that the request
        made before."""
        check(commit)

        def work(db: sqlite3.Connection) -> Spawn:
            known = _asked(db, spawn.parent, spawn.request_id)
            if known is not None:
                return known
            if reads.head(db, spawn.parent) is None:
                raise RevisionConflict(spawn.parent, spawn.parent_revision, None)
            if _live_children(db, spawn.parent) >= most_live:
                raise TooManyChildren
            writes.commit(db, commit)
            db.execute(SQL.spawns.insert, spawn_values(spawn))
            return spawn

        def then(done: Spawn) -> None:
            if done is spawn:
                self._committed(commit)

        return await self._write(work, then, tenant=spawn.parent.tenant)

    async def find(self, tenant: str, token: str) -> Spawn | None:
        """A spawn by its token."""
        return await self._read(_find, tenant, token)

    async def asked(self, parent: Scope, request_id: str) -> Spawn | None:
        """The spawn that a request of this id made."""
        return await self._read(_asked, parent, request_id)

    async def newest_of(self, child: Scope) -> Spawn | None:
        """How a session was spawned."""
        return await self._read(lambda db: _one(db, SQL.spawns.newest_of, **named(child)))

    async def live_children(self, parent: Scope) -> int:
        """How many live children a session has."""
        return await self._read(_live_children, parent)

    async def start(self, tenant: str, token: str, now_ms: int) -> bool:
        """The child is there."""
        names = {"tenant": tenant, "token": token, "now": now_ms}
        return await self._write(
            lambda db: db.execute(SQL.spawns.start, names).rowcount > 0, tenant=tenant
        )

    async def spend(self, tenant: str, token: str, tokens: int) -> bool:
        """Counts tokens that were read, all or none of them."""
        names = {"tenant": tenant, "token": token, "tokens": tokens}
        return await self._write(
            lambda db: db.execute(SQL.spawns.spend, names).rowcount > 0, tenant=tenant
        )

    async def end(
        self, tenant: str, token: str, reason: str, now_ms: int, *, take_back: bool
    ) -> EndedSpawn | None:
        """Ends a live spawn."""

        def work(db: sqlite3.Connection) -> list[EndedSpawn]:
            spawn = _find(db, tenant, token)
            if spawn is None or spawn.ended_ms:
                return []
            return [_end(db, spawn, reason, now_ms, take_back)]

        ended = await self._write(work, self._forget, tenant=tenant)
        return ended[0] if ended else None

    async def expire(self, now_ms: int, limit: int) -> Sequence[EndedSpawn]:
        """Ends spawns whose time has passed, and forgets those that ended long ago."""
        if not await self._read(_any_due, now_ms):
            return []

        def work(db: sqlite3.Connection) -> list[EndedSpawn]:
            due = columns.spawns(db.execute(SQL.spawns.due, {"now": now_ms, "limit": limit}))
            db.execute(SQL.spawns.forget, {"before": now_ms - KEPT_MS, "limit": limit})
            return [ended for spawn in due if (ended := _expire(db, spawn, now_ms)) is not None]

        return await self._write(work, self._forget)

    async def expire_one(self, tenant: str, token: str, now_ms: int) -> EndedSpawn | None:
        """The same for one spawn, where it is due."""

        def work(db: sqlite3.Connection) -> list[EndedSpawn]:
            spawn = _find(db, tenant, token)
            if spawn is None or spawn.ended_ms or spawn.expire_ms > now_ms:
                return []
            ended = _expire(db, spawn, now_ms)
            return [] if ended is None else [ended]

        ended = await self._write(work, self._forget, tenant=tenant)
        return ended[0] if ended else None

    def _forget(self, ended: Sequence[EndedSpawn]) -> None:
        gone = [one.spawn.child for one in ended if one.erased]
        if gone:
            self._erased(gone)


def _expire(db: sqlite3.Connection, spawn: Spawn, now_ms: int) -> EndedSpawn | None:
    head = reads.head(db, spawn.child)
    begun = head is not None and (spawn.started or head.last_sequence > head.parent_sequence)
    if head is not None and begun and head.updated_ms + spawn.ttl_ms > now_ms:
        until = head.updated_ms + spawn.ttl_ms
        db.execute(
            SQL.spawns.prolong, {"tenant": spawn.tenant, "token": spawn.token, "until": until}
        )
        return None
    return _end(db, spawn, "expired", now_ms, not begun)


def _end(
    db: sqlite3.Connection, spawn: Spawn, reason: str, now_ms: int, take_back: bool
) -> EndedSpawn:
    over = replace(spawn, ended_ms=now_ms, end_reason=reason)
    head = reads.head(db, spawn.child)
    untouched = head is not None and head.last_sequence == head.parent_sequence
    erased = take_back and untouched and not reads.dependents(db, spawn.child)
    if erased:
        _take_back(db, spawn)
        db.execute(
            SQL.spawns.insert, spawn_values(over)
        )  # deleted with its child's session; put back, so that its token is answered as ended
    else:
        names = {"tenant": spawn.tenant, "token": spawn.token, "now": now_ms, "reason": reason}
        db.execute(SQL.spawns.end, names)
    return EndedSpawn(over, erased)


def _take_back(db: sqlite3.Connection, spawn: Spawn) -> None:
    """Erases the child, and ties its key to what it named before."""
    head = reads.head(db, spawn.child)
    assert head is not None
    key = head.session_key
    current = reads.current_session(db, spawn.tenant, spawn.agent, key) if key else None
    writes.erase(db, spawn.child)
    before = spawn.child._replace(session=spawn.previous_session)
    if current == spawn.session and spawn.previous_session and reads.head(db, before) is not None:
        db.execute(SQL.heads.bind_key, (spawn.tenant, spawn.agent, key, spawn.previous_session))


def _any_due(db: sqlite3.Connection, now_ms: int) -> bool:
    due = db.execute(SQL.spawns.due, {"now": now_ms, "limit": 1}).fetchone()
    return (
        due is not None
        or db.execute(SQL.spawns.any_over, {"before": now_ms - KEPT_MS}).fetchone() is not None
    )


def _find(db: sqlite3.Connection, tenant: str, token: str) -> Spawn | None:
    return _one(db, SQL.spawns.one, tenant=tenant, token=token)


def _asked(db: sqlite3.Connection, parent: Scope, request_id: str) -> Spawn | None:
    return _one(db, SQL.spawns.asked, **named(parent, request_id=request_id))


def _live_children(db: sqlite3.Connection, parent: Scope) -> int:
    return int(db.execute(SQL.spawns.live_children, named(parent)).fetchone()[0])


def _one(db: sqlite3.Connection, statement: str, **names: Any) -> Spawn | None:
    return next(iter(columns.spawns(db.execute(statement, names))), None)
