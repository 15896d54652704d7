"""The spawns of the PostgreSQL store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.commits import check
from contextengine_server.store.errors import RevisionConflict, TooManyChildren
from contextengine_server.store.rows import KEPT_MS, Commit, EndedSpawn, Spawn
from contextengine_server.store.sql import columns
from contextengine_server.store.sql.columns import spawn_values

from . import reads, writes
from .connections import Connections, Db
from .keys import named
from .statements import LOCK, LOCK_TO_DELETE, SQL
from .transactions import Transact


class PostgresSpawns:
    """`Spawns` in a table. `write` runs work in a transaction; `committed` and `erased` keep what
    the store remembers of sessions true."""

    def __init__(
        self,
        connections: Connections,
        write: Transact,
        committed: Callable[[Commit], None],
        erased: Callable[[Sequence[Scope]], None],
    ) -> None:
        self._connections, self._write = connections, write
        self._committed, self._erased = committed, erased

    async def prepare(self, spawn: Spawn, commit: Commit, most_live: int) -> Spawn:
        """Writes a spawn and the commit that makes its child; or answers the one that the request
        made before."""
        check(commit)

        async def work(db: Db) -> Spawn:
            # Under this lock nobody else counts the parent's children, or adds one.
            parent = await reads.head(db, spawn.parent, LOCK)
            known = await _asked(db, spawn.parent, spawn.request_id)
            if known is not None:
                return known
            if parent is None:
                raise RevisionConflict(spawn.parent, spawn.parent_revision, None)
            if await _live_children(db, spawn.parent) >= most_live:
                raise TooManyChildren
            await writes.commit(db, commit)
            await db.met(SQL.spawns.insert, spawn_values(spawn))
            return spawn

        def then(done: Spawn) -> None:
            if done is spawn:
                self._committed(commit)

        return await self._write(work, then)

    async def find(self, tenant: str, token: str) -> Spawn | None:
        """A spawn by its token."""
        return await self._connections.read(_find, tenant, token)

    async def asked(self, parent: Scope, request_id: str) -> Spawn | None:
        """The spawn that a request of this id made."""
        return await self._connections.read(_asked, parent, request_id)

    async def newest_of(self, child: Scope) -> Spawn | None:
        """How a session was spawned."""
        return await self._connections.read(_one, SQL.spawns.newest_of, **named(child))

    async def live_children(self, parent: Scope) -> int:
        """How many live children a session has."""
        return await self._connections.read(_live_children, parent)

    async def start(self, tenant: str, token: str, now_ms: int) -> bool:
        """The child is there."""
        names = {"tenant": tenant, "token": token, "now": now_ms}
        return await self._write(lambda db: db.met(SQL.spawns.start, names)) > 0

    async def spend(self, tenant: str, token: str, tokens: int) -> bool:
        """Counts tokens that were read, all or none of them."""
        names = {"tenant": tenant, "token": token, "tokens": tokens}
        return await self._write(lambda db: db.met(SQL.spawns.spend, names)) > 0

    async def end(
        self, tenant: str, token: str, reason: str, now_ms: int, *, take_back: bool
    ) -> EndedSpawn | None:
        """Ends a live spawn."""

        async def work(db: Db) -> list[EndedSpawn]:
            spawn = await _find(db, tenant, token, LOCK_TO_DELETE)
            if spawn is None or spawn.ended_ms:
                return []
            return [await _end(db, spawn, reason, now_ms, take_back)]

        ended = await self._write(work, self._forget)
        return ended[0] if ended else None

    async def expire(self, now_ms: int, limit: int) -> Sequence[EndedSpawn]:
        """Ends spawns whose time has passed, and forgets those that ended long ago."""
        if not await self._connections.read(_any_due, now_ms):
            return []

        async def work(db: Db) -> list[EndedSpawn]:
            # What another expires at this moment is no longer due.
            names = {"now": now_ms, "limit": limit}
            due = columns.spawns(await db.rows(f"{SQL.spawns.due} FOR UPDATE SKIP LOCKED", names))
            await db.met(SQL.spawns.forget, {"before": now_ms - KEPT_MS, "limit": limit})
            ended = [await _expire(db, spawn, now_ms) for spawn in due]
            return [one for one in ended if one is not None]

        return await self._write(work, self._forget)

    async def expire_one(self, tenant: str, token: str, now_ms: int) -> EndedSpawn | None:
        """The same for one spawn, where it is due."""

        async def work(db: Db) -> list[EndedSpawn]:
            spawn = await _find(db, tenant, token, LOCK_TO_DELETE)
            if spawn is None or spawn.ended_ms or spawn.expire_ms > now_ms:
                return []
            ended = await _expire(db, spawn, now_ms)
            return [] if ended is None else [ended]

        ended = await self._write(work, self._forget)
        return ended[0] if ended else None

    def _forget(self, ended: Sequence[EndedSpawn]) -> None:
        gone = [one.spawn.child for one in ended if one.erased]
        if gone:
            self._erased(gone)


async def _expire(db: Db, spawn: Spawn, now_ms: int) -> EndedSpawn | None:
    head = await reads.head(db, spawn.child, LOCK_TO_DELETE)
    begun = head is not None and (spawn.started or head.last_sequence > head.parent_sequence)
    if head is not None and begun and head.updated_ms + spawn.ttl_ms > now_ms:
        until = head.updated_ms + spawn.ttl_ms
        names = {"tenant": spawn.tenant, "token": spawn.token, "until": until}
        await db.met(SQL.spawns.prolong, names)
        return None
    return await _end(db, spawn, "expired", now_ms, not begun)


async def _end(db: Db, spawn: Spawn, reason: str, now_ms: int, take_back: bool) -> EndedSpawn:
    over = replace(spawn, ended_ms=now_ms, end_reason=reason)
    head = await reads.head(db, spawn.child, LOCK_TO_DELETE)
    untouched = head is not None and head.last_sequence == head.parent_sequence
    erased = take_back and untouched and not await reads.dependents(db, spawn.child)
    if erased:
        assert head is not None
        await _take_back(db, spawn, head.session_key)
        # Deleted with its child's session; put back, so that its token is answered as ended.
        await db.met(SQL.spawns.insert, spawn_values(over))
    else:
        names = {"tenant": spawn.tenant, "token": spawn.token, "now": now_ms, "reason": reason}
        await db.met(SQL.spawns.end, names)
    return EndedSpawn(over, erased)


async def _take_back(db: Db, spawn: Spawn, key: str) -> None:
    """Erases the child, and ties its key to what it named before."""
    current = await reads.current_session(db, spawn.tenant, spawn.agent, key) if key else None
    await writes.erase(db, spawn.child)
    before = spawn.child._replace(session=spawn.previous_session)
    if (
        current == spawn.session
        and spawn.previous_session
        and await reads.head(db, before) is not None
    ):
        row = (spawn.tenant, spawn.agent, key, spawn.previous_session)
        await db.met(SQL.heads.bind_key, row)


async def _any_due(db: Db, now_ms: int) -> bool:
    if await db.row(SQL.spawns.due, {"now": now_ms, "limit": 1}) is not None:
        return True
    return await db.value(SQL.spawns.any_over, {"before": now_ms - KEPT_MS}) is not None


async def _find(db: Db, tenant: str, token: str, lock: str = "") -> Spawn | None:
    return await _one(db, SQL.spawns.one + lock, tenant=tenant, token=token)


async def _asked(db: Db, parent: Scope, request_id: str) -> Spawn | None:
    return await _one(db, SQL.spawns.asked, **named(parent, request_id=request_id))


async def _live_children(db: Db, parent: Scope) -> int:
    return int(await db.value(SQL.spawns.live_children, named(parent)))


async def _one(db: Db, statement: str, /, **names: Any) -> Spawn | None:
    found = columns.spawns(await db.rows(statement, names))
    return found[0] if found else None
