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

from contextengine_server.compaction.compactor import Compactor
from contextengine_server.compaction.memory_job import MemoryJob
from contextengine_server.compaction.model_failure import blocked
from contextengine_server.compaction.queue import ASKED, REMAKE, CompactionQueue
from contextengine_server.compaction.remake import Remake
from contextengine_server.compaction.request import MAX_PASSES, CompactionRequest, describe
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.scope import Scope
from contextengine_server.engines.host_capabilities import COMPACTS
from contextengine_server.fairness.turns import Turns, Weight, equal
from contextengine_server.session.address import Address
from contextengine_server.session.assembly.budget import (
    BudgetDefaults,
    available_of,
)
from contextengine_server.session.change import Editor
from contextengine_server.session.selection import Selection
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.spans import name_scope
from contextengine_server.session.state import ALL_OF_IT, FLUSH
from contextengine_server.store.debts import Debt
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.protocols import Store
from contextengine_server.summarize.request import Steering
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.tracing import CURRENT, Tracer, under

LEASE_MS = 15_000
"""How long a job of a server that was killed stays its own; it is renewed at a third of that."""
IDLE_POLL_S = 1.0
WORKERS = 4
"""Jobs at a time, each of another session: most of a job is waiting for a summarizer."""
PASSES = 5
"""Passes of one job, so that other sessions get their turn: four leaves, as many
as Comis makes after a turn (packages/agent/src/context-engine/constants.ts,
LCD_MAX_LEAF_PASSES_PER_TURN), and one that folds."""
DEADLINE_S = 120.0
"""How long one job may take, as lossless-claw's option sweepDeadlineMs (src/db/config.ts). What it
committed by then stays."""
RETRY_MS = (1_000, 10_000, 60_000, 600_000)
REMAKE_MS = (60_000, 300_000, 900_000, 3_600_000)
"""How long it is until summaries are tried again that nobody better wrote."""
MAX_REMAKES = 24
"""After so many tries, most of a day, they stay until the session is compacted again: a model that
answers what is no summary would be asked for ever."""

log = structlog.get_logger("contextengine.background")


