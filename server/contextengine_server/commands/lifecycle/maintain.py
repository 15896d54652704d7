"""Maintain: which rewrites of the host's transcript an engine would like; and jobs for the model of
a host that can lend it only now (docs/semantics.md#summarizers)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from contextengine_server.compaction.queue import ASKED, COMPACT, REMAKE
from contextengine_server.context.scope import Scope
from contextengine_server.errors import InvalidField
from contextengine_server.runtime.broker import Harness
from contextengine_server.runtime.errands import Answer, Errands, Visit
from contextengine_server.session.address import Addresses, Ref, not_found
from contextengine_server.session.selection import Selected, Selection
from contextengine_server.session.sessions import SessionCache
from contextengine_server.store.protocols import Store

_BRINGS_JOBS = frozenset({COMPACT, ASKED, REMAKE})
"""The kinds of background work for which models are asked."""


class Lent(msgspec.Struct, frozen=True):
    """What a harness brings, and what it would do."""

    harness: Harness | None = None
    """None: it takes no jobs."""
    answers: Sequence[Answer] = ()
    wait_s: float = 0.0
    """How long it waits for a job that may still come."""


class Maintained(msgspec.Struct, frozen=True):
    """What came of it."""

    selected: Selected
    """The engine that was asked for rewrites."""
    visit: Visit = Visit()
    more: bool = False
    """True where more jobs may come."""


class Maintain(msgspec.Struct, frozen=True):
    """Asks engines for rewrites; none that is shipped wants any. Serves harnesses that come by."""

    addresses: Addresses
    selection: Selection
    store: Store
    cache: SessionCache
    clock_ms: Callable[[], int]
    errands: Errands | None = None
    """None: no model is ever lent."""

    async def run(self, tenant: str, ref: Ref, lent: Lent | None = None) -> Maintained:
        """The engine that was asked, and the jobs. Raises SessionNotFound, InvalidField."""
        scope = (await self.addresses.find(tenant, ref)).scope
        if await self.store.head(scope) is None:
            raise not_found(scope)
        selected = await self.selection.engine_for(scope)
        if self.errands is None or lent is None:
            return Maintained(selected)
        harness = lent.harness
        if harness is not None:
            if harness.agent not in ("", scope.agent):
                raise InvalidField(
                    "lend.agent_id", "is another agent: leave it out, or give the session's own"
                )
            harness = replace(harness, agent=scope.agent)

        async def owed() -> bool:
            return await self._owed(scope)

        visit = await self.errands.serve(scope, lent.answers, harness, lent.wait_s, owed)
        return Maintained(selected, visit, harness is not None and await owed())

    async def _owed(self, scope: Scope) -> bool:
        """True while work of the session waits or runs that may ask a model."""
        session = self.cache.find(scope)
        if session is not None and session.compaction.locked():
            return True
        now = self.clock_ms()
        return any(
            debt.kind in _BRINGS_JOBS
            and not debt.held
            and (debt.not_before_ms <= now or debt.lease_until_ms > now)
            for debt in await self.store.debts(scope)
        )
