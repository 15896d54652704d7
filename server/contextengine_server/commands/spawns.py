"""What becomes of a child that was prepared: it starts, it is taken back, it ends, or its time
passes (contract §7)."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import structlog

from contextengine_server.context.scope import Scope
from contextengine_server.errors import InvalidField, RowNotFound, SpawnEnded, Violation
from contextengine_server.session import lifecycle
from contextengine_server.session.core import Address, Ref, SessionCore
from contextengine_server.store.rows import EndedSpawn, Spawn
from contextengine_server.telemetry.tracing import CURRENT

ROLLED_BACK = "rolled_back"
COMPLETED = "completed"

SWEEP_S = 1.0
MAX_SWEEP = 100

log = structlog.get_logger("contextengine.spawned")


async def live(core: SessionCore, tenant: str, token: str) -> Spawn:
    """The spawn that a token names. Raises RowNotFound, SpawnEnded."""
    spawn = await core.store.spawns.find(tenant, token)
    if spawn is not None and not spawn.ended_ms and spawn.expire_ms <= core.clock_ms():
        ended = await core.store.spawns.expire_one(tenant, token, core.clock_ms())
        if ended is not None:
            await _announce(core, ended)
        spawn = await core.store.spawns.find(tenant, token)
    if spawn is None:
        text = "is not known: give PrepareSubagentSpawnResponse.spawn_token as it was"
        raise RowNotFound(f"spawn_token: {text}", violations=[Violation("spawn_token", text)])
    if spawn.ended_ms:
        text = f"is over ({spawn.end_reason}): prepare another child, or go on without it"
        raise SpawnEnded(
            f"spawn_token: {text}",
            violations=[Violation("spawn_token", text)],
            metadata={"why": spawn.end_reason},
        )
    return spawn


async def start(core: SessionCore, address: Address, token: str) -> None:
    """The child is there: its prepared state no longer expires for want of one. Safe again.

    Raises RowNotFound, SpawnEnded; InvalidField where the token is another session's."""
    spawn = await live(core, address.scope.tenant, token)
    if spawn.child != address.scope:
        raise InvalidField(
            "spawn_token", "is another child's: give it with the session that it was prepared for"
        )
    if not await core.store.spawns.start(spawn.tenant, token, core.clock_ms()):
        await live(core, spawn.tenant, token)  # says why
    if not spawn.started:
        core.meters.subagents["started"].value += 1
        core.events.emit("subagent:started", *spawn.child, attributes=_parent_of(spawn))


async def roll_back(core: SessionCore, tenant: str, token: str, parent: Ref) -> bool:
    """Takes a preparation back; False where there is nothing left to take back. Raises InvalidField
    for another's parent."""
    address = await core.address(tenant, parent)
    spawn = await core.store.spawns.find(tenant, token)
    if spawn is None:
        return False
    if not await _names(core, address, parent, spawn.parent):
        raise InvalidField(
            "parent", "is not the parent of this spawn: give the one that it was prepared for"
        )
    return await _end(core, spawn, ROLLED_BACK, take_back=True) is not None


async def _names(core: SessionCore, address: Address, ref: Ref, scope: Scope) -> bool:
    """Whether a request names this session: also by a key that names a newer one by now."""
    if address.scope == scope:
        return True
    if ref.session or ref.agent != scope.agent:
        return False
    head = await core.store.head(scope)
    return head is not None and head.session_key == ref.key


async def end(core: SessionCore, tenant: str, child: Ref, reason: str, token: str) -> bool:
    """Ends a child and its session; True where it was known and alive. The token has the last word
    on which child."""
    address = await core.address(tenant, child)
    scope, alive = address.scope, False
    if token:
        spawn = await core.store.spawns.find(tenant, token)
        if spawn is None or not await _names(core, address, child, spawn.child):
            return False
        scope = spawn.child
    else:
        spawn = await core.store.spawns.newest_of(scope)
    if spawn is not None:
        ended = await _end(core, spawn, reason, take_back=reason != COMPLETED)
        alive = ended is not None
        if ended is not None and ended.erased:
            return True
    async with core.session(scope, lock=True) as session:
        if session.head is not None:
            done = await lifecycle.end(core, session, Address(scope), None, None)
            alive = alive or bool(done.numbers)
    return alive


async def _end(
    core: SessionCore, spawn: Spawn, reason: str, *, take_back: bool
) -> EndedSpawn | None:
    session = core.warm.enter(spawn.child)
    try:
        async with session.lock:
            with CURRENT.get().span("commit"):
                ended = await core.store.spawns.end(
                    spawn.tenant, spawn.token, reason, core.clock_ms(), take_back=take_back
                )
    finally:
        core.warm.leave(session)
    if ended is not None:
        await _announce(core, ended)
    return ended


async def expire(core: SessionCore) -> int:
    """Ends what has had its time; answers how many."""
    done = await core.store.spawns.expire(core.clock_ms(), MAX_SWEEP)
    for ended in done:
        await _announce(core, ended)
    return len(done)


async def _announce(core: SessionCore, ended: EndedSpawn) -> None:
    spawn, reason = ended.spawn, ended.spawn.end_reason
    kind = reason if reason in (ROLLED_BACK, "expired") else "ended"
    core.meters.subagents[kind].value += 1
    core.events.emit(
        f"subagent:{kind}", *spawn.child, attributes={**_parent_of(spawn), "reason": reason}
    )
    if ended.erased:
        core.selection.forget(spawn.tenant)
        core.warm.drop(spawn.child)
        core.events.emit("session:deleted", *spawn.child)
        while await core.store.index.erase():
            pass


def _parent_of(spawn: Spawn) -> dict[str, str]:
    return {"parent_agent": spawn.parent_agent, "parent_session": spawn.parent_session}


class Sweeper:
    """Expires spawns while the server runs: no host needs to say that their time has passed."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to sweep."""
        self._task = asyncio.create_task(self._sweep(), name="spawn-sweep")

    async def stop(self) -> None:
        """Ends it; what is due by then is swept by the next life."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _sweep(self) -> None:
        while True:
            try:
                while await expire(self._core) == MAX_SWEEP:
                    pass
            except Exception:
                log.exception("expiring children failed")
            await asyncio.sleep(SWEEP_S)
