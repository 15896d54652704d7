"""What is done now and then while the server runs: a task from start to stop, which no failure
ends. One ends sessions that nobody wrote to for long."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import ClassVar

import msgspec
import structlog

from contextengine_server.context.scope import Scope
from contextengine_server.errors import StoreDown
from contextengine_server.session.address import Address
from contextengine_server.session.lifecycle import Lifecycle
from contextengine_server.session.sessions import Sessions
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.protocols import Leases, Store

MAX_SWEEP = 100
"""Sessions that are looked at in one go."""

NOBODYS = Scope("", "", "")
"""What concerns no session."""


class Lead(msgspec.Struct, frozen=True):
    """Which of the servers over one database does what one alone should. `owner` is this one."""

    leases: Leases
    owner: str

    async def take(self, topic: str, pause_s: float) -> bool:
        """True where it is this server's, until some time after the next pause."""
        lease_ms = round(3_000 * pause_s) + 10_000
        return await self.leases.take(NOBODYS, topic, self.owner, lease_ms)

    async def give_back(self, topic: str) -> None:
        """Another may do it at once."""
        with suppress(StoreUnavailable):
            await self.leases.give_back(NOBODYS, topic, self.owner)


class Sweeper(ABC):
    """Sweeps, pauses, and sweeps again, until it is stopped."""

    topic: ClassVar[str]
    """Names its task and its log."""
    failure: ClassVar[str]
    """What the log says of a sweep that failed. The next one tries again."""
    at_once: ClassVar[bool] = False
    """True: the first sweep comes before the first pause."""
    everywhere: ClassVar[bool] = True
    """True: every server does it. False: one of those over a database does it for all."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._lead: Lead | None = None

    def start(self, lead: Lead | None = None) -> None:
        """Begins to sweep. `lead`: which server does what one alone should; None: this one."""
        self._lead = None if self.everywhere else lead
        self._task = asyncio.create_task(self._run(), name=self.topic)

    async def stop(self) -> None:
        """Ends it; what is due by then is swept after the next start."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None
            if self._lead is not None:
                await self._lead.give_back(self.topic)

    @abstractmethod
    async def sweep(self) -> object:
        """Does what is due now."""

    @abstractmethod
    def pause_s(self) -> float:
        """How long it is until the next sweep, in seconds."""

    async def pause(self) -> None:
        """Until the next sweep."""
        await asyncio.sleep(self.pause_s())

    async def _run(self) -> None:
        log = structlog.get_logger(f"contextengine.{self.topic}")
        if not self.at_once:
            await self.pause()
        while True:
            try:
                if self._lead is None or await self._lead.take(self.topic, self.pause_s()):
                    await self.sweep()
            except (StoreUnavailable, StoreDown):
                pass  # the store says so itself, once
            except Exception:
                log.exception(self.failure)
            await self.pause()


class IdleSweeper(Sweeper):
    """Ends idle sessions while the server runs."""

    topic = "idle"
    everywhere = False
    failure = "idle sessions were not ended"

    def __init__(
        self, sessions: Sessions, store: Store, lifecycle: Lifecycle, idle_ms: int
    ) -> None:
        super().__init__()
        self._sessions, self._store, self._lifecycle = sessions, store, lifecycle
        self._idle_ms = idle_ms

    async def sweep(self) -> None:
        """Ends what is idle now."""
        for head in await self._store.idle_sessions(self._limit(), MAX_SWEEP):
            try:
                await self._end(head.scope)
            except (StoreUnavailable, StoreDown):
                raise
            except Exception:
                # One whose row is damaged, say: others behind it end all the same.
                structlog.get_logger(f"contextengine.{self.topic}").exception(
                    "a session was not ended", agent=head.scope.agent, session=head.scope.session
                )

    async def _end(self, scope: Scope) -> None:
        async with self._sessions.open(scope, lock=True) as session:
            if session.head is not None and session.head.updated_ms < self._limit():
                await self._lifecycle.end(session, Address(scope), None, session.revision)

    def pause_s(self) -> float:
        """A quarter of that time, and a minute at most."""
        return min(60.0, max(self._idle_ms / 4000, 0.2))

    def _limit(self) -> int:
        return self._sessions.clock_ms() - self._idle_ms
