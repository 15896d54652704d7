"""What agents spent, in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from contextengine_server.context.scope import Scope
from contextengine_server.store.charges import SLOT_MS, SPENT_MS, Charge, Spent
from contextengine_server.store.rows import Costs

from .tables import Tables

_SUMS = Costs.__struct_fields__[4:]


class MemoryLedger:
    """`SpendLedger` over dictionaries. `tables` answers the tables, or raises StoreUnavailable."""

    def __init__(self, tables: Callable[[], Tables]) -> None:
        self._tables = tables

    async def spent(self, tenant: str, agent: str) -> Sequence[Spent]:
        """What an agent spent within the last day or a little more, oldest first."""
        slots = self._tables().spent.get((tenant, agent), {})
        return [slots[slot] for slot in sorted(slots)]

    async def costs(self, tenant: str) -> Sequence[Costs]:
        """What the calls of a tenant's agents took."""
        return [costs for key, costs in sorted(self._tables().costs.items()) if key[0] == tenant]


def charge(tables: Tables, scope: Scope, charged: Charge) -> None:
    """Adds a charge; what is older than a day goes."""
    slots = tables.spent.setdefault(scope[:2], {})
    oldest = (charged.time_ms - SPENT_MS) // SLOT_MS
    for slot in [slot for slot in slots if slot < oldest]:
        del slots[slot]
    slot = charged.time_ms // SLOT_MS
    before = slots.get(slot, Spent(0, 0))
    slots[slot] = Spent(max(before.last_ms, charged.time_ms), before.tokens + charged.tokens)
    key = (*scope[:2], charged.provider, charged.model)
    known = tables.costs.get(key, Costs(*key[1:]))
    sums = (getattr(known, name) + getattr(charged, name) for name in _SUMS)
    tables.costs[key] = Costs(*key[1:], known.calls + 1, *sums)
