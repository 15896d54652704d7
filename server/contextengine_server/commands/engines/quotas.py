"""Quotas: what tenants may hold of the server at once, what they hold, and setting it while the
server runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from contextengine_server.errors import TooLarge
from contextengine_server.fairness.quota import KINDS, Quota, TenantQuotas
from contextengine_server.fairness.usage import TenantUse, Uses
from contextengine_server.health.checks import OK, WARNING, Check
from contextengine_server.store.protocols import TenantRows
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.logs import get_logger

MAX_STORED = 10_000
"""Quotas that are stored: all of them are in memory, and listed in one answer. A pattern in the
settings serves any number of tenants."""

MAX_TOLD = 5
"""Of the tenants that hold something, doctor names so many."""

log = get_logger("contextengine.quotas")


class TenantStanding(msgspec.Struct, frozen=True):
    """A tenant: what is stored for it, None for nothing; what holds for all servers together, and
    which part of it this one gives out; and what it holds of this one now."""

    tenant: str
    stored: Quota | None
    in_force: Quota
    here: Quota
    use: TenantUse


class Tenants:
    """What is stored of quotas, and in force. Belongs to one event loop."""

    def __init__(self, quotas: TenantQuotas, rows: TenantRows, uses: Uses, events: Events) -> None:
        self.uses = uses
        self._quotas, self._rows, self._events = quotas, rows, events
        self._changing = asyncio.Lock()

    async def load(self) -> None:
        """Brings what is stored into force. What a newer version wrote, and this one cannot read,
        is left as it is; the settings hold for that tenant."""
        found: dict[str, Quota] = {}
        for tenant, row in (await self._rows.rows()).items():
            try:
                found[tenant] = msgspec.json.decode(row, type=Quota)
            except msgspec.DecodeError as error:
                log.error("quota_unreadable", tenant=tenant, why=str(error))
        self._quotas.replace(found)

    def standing(self, tenant: str) -> TenantStanding:
        """How a tenant stands."""
        return TenantStanding(
            tenant,
            self._quotas.rows.get(tenant),
            self._quotas.of(tenant),
            self._quotas.here(tenant),
            self.uses.of(tenant),
        )

    def all(self) -> list[TenantStanding]:
        """Every tenant for which a quota is stored or that holds anything, by name."""
        return [
            self.standing(tenant) for tenant in sorted({*self._quotas.rows, *self.uses.tenants()})
        ]

    async def put(self, tenant: str, quota: Quota | None) -> TenantStanding:
        """Stores a quota of a tenant, None: removes it; in force when this answers. Raises
        TooLarge, StoreUnavailable; nothing is changed then."""
        # Whoever goes away meanwhile leaves nothing that is stored and not in force.
        await asyncio.shield(asyncio.ensure_future(self._put(tenant, quota)))
        return self.standing(tenant)

    async def _put(self, tenant: str, quota: Quota | None) -> None:
        async with self._changing:
            rows = {name: one for name, one in self._quotas.rows.items() if name != tenant}
            if quota is not None:
                if len(rows) >= MAX_STORED:
                    raise TooLarge(
                        f"{len(rows)} quotas are stored, at most {MAX_STORED} may be; unset some,"
                        " or name tenants by a pattern in server.quotas",
                        metadata={"limit": str(MAX_STORED)},
                    )
                rows[tenant] = quota
            await self._rows.put(tenant, b"" if quota is None else msgspec.json.encode(quota))
            self._quotas.replace(rows)
            self._events.emit("quota:set", tenant)


def use_check(standings: Sequence[TenantStanding]) -> Check:
    """What these tenants hold, those that hold the most first; a warning where one has come to its
    quota."""
    told = sorted(standings, key=lambda one: (-_calls(one.use), one.tenant))
    found = "; ".join(_told(one) for one in told[:MAX_TOLD])
    if len(told) > MAX_TOLD:
        found += f"; and {len(told) - MAX_TOLD} more tenants"
    full = [one.tenant for one in told if any(_full(one, kind) for kind in KINDS)]
    if full:
        return Check(
            "tenants",
            WARNING,
            found,
            f"At its quota, and refused what is beyond: {', '.join(full[:MAX_TOLD])}. Let its owner"
            " raise the quota (`contextengine quotas set`), or its callers ask for less at once.",
        )
    return Check("tenants", OK, found)


def _calls(use: TenantUse) -> int:
    return sum(getattr(use, kind) for kind in KINDS)


def _full(standing: TenantStanding, kind: str) -> bool:
    most = standing.here.most(kind)
    return most is not None and getattr(standing.use, kind) >= most


def _told(standing: TenantStanding) -> str:
    use = standing.use
    words = []
    for kind in KINDS:
        most = standing.here.most(kind)
        words.append(f"{kind} {getattr(use, kind)}" + (f" of {most}" if most is not None else ""))
    return f"{standing.tenant}: {', '.join(words)}, bytes in flight {use.bytes_in_flight}"
