"""Work in the background. The debt row is the only record of it, claimed by lease; a wake-up merely
saves waiting.

One job at a time per session. What is committed stays committed when a job is cancelled; what is
owed stays owed.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import orjson
import structlog

from contextengine_server.compaction.compactor import (
    MAX_PASSES,
    Wanted,
    compact,
    compacted,
    reached,
)
from contextengine_server.compaction.summary_request import MAX_FOCUS
from contextengine_server.context.scope import Scope
from contextengine_server.session.budget import BudgetSpec, budget_of, target
from contextengine_server.session.cache import Owed, Session
from contextengine_server.session.core import Address, SessionCore
from contextengine_server.session.lifecycle import end
from contextengine_server.session.spans import name_scope
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.rows import Debt
from contextengine_server.telemetry.tracing import CURRENT, Tracer, under

COMPACT = "compact"
ASKED = "compact:asked"
"""A compaction that a host asked for and does not wait for, besides one that a threshold made
due."""

COMPACTS = "compacts-transcript"
"""The host's capability to compact its own transcript when an engine delegates."""

LEASE_MS = 15_000
"""How long a job of a server that was killed stays its own; it is renewed at a third of that."""
IDLE_POLL_S = 1.0
WORKERS = 4
"""Jobs at a time, each of another session: most of a job is waiting for a summarizer."""
PASSES = 5
"""Passes of one job, so that other sessions get their turn: four leaves and one that folds (Comis's
bounds of a turn)."""
DEADLINE_S = 120.0
"""How long one job may take (lossless-claw's sweep); what it committed by then stays."""
RETRY_MS = (1_000, 10_000, 60_000, 600_000)
MAX_SWEEP = 100

log = structlog.get_logger("contextengine.background")