class Background:
    """Claims compactions that are owed and works them off, one at a time each worker; tenants come
    by turns."""

    def __init__(
        self,
        sessions: Sessions,
        store: Store,
        selection: Selection,
        compactor: Compactor,
        queue: CompactionQueue,
        events: Events,
        budgets: BudgetDefaults,
        owner: str,
        *,
        workers: int = WORKERS,
        deadline_s: float = DEADLINE_S,
        tracer: Tracer | None = None,
        weight: Weight = equal,
    ) -> None:
        self.deadline_s = deadline_s
        self.owner = owner
        self.workers = workers
        self.running: dict[Scope, int] = {}
        """Sessions whose job runs here, with the time it began."""
        self._sessions, self._store, self._selection = sessions, store, selection
        self._compactor, self._queue, self._events = compactor, queue, events
        self._remake = Remake(compactor)
        self._memory = MemoryJob(compactor, Editor(sessions, store, events))
        self._budgets, self._clock_ms = budgets, sessions.clock_ms
        self._tracer = tracer or Tracer()
        self._turns = Turns(weight)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Starts the workers."""
        self._tasks = [
            asyncio.create_task(self._work(), name=f"background-{index}")
            for index in range(self.workers)
        ]

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
                debt = await self._claim()
                if debt is not None:
                    await self._job(debt)
                    continue
            except asyncio.CancelledError:
                raise
            except StoreUnavailable:
                pass  # the store says so itself, once
            except Exception:
                log.exception("background work failed")
            self._queue.woken.clear()
            # Not wait_for: it loses a cancellation that comes together with the event.
            with suppress(TimeoutError):
                async with asyncio.timeout(IDLE_POLL_S):
                    await self._queue.woken.wait()

    async def _claim(self) -> Debt | None:
        """What is to be done next: the oldest that is due of the tenant whose turn it is."""
        debtors = await self._store.debtors(self._clock_ms())
        while debtors:
            tenant = self._turns.first(debtors)
            debtors.remove(tenant)
            # Before it is claimed: another worker asks meanwhile.
            self._turns.served(tenant)
            debt = await self._store.claim_debt(
                self.owner, self._clock_ms(), LEASE_MS, tenant=tenant
            )
            if debt is not None:
                return debt
        return None

    async def _job(self, debt: Debt) -> None:
        store = self._store
        began = self.running[debt.scope] = self._clock_ms()
        keeper = asyncio.create_task(self._keep(debt))
        self._tell("started", debt, {"attempts": debt.attempts})
        outcome = "cancelled"
        try:
            # Linked to the call that caused it, which did not wait.
            with self._tracer.background("compact", debt.cause) as span, under(span):
                name_scope(span, debt.scope)
                wait_ms = await self._within_deadline(debt)
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
                debt, done=False, not_before_ms=self._clock_ms() + wait, error=type(error).__name__
            )
        else:
            more = wait_ms is not None
            outcome = "more" if more else "done"
            # Put back behind what others owe.
            later = self._clock_ms() + (wait_ms or 0)
            await store.release_debt(debt, done=not more, not_before_ms=later)
            session = self._sessions.cache.find(debt.scope)
            if (
                session is not None
                and session.pending is not None
                and debt.kind not in (REMAKE, FLUSH)
            ):
                session.pending.waiting = more
        finally:
            keeper.cancel()
            self.running.pop(debt.scope, None)
            self._tell("ended", debt, {"duration_ms": self._clock_ms() - began}, outcome)

    def _tell(self, what: str, debt: Debt, counts: dict[str, int], outcome: str = "") -> None:
        """Says that a job began or ended, and how."""
        attributes = {"kind": debt.kind.partition(":")[0]} | (
            {"outcome": outcome} if outcome else {}
        )
        self._events.emit(f"background:{what}", *debt.scope, counts=counts, attributes=attributes)

    async def _keep(self, debt: Debt) -> None:
        """Renews the lease while the job runs."""
        while True:
            await asyncio.sleep(LEASE_MS / 3000)
            try:
                if not await self._store.extend_debt(debt, self._clock_ms() + LEASE_MS):
                    # Settled, or somebody else's by now: a commit of both finds that its ground
                    # has moved.
                    return
            except StoreUnavailable:
                log.warning("the lease of a job was not renewed", session=debt.scope.session)

    async def _within_deadline(self, debt: Debt) -> int | None:
        """One job; after how many ms there is more to do, None: there is nothing. Raises
        TimeoutError where it got nowhere in all its time."""
        before = await self._store.head(debt.scope)
        try:
            async with asyncio.timeout(self.deadline_s):
                if debt.kind == REMAKE:
                    return await self._make_again(debt)
                if debt.kind == FLUSH:
                    await self._flush(debt)
                    return None
                return 0 if await self._compact(debt) else None
        except TimeoutError:
            after = await self._store.head(debt.scope)
            if before is None or after is None or after.generation <= before.generation:
                raise
            return 0

    async def _make_again(self, debt: Debt) -> int | None:
        """Makes summaries again that stood in for better ones; as `_within_deadline`."""
        scope = debt.scope
        engine = (await self._selection.engine_for(scope)).engine
        if await self._store.head(scope) is None:
            return None
        sessions = self._sessions
        async with sessions.open(scope) as session, sessions.compacting(session):
            done = await self._remake.run(
                Address(scope), engine, most=PASSES, look_for_quotes=False
            )
            describe(CURRENT.get(), done)
        if len(done.summaries) >= PASSES:
            return 0
        if not done.error or debt.attempts >= MAX_REMAKES:
            return None
        return REMAKE_MS[min(debt.attempts, len(REMAKE_MS)) - 1]

    async def _flush(self, debt: Debt) -> None:
        """Has memory told of what a session owes it."""
        scope = debt.scope
        engine = (await self._selection.engine_for(scope)).engine
        if await self._store.head(scope) is None:
            return
        everything = debt.payload == ALL_OF_IT
        raw = orjson.loads(b"{}" if everything else debt.payload or b"{}")
        async with self._sessions.open(scope) as session:
            available = ReferenceTokens(
                raw.get("available") or available_of(session, self._budgets)
            )
            async with self._sessions.compacting(session):
                if everything:
                    await self._memory.catch_up(Address(scope))
                await self._memory.run(Address(scope), engine, available)

    async def _compact(self, debt: Debt) -> bool:
        """One job; True where there is more to do."""
        scope = debt.scope
        engine = (await self._selection.engine_for(scope)).engine
        if await self._store.head(scope) is None:
            return False
        raw = orjson.loads(debt.payload)
        asked = debt.kind == ASKED
        async with self._sessions.open(scope) as session:
            if not engine.owns_compaction and (not asked or COMPACTS in session.state.capabilities):
                return False
            wanted = CompactionRequest(
                raw.get("available") or available_of(session, self._budgets),
                force=raw.get("force", False),
                to_threshold=raw.get("to_threshold", True),
                uncounted=raw.get("uncounted", 0),
                steering=Steering(raw.get("focus", ""), raw.get("memory_context", "")),
                passes=MAX_PASSES if asked else PASSES,
            )
            if session.state.held and not wanted.force:
                return False
            if not asked and blocked(engine, session.state, self._clock_ms()):
                return False
            async with self._sessions.compacting(session):
                since = raw.get("generation")
                if (
                    since is not None
                    and session.require().generation > since
                    and self._compactor.reached(engine, session.encoding, session.view, wanted)
                ):
                    return False  # the job that ran meanwhile did what was asked for
                done = await self._compactor.compact(Address(scope), engine, wanted)
                describe(CURRENT.get(), done)
        return not asked and len(done.summaries) >= PASSES
