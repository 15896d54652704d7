"""How much of the disk tenants take, and who takes more than it may.

A tenant is measured once, and again after each erasure; in between, what is written is added. So a
write costs no look into the store. What is written while a tenant is measured is told apart by the
revision as of which its session was measured.

Of what other servers over the store write nothing is heard. So each of several measures a tenant
again once it has itself written its part of half of what was left: all of them together have then
written no more than that half, and the same goes for the rest, down to `_LEAST` of the cap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from contextengine_server.context.scope import Scope
from contextengine_server.engines.patterns import glob_matches
from contextengine_server.session.sweeper import Lead, Sweeper
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Commit
from contextengine_server.store.session_pages import every_session

_MEASURED_S = 3600.0
"""How often every tenant is measured anew."""
_LEAST = 0.01
"""The share of a cap, of all servers together, for which no tenant is measured again."""
_PAUSE_S = 2.0
_TRIES = 8
"""How often a session that is written to all the time is measured in vain."""


class DiskCap(msgspec.Struct, frozen=True):
    """How many bytes the sessions of a tenant may take; the tenant is a glob."""

    tenant: str
    max_bytes: int


class _Measured(msgspec.Struct, frozen=True):
    """What a session took, as of a revision."""

    bytes: int
    revision: int


class Quotas(Sweeper):
    """Keeps `full` in step with what tenants take: the bytes taken and the cap of each that takes
    more than it may."""

    topic = "quotas"
    failure = "what tenants take was not measured"
    at_once = True

    def __init__(
        self,
        store: Store,
        caps: Sequence[DiskCap],
        full: dict[str, tuple[int, int]],
        servers: Callable[[], int] = lambda: 1,
    ) -> None:
        """`servers`: how many write to the store now."""
        super().__init__()
        self._store, self._caps, self._full, self._servers = store, caps, full, servers
        self._used: dict[str, int] = {}
        self._measured: dict[str, int] = {}
        """What each took when it was measured."""
        self._due: dict[str, None] = {}
        """Tenants that are to be measured, in order."""
        self._meanwhile: dict[str, list[Commit]] = {}
        """Of tenants that are being measured: what is written since that began."""
        self._wake = asyncio.Event()

    def start(self, lead: Lead | None = None) -> None:
        """Begins to measure, and to follow what is written."""
        self._store.observe(self)
        super().start(lead)

    def committed(self, commit: Commit) -> None:
        """Adds what was written."""
        tenant = commit.head.scope.tenant
        if tenant in self._meanwhile:
            self._meanwhile[tenant].append(commit)
        elif tenant not in self._used:
            self._measure_soon([tenant])
        if tenant in self._used:
            self._used[tenant] += _bytes_of(commit)
            self._judge(tenant)
            if self._servers() > 1 and self._is_behind(tenant):
                self._measure_soon([tenant])

    def _is_behind(self, tenant: str) -> bool:
        """Whether the other servers may have written much since the tenant was measured."""
        cap, measured = self._cap(tenant), self._measured[tenant]
        if cap is None:
            return False
        left = max((cap - measured) / 2, cap * _LEAST)
        return self._used[tenant] - measured > left / self._servers()

    def erased(self, scopes: Sequence[Scope]) -> None:
        """Has the tenants measured anew."""
        self._measure_soon([scope.tenant for scope in scopes])

    def _measure_soon(self, tenants: Sequence[str]) -> None:
        self._due.update(dict.fromkeys(tenants))
        self._wake.set()

    def _cap(self, tenant: str) -> int | None:
        return next((cap.max_bytes for cap in self._caps if glob_matches(cap.tenant, tenant)), None)

    def _judge(self, tenant: str) -> None:
        cap, used = self._cap(tenant), self._used.get(tenant, 0)
        if cap is not None and used > cap:
            self._full[tenant] = used, cap
        else:
            self._full.pop(tenant, None)

    async def measure(self, tenant: str) -> None:
        """Measures what a tenant takes now."""
        if self._cap(tenant) is None:
            self._used[tenant] = self._measured[tenant] = 0
            return
        written = self._meanwhile[tenant] = []
        try:
            measured: dict[Scope, _Measured] = {}
            async for head in every_session(self._store, tenant):
                measured[head.scope] = await self._size(head.scope)
            # A session that is written to while others are listed may be passed over.
            for commit in written:
                scope = commit.head.scope
                if scope not in measured:
                    measured[scope] = await self._size(scope)
            used = sum(one.bytes for one in measured.values())
            for commit in written:
                if commit.head.revision > measured[commit.head.scope].revision:
                    used += _bytes_of(commit)
        finally:
            del self._meanwhile[tenant]
        self._used[tenant] = self._measured[tenant] = used
        self._judge(tenant)

    async def _size(self, scope: Scope) -> _Measured:
        """What a session takes, and the revision as of which. Of one that is written to all the
        time, the revision may be an older one: it counts for more than it is until it is measured
        again."""
        head, taken = await self._store.head(scope), 0
        for _ in range(_TRIES):
            before = head
            taken = await self._store.size(scope)
            head = await self._store.head(scope)
            if head == before:
                break
        return _Measured(taken, 0 if before is None else before.revision)

    async def sweep(self) -> None:
        """Measures every tenant, and then, for a while, those that become due."""
        self._due.update(dict.fromkeys(await self._store.tenants()))
        with suppress(TimeoutError):
            async with asyncio.timeout(_MEASURED_S):
                while True:
                    while self._due:
                        # Not due any more before it is measured: an erasure meanwhile makes it due
                        # again.
                        tenant = next(iter(self._due))
                        del self._due[tenant]
                        await self.measure(tenant)
                    self._wake.clear()
                    await self._wake.wait()

    def pause_s(self) -> float:
        """After a failure as well."""
        return _PAUSE_S


def _bytes_of(commit: Commit) -> int:
    """What a commit adds to the rows of its session."""
    added = sum(len(row.body) + len(row.content_hash) for row in commit.messages)
    added += sum(len(row.text.encode()) for row in commit.summaries)
    return added + (len(commit.reply.reply) if commit.reply is not None else 0)
