"""Children that sessions spawned, in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.commits import check
from contextengine_server.store.errors import RevisionConflict, TooManyChildren
from contextengine_server.store.rows import KEPT_MS, Commit, EndedSpawn, Spawn

from . import commits
from .tables import Tables


class MemorySpawns:
    """`Spawns` over a dictionary. `tables` answers the tables, or raises StoreUnavailable;
    `committed` and `erased` tell who observes the store."""

    def __init__(
        self,
        tables: Callable[[], Tables],
        committed: Callable[[Commit], None],
        erased: Callable[[Sequence[Scope]], None],
    ) -> None:
        self._tables = tables
        self._committed, self._erased = committed, erased

    async def prepare(self, spawn: Spawn, commit: Commit, most_live: int) -> Spawn:
        """Writes a spawn and the commit that makes its child, both or neither."""
        check(commit)
        tables = self._tables()
        known = await self.asked(spawn.parent, spawn.request_id)
        if known is not None:
            return known
        if spawn.parent not in tables.sessions:
            raise RevisionConflict(spawn.parent, spawn.parent_revision, None)
        if await self.live_children(spawn.parent) >= most_live:
            raise TooManyChildren
        commits.commit(tables, commit)
        tables.spawns[spawn.tenant, spawn.token] = spawn
        self._committed(commit)
        return spawn

    async def find(self, tenant: str, token: str) -> Spawn | None:
        """A spawn by its token; None where there is none."""
        return self._tables().spawns.get((tenant, token))

    async def asked(self, parent: Scope, request_id: str) -> Spawn | None:
        """The spawn that a request of this id made; None where there is none."""
        return next(
            (
                spawn
                for spawn in self._tables().spawns.values()
                if spawn.parent == parent and spawn.request_id == request_id != ""
            ),
            None,
        )

    async def newest_of(self, child: Scope) -> Spawn | None:
        """How a session was spawned; None where it was not."""
        made = [spawn for spawn in self._tables().spawns.values() if spawn.child == child]
        return max(made, key=lambda spawn: spawn.created_ms, default=None)

    async def live_children(self, parent: Scope) -> int:
        """How many live children a session has."""
        spawns = self._tables().spawns.values()
        return sum(spawn.parent == parent and not spawn.ended_ms for spawn in spawns)

    async def start(self, tenant: str, token: str, now_ms: int) -> bool:
        """The child is there. False where the spawn is over, or its time is."""
        spawn = self._live(tenant, token)
        if spawn is None or spawn.expire_ms <= now_ms:
            return False
        self._put(replace(spawn, started=True))
        return True

    async def spend(self, tenant: str, token: str, tokens: int) -> bool:
        """Counts tokens that were read, all or none of them."""
        spawn = self._live(tenant, token)
        if spawn is None or spawn.used_tokens + tokens > spawn.grant_tokens:
            return False
        self._put(replace(spawn, used_tokens=spawn.used_tokens + tokens))
        return True

    async def end(
        self, tenant: str, token: str, reason: str, now_ms: int, *, take_back: bool
    ) -> EndedSpawn | None:
        """Ends a live spawn; None where there is none."""
        spawn = self._live(tenant, token)
        return None if spawn is None else self._end(spawn, reason, now_ms, take_back=take_back)

    async def expire(self, now_ms: int, limit: int) -> Sequence[EndedSpawn]:
        """Ends spawns whose time has passed, and forgets those that ended long ago."""
        spawns = self._tables().spawns
        live = [spawn for spawn in spawns.values() if not spawn.ended_ms]
        due = sorted(
            (spawn for spawn in live if spawn.expire_ms <= now_ms), key=lambda one: one.expire_ms
        )
        over = sorted(
            (spawn for spawn in spawns.values() if 0 < spawn.ended_ms <= now_ms - KEPT_MS),
            key=lambda one: one.ended_ms,
        )
        for spawn in over[:limit]:
            del spawns[spawn.tenant, spawn.token]
        ended = [self._expire(spawn, now_ms) for spawn in due[:limit]]
        return [one for one in ended if one is not None]

    async def expire_one(self, tenant: str, token: str, now_ms: int) -> EndedSpawn | None:
        """The same for one spawn, where it is due; None where it goes on."""
        spawn = self._live(tenant, token)
        if spawn is None or spawn.expire_ms > now_ms:
            return None
        return self._expire(spawn, now_ms)

    def _live(self, tenant: str, token: str) -> Spawn | None:
        spawn = self._tables().spawns.get((tenant, token))
        return None if spawn is None or spawn.ended_ms else spawn

    def _put(self, spawn: Spawn) -> None:
        self._tables().spawns[spawn.tenant, spawn.token] = spawn

    def _expire(self, spawn: Spawn, now_ms: int) -> EndedSpawn | None:
        head = self._tables().head(spawn.child)
        begun = head is not None and (spawn.started or head.last_sequence > head.parent_sequence)
        if head is not None and begun and head.updated_ms + spawn.ttl_ms > now_ms:
            self._put(replace(spawn, expire_ms=head.updated_ms + spawn.ttl_ms))
            return None
        return self._end(spawn, "expired", now_ms, take_back=not begun)

    def _end(self, spawn: Spawn, reason: str, now_ms: int, *, take_back: bool) -> EndedSpawn:
        tables = self._tables()
        over = replace(spawn, ended_ms=now_ms, end_reason=reason)
        head = tables.head(spawn.child)
        untouched = head is not None and head.last_sequence == head.parent_sequence
        erased = take_back and untouched and not tables.dependents(spawn.child)
        if head is not None and erased:
            key = (spawn.tenant, spawn.agent, head.session_key)
            current = tables.keys.get(key)
            tables.erase(spawn.child)
            before = spawn.child._replace(session=spawn.previous_session)
            if current == spawn.session and before in tables.sessions:
                tables.keys[key] = spawn.previous_session
            self._erased([spawn.child])
        self._put(over)
        return EndedSpawn(over, erased)
