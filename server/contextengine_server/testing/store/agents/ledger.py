"""What agents spent: written with its commit or not at all, added up, and there after a restart."""

from __future__ import annotations

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.store.charges import SLOT_MS, SPENT_MS, Charge, Spent
from contextengine_server.store.errors import RevisionConflict
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Costs

from ..case import Reopen, StoreCase
from ..rows import SCOPE, Pen

NOON = 1_700_000_000_000 // SLOT_MS * SLOT_MS


def charge(time_ms: int = NOON, tokens: int = 10, model: str = "m", saved: int = -7) -> Charge:
    """A charge with a number of its own in every field."""
    return Charge(time_ms, tokens, "p", model, 1, 2, 3, 4, 5, saved, 1)


class LedgerCases(StoreCase):
    """What agents spent: written with its commit or not at all, added up, and there after a
    restart."""

    async def test_charges_add_up_by_five_minutes_and_by_model(
        self, store: Store, reopen: Reopen
    ) -> None:
        pen = Pen(store)
        for time_ms, model in ((0, "m"), (SLOT_MS - 1, "m"), (SLOT_MS, "n")):
            await pen.write(charge=charge(NOON + time_ms, model=model))
        again = await reopen()
        assert await again.ledger.spent(SCOPE.tenant, SCOPE.agent) == [
            Spent(NOON + SLOT_MS - 1, 20),
            Spent(NOON + SLOT_MS, 10),
        ]
        assert await again.ledger.costs(SCOPE.tenant) == [
            Costs(SCOPE.agent, "p", "m", 2, 2, 4, 6, 8, 10, -14, 2),
            Costs(SCOPE.agent, "p", "n", 1, 1, 2, 3, 4, 5, -7, 1),
        ]

    async def test_what_is_older_than_a_day_is_let_go(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(charge=charge(NOON))
        await pen.write(charge=charge(NOON + SPENT_MS))
        assert len(await store.ledger.spent(SCOPE.tenant, SCOPE.agent)) == 2
        await pen.write(charge=charge(NOON + SPENT_MS + SLOT_MS))
        kept = await store.ledger.spent(SCOPE.tenant, SCOPE.agent)
        assert [one.last_ms for one in kept] == [NOON + SPENT_MS, NOON + SPENT_MS + SLOT_MS]
        assert (await store.ledger.costs(SCOPE.tenant))[0].calls == 3, "costs are for good"

    async def test_a_commit_that_is_refused_charges_nothing(self, store: Store) -> None:
        pen = Pen(store)
        with pytest.raises(RevisionConflict):
            await pen.write(charge=charge(), expected_revision=99)
        assert await store.ledger.spent(SCOPE.tenant, SCOPE.agent) == []
        assert await store.ledger.costs(SCOPE.tenant) == []

    async def test_agents_and_tenants_are_kept_apart(self, store: Store) -> None:
        for tenant, agent in (("acme", "a"), ("acme", "b"), ("other", "a")):
            pen = Pen(store, Scope(tenant, agent, "s"))
            await pen.write(charge=charge())
        assert [one.agent for one in await store.ledger.costs("acme")] == ["a", "b"]
        assert len(await store.ledger.spent("other", "a")) == 1
        assert await store.ledger.spent("other", "b") == []

    async def test_it_outlives_the_session(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(charge=charge())
        await store.delete(SCOPE, expected_revision=None, cascade=False)
        assert len(await store.ledger.spent(SCOPE.tenant, SCOPE.agent)) == 1
        assert len(await store.ledger.costs(SCOPE.tenant)) == 1

    async def test_sums_stay_whole_numbers(self, store: Store) -> None:
        pen = Pen(store)
        most = 2**53
        for _ in range(3):
            await pen.write(
                charge=Charge(NOON, most, "p", "m", most, most, most, most, most, -most)
            )
        (costs,) = await store.ledger.costs(SCOPE.tenant)
        assert (costs.cost_micro_usd, costs.saved_micro_usd) == (3 * most, -3 * most)
        assert (await store.ledger.spent(SCOPE.tenant, SCOPE.agent))[0].tokens == 3 * most