class Background:
    """Claims debts and works them off, one at a time each worker."""

    def __init__(
        self,
        core: SessionCore,
        owner: str,
        workers: int = WORKERS,
        idle_end_ms: int | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self.deadline_s = DEADLINE_S
        self.core = core
        self.owner = owner
        self.workers = workers
        self.idle_end_ms = idle_end_ms
        self.tracer = tracer or Tracer()
        self.running: dict[Scope, int] = {}
        """Sessions whose job runs here, with the time it began."""
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        core.wake_background = self._wake.set

    def start(self) -> None:
        """Starts the workers."""
        self._tasks = [
            asyncio.create_task(self._work(), name=f"background-{index}")
            for index in range(self.workers)
        ]
        if self.idle_end_ms is not None:
            self._tasks.append(
                asyncio.create_task(self._sweep(self.idle_end_ms), name="idle-sweep")
            )

    async def stop(self) -> None:
        """Cancels what runs. Committed passes stay; the lease is given back, so that the next start
        goes on."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        self._tasks = []

    async def _work(self) -> None:
        while True:
            try:
                debt = await self.core.store.claim_debt(self.owner, self.core.clock_ms(), LEASE_MS)
                if debt is not None:
                    await self._job(debt)
                    continue
            except asyncio.CancelledError:
                raise
            except Exception:
                log.exception("background work failed")
            self._wake.clear()
            # Not wait_for: it loses a cancellation that comes together with the event.
            with suppress(TimeoutError):
                async with asyncio.timeout(IDLE_POLL_S):
                    await self._wake.wait()

    async def _job(self, debt: Debt) -> None:
        core, store = self.core, self.core.store
        began = self.running[debt.scope] = core.clock_ms()
        keeper = asyncio.create_task(self._keep(debt))
        self._tell("started", debt, {"attempts": debt.attempts})
        outcome = "cancelled"
        try:
            # Linked to the call that caused it, which did not wait.
            with self.tracer.background("compact", debt.cause) as span, under(span):
                name_scope(span, debt.scope)
                more = await self._within_deadline(debt)
        except asyncio.CancelledError:
            await store.release_debt(debt, done=False)
            raise
        except Exception as error:
            outcome, wait = "failed", RETRY_MS[min(debt.attempts, len(RETRY_MS) - 1)]
            log.warning(
                "compaction failed",
                session=debt.scope.session,
                error=type(error).__name__,
                retry_ms=wait,
            )
            await store.release_debt(
                debt, done=False, not_before_ms=core.clock_ms() + wait, error=type(error).__name__
            )
        else:
            outcome = "more" if more else "done"
            # Put back behind what others owe.
            await store.release_debt(debt, done=not more, not_before_ms=core.clock_ms())
            session = core.warm.held(debt.scope)
            if session is not None and session.owed is not None:
                session.owed.waiting = more
        finally:
            keeper.cancel()
            self.running.pop(debt.scope, None)
            self._tell("ended", debt, {"duration_ms": core.clock_ms() - began}, outcome)

    def _tell(self, what: str, debt: Debt, counts: dict[str, int], outcome: str = "") -> None:
        """Says that a job began or ended, and how."""
        attributes = {"kind": debt.kind.partition(":")[0]} | (
            {"outcome": outcome} if outcome else {}
        )
        self.core.events.emit(
            f"background:{what}", *debt.scope, counts=counts, attributes=attributes
        )

    async def _keep(self, debt: Debt) -> None:
        """Renews the lease while the job runs."""
        while True:
            await asyncio.sleep(LEASE_MS / 3000)
            try:
                if not await self.core.store.extend_debt(debt, self.core.clock_ms() + LEASE_MS):
                    # Settled, or somebody else's by now: a commit of both finds that its ground
                    # has moved.
                    return
            except StoreUnavailable:
                log.warning("the lease of a job was not renewed", session=debt.scope.session)

    async def _within_deadline(self, debt: Debt) -> bool:
        """One job; True where there is more to do. Raises TimeoutError where it got nowhere in all
        its time."""
        before = await self.core.store.head(debt.scope)
        try:
            async with asyncio.timeout(self.deadline_s):
                return await self._compact(debt)
        except TimeoutError:
            after = await self.core.store.head(debt.scope)
            if before is None or after is None or after.generation <= before.generation:
                raise
            return True

    async def _compact(self, debt: Debt) -> bool:
        """One job; True where there is more to do."""
        core, scope = self.core, debt.scope
        engine = (await core.select(scope)).engine
        if await core.store.head(scope) is None:
            return False
        raw = orjson.loads(debt.payload)
        asked = debt.kind == ASKED
        async with core.session(scope) as session:
            if not engine.owns_compaction and (not asked or COMPACTS in session.state.capabilities):
                return False
            wanted = Wanted(
                raw.get("available") or available_of(core, session),
                force=raw.get("force", False),
                to_threshold=raw.get("to_threshold", True),
                measured=raw.get("measured"),
                focus=raw.get("focus", ""),
                passes=MAX_PASSES if asked else PASSES,
            )
            if session.state.held and not wanted.force:
                return False
            async with session.compaction:
                since = raw.get("generation")
                if (
                    since is not None
                    and core.require(session).generation > since
                    and reached(core, engine, session.view, wanted)
                ):
                    return False  # the job that ran meanwhile did what was asked for
                done = await compact(core, Address(scope), engine, wanted)
                compacted(CURRENT.get(), done)
        return not asked and len(done.summaries) >= PASSES

    async def _sweep(self, idle_ms: int) -> None:
        """Ends sessions that nobody wrote to for long."""
        while True:
            await asyncio.sleep(min(60.0, max(idle_ms / 4000, 0.2)))
            for head in await self.core.store.idle_sessions(
                self.core.clock_ms() - idle_ms, MAX_SWEEP
            ):
                async with self.core.session(head.scope, lock=True) as session:
                    if (
                        session.head is not None
                        and session.head.updated_ms <= self.core.clock_ms() - idle_ms
                    ):
                        await end(self.core, session, Address(head.scope), None, session.revision)


def available_of(core: SessionCore, session: Session, spec: BudgetSpec | None = None) -> int:
    """What a budget leaves for messages, in the reference encoding; by default the session's own
    window."""
    aim = target(session, "", "")
    return max(1, budget_of(spec or BudgetSpec(), aim, core.defaults).reference)


async def queue_compaction(
    core: SessionCore,
    scope: Scope,
    available: int,
    cause: str = "",
    *,
    measured: int | None = None,
    asked: Wanted | None = None,
) -> bool:
    """Records that a compaction is owed, for what a call's budget leaves, and wakes a worker.
    `measured`: the tokens that the harness measured, which made it due. `asked`: a host asked for
    this.

    False where none is: one was tried in vain, and nothing has changed since.
    """
    session = core.warm.held(scope)
    payload: dict[str, object] = {"available": available, "measured": measured}
    if asked is not None:
        payload |= {
            "force": asked.force,
            "to_threshold": asked.to_threshold,
            "measured": asked.measured,
            "focus": asked.focus[:MAX_FOCUS],
            "generation": (
                session.head.generation
                if session is not None and session.head is not None
                else None
            ),
        }
    elif session is not None and session.head is not None:
        generation, total = session.head.generation, session.view.total
        if session.owed is not None and session.owed.stands(generation, total, available):
            return session.owed.waiting
        session.owed = Owed(generation, total, available)
    kind = COMPACT if asked is None else ASKED
    debt = Debt(scope, kind, core.clock_ms(), cause=cause, payload=orjson.dumps(payload))
    try:
        await core.store.add_debt(debt)
    except BaseException:
        if session is not None:
            session.owed = None
        raise
    CURRENT.get().set("contextengine.compaction.queued", True)
    core.wake_background()
    return True
