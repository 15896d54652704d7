"""What waits in a store, over all tenants."""

from __future__ import annotations

from contextengine_server.context.scope import Scope
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Workload

from .case import StoreCase
from .rows import SCOPE, debt

OTHER = Scope("other", "main", "s2")


class WorkloadCases(StoreCase):
    """What waits in a store, over all tenants."""

    async def test_nothing_waits_in_a_new_store(self, store: Store) -> None:
        assert await store.workload.now(100) == Workload()
        assert store.workload.queued() == 0

    async def test_jobs_are_counted_by_state_over_all_tenants(self, store: Store) -> None:
        await store.add_debt(debt(SCOPE, queued_ms=7))
        await store.add_debt(debt(OTHER, queued_ms=5))
        await store.add_debt(debt(SCOPE, "memory", queued_ms=2, held=True))
        found = await store.workload.now(100)
        assert (found.debts_waiting, found.debts_running, found.debts_held, found.oldest_ms) == (
            2,
            0,
            1,
            5,
        )
        assert await store.claim_debt("w", 100, 10) is not None
        found = await store.workload.now(109)
        assert (found.debts_waiting, found.debts_running, found.debts_held, found.oldest_ms) == (
            1,
            1,
            1,
            7,
        )
        found = await store.workload.now(110)  # the lease ran out
        assert (found.debts_waiting, found.debts_running) == (2, 0)

    async def test_every_tenants_guards_are_seen(self, store: Store) -> None:
        await store.guards.change("acme", lambda before: (b"one", None))
        await store.guards.change("other", lambda before: (b"two", None))
        assert sorted((await store.workload.now(1)).guards) == [b"one", b"two"]
