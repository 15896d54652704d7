"""How much of the disk tenants take, and who takes more than it may.

A tenant is measured once, and again after each erasure; in between, what is written is added. So a
write costs no look into the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import msgspec
import structlog

from contextengine_server.context.scope import Scope
from contextengine_server.engines.patterns import glob_matches
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Commit
from contextengine_server.store.session_pages import every_session

_MEASURED_S = 3600.0
"""How often every tenant is measured anew."""
_RETRY_S = 2.0

log = structlog.get_logger("contextengine.retention")


class DiskCap(msgspec.Struct, frozen=True):
    """How many bytes the sessions of a tenant may take; the tenant is a glob."""

    tenant: str
    max_bytes: int


class Quotas:
    """Keeps `full` in step with what tenants take: the bytes taken and the cap of each that takes
    more than it may."""

    def __init__(
        self, store: Store, caps: Sequence[DiskCap], full: dict[str, tuple[int, int]]
    ) -> None:
        self._store, self._caps, self._full = store, caps, full
        self._used: dict[str, int] = {}
        self._due: dict[str, None] = {}
        """Tenants that are to be measured, in order."""
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to measure, and to follow what is written."""
        self._store.observe(self)
        self._task = asyncio.create_task(self._run(), name="quotas")

    async def stop(self) -> None:
        """Ends it."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def committed(self, commit: Commit) -> None:
        """Adds what was written."""
        tenant = commit.head.scope.tenant
        if tenant in self._used:
            self._used[tenant] += _bytes_of(commit)
            self._judge(tenant)
        else:
            self._measure_soon([tenant])

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
            self._used[tenant] = 0
            return
        used = 0
        async for head in every_session(self._store, tenant):
            used += await self._store.size(head.scope)
        self._used[tenant] = used
        self._judge(tenant)

    async def _run(self) -> None:
        while True:
            try:
                self._due.update(dict.fromkeys(await self._store.tenants()))
                async with asyncio.timeout(_MEASURED_S):
                    while True:
                        while self._due:
                            # Not due any more before it is measured: an erasure meanwhile makes
                            # it due again.
                            tenant = next(iter(self._due))
                            del self._due[tenant]
                            await self.measure(tenant)
                        self._wake.clear()
                        await self._wake.wait()
            except TimeoutError:
                continue
            except StoreUnavailable:
                await asyncio.sleep(_RETRY_S)  # the store says so itself, once
            except Exception:
                log.exception("what tenants take was not measured")
                await asyncio.sleep(_RETRY_S)


def _bytes_of(commit: Commit) -> int:
    """What a commit adds to the rows of its session."""
    added = sum(len(row.body) + len(row.content_hash) for row in commit.messages)
    added += sum(len(row.text.encode()) for row in commit.summaries)
    return added + (len(commit.reply.reply) if commit.reply is not None else 0)
