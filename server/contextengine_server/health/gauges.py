"""Gauges of what only the store knows: looked up now and then, so that whoever reads a gauge waits
for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import structlog

from contextengine_server.runtime.guard_states import read_state
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Workload
from contextengine_server.summarize.guards.guarded import GuardStatus
from contextengine_server.summarize.request import SummaryPolicy
from contextengine_server.telemetry.metrics import Metrics

INTERVAL_S = 5.0
"""A third of the usual time between two scrapes."""

PHASES = ("closed", "open", "half_open")

log = structlog.get_logger("contextengine.sampling")


class Sampler:
    """Looks at the store at intervals. `policy`: the limits that guards are judged by. It registers
    its gauges at once."""

    def __init__(
        self, store: Store, policy: SummaryPolicy, clock_ms: Callable[[], int], metrics: Metrics
    ) -> None:
        self._store, self._policy, self._clock_ms = store, policy, clock_ms
        self._work = Workload()
        self._guards: list[GuardStatus] = []
        self._up = True
        self._facts: dict[str, str] = {}
        self._task: asyncio.Task[None] | None = None
        self._register(metrics)

    def start(self) -> None:
        """Starts to look."""
        self._task = asyncio.create_task(self._run(), name="sampling")

    async def stop(self) -> None:
        """Stops to look."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def look(self) -> None:
        """Looks once. Where the store does not answer, what was seen last stands, and the store is
        down."""
        health = await self._store.health()
        self._up, self._facts = health.ok, health.facts
        try:
            self._work = await self._store.workload.now(self._clock_ms())
        except StoreUnavailable:
            self._up = False
            return
        now = self._clock_ms()
        self._guards = [read_state(state).status(self._policy, now) for state in self._work.guards]

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
            except Exception:
                log.exception("the store was not looked at")
            await asyncio.sleep(INTERVAL_S)

    def _register(self, metrics: Metrics) -> None:
        debts = {
            "waiting": lambda: self._work.debts_waiting,
            "running": lambda: self._work.debts_running,
            "held": lambda: self._work.debts_held,
        }
        for state, read in debts.items():
            metrics.gauge(
                "contextengine.background.jobs",
                read,
                "Compactions that are owed",
                {"state": state},
                "{job}",
            )
        metrics.gauge(
            "contextengine.background.age",
            self._age,
            "How long the oldest job that waits has done so",
            unit="s",
        )
        metrics.gauge(
            "contextengine.lent.jobs",
            lambda: self._work.jobs_open,
            "Jobs for lent models without a result",
            unit="{job}",
        )
        for phase in PHASES:
            metrics.gauge(
                "contextengine.summarizer.breakers",
                partial(self._in_phase, phase),
                "Tenants by the state of their summarizers' circuit breaker; a tenant that never"
                " asked a model has none",
                {"state": phase},
                "{tenant}",
            )
        metrics.gauge(
            "contextengine.summarizer.spent",
            lambda: sum(guard.spent_hour for guard in self._guards),
            "Tokens that summaries took of models, all tenants",
            {"window": "hour"},
            "{token}",
        )
        metrics.gauge(
            "contextengine.summarizer.spent",
            lambda: sum(guard.spent_day for guard in self._guards),
            "Tokens that summaries took of models, all tenants",
            {"window": "day"},
            "{token}",
        )
        metrics.gauge(
            "contextengine.summarizer.spend",
            self._spend,
            "Share of its cap that the tenant nearest to one has spent, of the hour or the day, by"
            " the configured limits",
            unit="1",
        )
        metrics.gauge(
            "contextengine.store.up",
            lambda: int(self._up),
            "1 while the store reads and its last write succeeded",
        )
        metrics.gauge(
            "contextengine.store.size",
            lambda: self._fact("bytes"),
            "What the database takes on disk",
            unit="By",
        )
        metrics.gauge(
            "contextengine.store.free",
            lambda: self._fact("free_bytes"),
            "What is left on the disk of the database",
            unit="By",
        )
        metrics.gauge(
            "contextengine.store.write_queue",
            self._store.workload.queued,
            "Writes that wait",
            unit="{write}",
        )

    def _in_phase(self, phase: str) -> int:
        return sum(guard.phase == phase for guard in self._guards)

    def _age(self) -> float:
        oldest = self._work.oldest_ms
        return 0.0 if oldest is None else max(0, self._clock_ms() - oldest) / 1000

    def _spend(self) -> float:
        limits = self._policy.spend
        shares = [0.0]
        for guard in self._guards:
            for spent, cap in (
                (guard.spent_hour, limits.per_hour),
                (guard.spent_day, limits.per_day),
            ):
                if cap:
                    shares.append(spent / cap)
        return max(shares)

    def _fact(self, name: str) -> float:
        return float(self._facts.get(name, 0))
