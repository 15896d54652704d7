"""Compactions that are owed: recorded in the store, and worked off in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec
import orjson

from contextengine_server.compaction.request import CompactionRequest
from contextengine_server.compaction.summary_quality import awaited
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import Summary
from contextengine_server.session.session import PendingCompaction
from contextengine_server.session.sessions import SessionCache
from contextengine_server.session.state import FLUSH
from contextengine_server.store.debts import Debt
from contextengine_server.store.protocols import Store
from contextengine_server.telemetry.tracing import CURRENT

COMPACT = "compact"
REMAKE = "remake"
"""Summaries that are to be made again once who was to write them is back."""

FIRST_TRY_MS = 60_000
"""How long what was down is given: as long as a breaker stays open by default."""

ASKED = "compact:asked"
"""A compaction that a host asked for and does not wait for, besides one that a threshold made
due."""


def remake_owed(
    scope: Scope, summaries: Sequence[Summary], now_ms: int, cause: str = ""
) -> Debt | None:
    """What a session with these live summaries owes: that those which stand in for better ones are
    made again; None: nothing."""
    if not awaited(summaries):
        return None
    return Debt(scope, REMAKE, now_ms, not_before_ms=now_ms + FIRST_TRY_MS, cause=cause)


class CompactionQueue(msgspec.Struct, frozen=True):
    """Compactions that are owed."""

    store: Store
    cache: SessionCache
    clock_ms: Callable[[], int]
    woken: asyncio.Event

    async def add(
        self,
        scope: Scope,
        available: ReferenceTokens,
        cause: str = "",
        *,
        uncounted: int = 0,
        asked: CompactionRequest | None = None,
    ) -> bool:
        """Records that a compaction is owed, for what a call's budget leaves, and wakes a worker.
        `uncounted`: what the harness measured beyond what is counted here. `asked`: a host asked
        for this.

        False where none is: one was tried in vain, and nothing has changed since.
        """
        session = self.cache.find(scope)
        payload: dict[str, object] = {"available": available, "uncounted": uncounted}
        if asked is not None:
            payload |= {
                "force": asked.force,
                "to_threshold": asked.to_threshold,
                "uncounted": asked.uncounted,
                "focus": asked.steering.kept.focus,
                "memory_context": asked.steering.kept.memory_context,
                "generation": (
                    session.head.generation
                    if session is not None and session.head is not None
                    else None
                ),
            }
        elif session is not None and session.head is not None:
            generation, total = session.head.generation, session.view.total
            if session.pending is not None and session.pending.stands(generation, total, available):
                return session.pending.waiting
            session.pending = PendingCompaction(generation, total, available)
        kind = COMPACT if asked is None else ASKED
        debt = Debt(scope, kind, self.clock_ms(), cause=cause, payload=orjson.dumps(payload))
        try:
            await self.store.add_debt(debt)
        except BaseException:
            if session is not None:
                session.pending = None
            raise
        CURRENT.get().set("contextengine.compaction.queued", True)
        self.woken.set()
        return True

    async def add_flush(self, scope: Scope, available: ReferenceTokens, cause: str = "") -> None:
        """Records that memory is to be told of what comes next, and wakes a worker."""
        payload = orjson.dumps({"available": available})
        await self.store.add_debt(Debt(scope, FLUSH, self.clock_ms(), cause=cause, payload=payload))
        self.woken.set()

    async def add_remake(self, scope: Scope, cause: str = "") -> None:
        """Records that summaries are to be made again, at once, and wakes a worker."""
        await self.store.add_debt(Debt(scope, REMAKE, self.clock_ms(), cause=cause))
        self.woken.set()
