"""What becomes of a child that was prepared: it starts, it is taken back, it ends, or its time
passes (docs/semantics.md#children)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from contextengine_server.context.scope import Scope
from contextengine_server.errors import FieldViolation, InvalidField, RowNotFound, SpawnEnded
from contextengine_server.session.address import Address, Ref
from contextengine_server.session.selection import Selection
from contextengine_server.session.sessions import SessionCache
from contextengine_server.session.sweeper import Sweeper
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import EndedSpawn, Spawn
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.meters import Meters
from contextengine_server.telemetry.tracing import CURRENT

ROLLED_BACK = "rolled_back"
COMPLETED = "completed"

SWEEP_S = 1.0
MAX_SWEEP = 100


class ChildSessions(msgspec.Struct, frozen=True):
    """Children by their tokens: what becomes of each is decided and told here."""

    store: Store
    cache: SessionCache
    events: Events
    meters: Meters
    selection: Selection
    clock_ms: Callable[[], int]

    async def live(self, tenant: str, token: str) -> Spawn:
        """The spawn that a token names. Raises RowNotFound, SpawnEnded."""
        spawn = await self.store.spawns.find(tenant, token)
        if spawn is not None and not spawn.ended_ms and spawn.expire_ms <= self.clock_ms():
            ended = await self.store.spawns.expire_one(tenant, token, self.clock_ms())
            if ended is not None:
                await self._announce(ended)
            spawn = await self.store.spawns.find(tenant, token)
        if spawn is None:
            text = "is not known: give PrepareSubagentSpawnResponse.spawn_token as it was"
            raise RowNotFound(
                f"spawn_token: {text}", violations=[FieldViolation("spawn_token", text)]
            )
        if spawn.ended_ms:
            text = f"is over ({spawn.end_reason}): prepare another child, or go on without it"
            raise SpawnEnded(
                f"spawn_token: {text}",
                violations=[FieldViolation("spawn_token", text)],
                metadata={"why": spawn.end_reason},
            )
        return spawn

    async def start(self, address: Address, token: str) -> None:
        """The child is there: its prepared state no longer expires for want of one. Safe again.

        Raises RowNotFound, SpawnEnded; InvalidField where the token is another session's."""
        spawn = await self.live(address.scope.tenant, token)
        if spawn.child != address.scope:
            raise InvalidField(
                "spawn_token",
                "is another child's: give it with the session that it was prepared for",
            )
        if not await self.store.spawns.start(spawn.tenant, token, self.clock_ms()):
            await self.live(spawn.tenant, token)  # raises what has become of it meanwhile
        if not spawn.started:
            self.meters.subagents["started"].value += 1
            self.events.emit("subagent:started", *spawn.child, attributes=_parent_of(spawn))

    async def names(self, address: Address, ref: Ref, scope: Scope) -> bool:
        """Whether a request names this session: also by a key that names a newer one by now."""
        if address.scope == scope:
            return True
        if ref.session or ref.agent != scope.agent:
            return False
        head = await self.store.head(scope)
        return head is not None and head.session_key == ref.key

    async def end(self, spawn: Spawn, reason: str, *, take_back: bool) -> EndedSpawn | None:
        """Ends a spawn, and takes its session back where it never said anything and `take_back`
        is asked. None: it was over."""
        session = self.cache.enter(spawn.child)
        try:
            async with session.lock:
                with CURRENT.get().span("commit"):
                    ended = await self.store.spawns.end(
                        spawn.tenant, spawn.token, reason, self.clock_ms(), take_back=take_back
                    )
        finally:
            self.cache.leave(session)
        if ended is not None:
            await self._announce(ended)
        return ended

    async def expire(self) -> int:
        """Ends what has had its time; answers how many."""
        done = await self.store.spawns.expire(self.clock_ms(), MAX_SWEEP)
        for ended in done:
            await self._announce(ended)
        return len(done)

    async def _announce(self, ended: EndedSpawn) -> None:
        spawn, reason = ended.spawn, ended.spawn.end_reason
        kind = reason if reason in (ROLLED_BACK, "expired") else "ended"
        self.meters.subagents[kind].value += 1
        self.events.emit(
            f"subagent:{kind}", *spawn.child, attributes={**_parent_of(spawn), "reason": reason}
        )
        if ended.erased:
            self.selection.forget(spawn.tenant)
            self.cache.drop(spawn.child)
            self.events.emit("session:deleted", *spawn.child)
            while await self.store.index.erase():
                pass


def _parent_of(spawn: Spawn) -> dict[str, str]:
    return {"parent_agent": spawn.parent_agent, "parent_session": spawn.parent_session}


class ChildSweeper(Sweeper):
    """Expires spawns while the server runs: no host needs to say that their time has passed."""

    topic = "children"
    everywhere = False
    failure = "expiring children failed"
    at_once = True

    def __init__(self, children: ChildSessions) -> None:
        super().__init__()
        self._children = children

    async def sweep(self) -> None:
        """Expires all that is due, however much."""
        while await self._children.expire() == MAX_SWEEP:
            pass

    def pause_s(self) -> float:
        """See SWEEP_S."""
        return SWEEP_S
