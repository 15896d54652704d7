"""Maintain: which rewrites of the host's transcript an engine would like; and jobs for the model of
a host that can lend it only now (docs/semantics.md#summarizers)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from contextengine_server.compaction.queue import ASKED, COMPACT, REMAKE
from contextengine_server.context.scope import Scope
from contextengine_server.engines.contract import Engine
from contextengine_server.errors import InvalidField
from contextengine_server.session.address import Addresses, Ref, not_found
from contextengine_server.session.selection import Selected, Selection
from contextengine_server.session.sessions import SessionCache
from contextengine_server.store.protocols import Store

_BRINGS_JOBS = frozenset({COMPACT, ASKED, REMAKE})
"""The kinds of background work for which models are asked."""


class VisitorTerms(Protocol):
    """What a harness that comes by brings, and what it would do."""

    @property
    def agent(self) -> str:
        """The agent whose jobs it would do; empty: whoever's the session is."""

    @property
    def takes(self) -> bool:
        """True where it takes jobs."""


class JobServer(Protocol):
    """Serves harnesses that come by."""

    async def serve(self, session: Scope, lent: Any, owed: Callable[[], Awaitable[bool]]) -> Any:
        """Takes results and hands out jobs: what the visitor is told."""


class Maintained(msgspec.Struct, frozen=True):
    """What came of it."""

    selected: Selected
    """The engine that was asked for rewrites."""
    visit: Any = None
    """What the visitor is told; None: it brought nothing and takes none."""
    more: bool = False
    """True where more jobs may come."""

    @property
    def engine(self) -> Engine:
        """The engine that was asked."""
        return self.selected.engine


class Maintain(msgspec.Struct, frozen=True):
    """Asks engines for rewrites; none that is shipped wants any. Serves harnesses that come by."""

    addresses: Addresses
    selection: Selection
    store: Store
    cache: SessionCache
    clock_ms: Callable[[], int]
    errands: JobServer | None = None
    """None: no model is ever lent."""

    async def run(self, tenant: str, ref: Ref, lent: VisitorTerms | None = None) -> Maintained:
        """The engine that was asked, and the jobs. Raises SessionNotFound, InvalidField."""
        scope = (await self.addresses.find(tenant, ref)).scope
        if await self.store.head(scope) is None:
            raise not_found(scope)
        selected = await self.selection.engine_for(scope)
        if self.errands is None or lent is None:
            return Maintained(selected)
        if lent.agent not in ("", scope.agent):
            raise InvalidField(
                "lend.agent_id", "is another agent: leave it out, or give the session's own"
            )

        async def owed() -> bool:
            return await self._owed(scope)

        visit = await self.errands.serve(scope, lent, owed)
        return Maintained(selected, visit, lent.takes and await owed())

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
