"""Background work: owed once a kind, leased to one at a time, and never lost."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.debts import LONGEST_WAIT_MS, Debt
from contextengine_server.store.protocols import Store

from .case import Reopen, StoreCase
from .rows import SCOPE, Pen, debt

OTHER = Scope("acme", "main", "s2")


async def claim(store: Store, owner: str, now: int) -> Debt:
    found = await store.claim_debt(owner, now, 10)
    assert found is not None
    return found


class DebtCases(StoreCase):
    """Background work: owed once a kind, leased to one at a time, and never lost."""

    async def test_a_kind_is_owed_once(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(debt=debt(SCOPE, queued_ms=5, payload=b"first"))
        await pen.write(debt=debt(SCOPE, queued_ms=9, payload=b"second"))
        await store.add_debt(debt(SCOPE, queued_ms=10, held=True))
        assert await store.debts(SCOPE) == [debt(SCOPE, queued_ms=5, payload=b"first")]
        await store.add_debt(debt(SCOPE, "memory", queued_ms=4))
        assert [owed.kind for owed in await store.debts(SCOPE)] == ["memory", "compact"]

    async def test_a_commit_holds_and_lifts_the_hold(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(debt=debt(SCOPE, queued_ms=5))
        await pen.write(debt=debt(SCOPE, queued_ms=7, held=True))
        assert await store.debts(SCOPE) == [debt(SCOPE, queued_ms=5, held=True)]
        assert await store.claim_debt("w", 100, 10) is None
        await pen.write(debt=debt(SCOPE, queued_ms=8))
        assert await store.claim_debt("w", 100, 10) is not None

    async def test_a_commit_settles_and_may_owe_anew(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(debt=debt(SCOPE))
        await store.add_debt(debt(SCOPE, "memory"))
        await pen.write(settle_debt="compact")
        assert [owed.kind for owed in await store.debts(SCOPE)] == ["memory"]
        await pen.write(settle_debt="compact")
        await pen.write(settle_debt="memory", debt=debt(SCOPE, "memory", queued_ms=77))
        assert await store.debts(SCOPE) == [debt(SCOPE, "memory", queued_ms=77)]

    async def test_the_oldest_that_is_due_is_leased(self, store: Store) -> None:
        await store.add_debt(debt(SCOPE, queued_ms=3, not_before_ms=50))
        await store.add_debt(debt(OTHER, queued_ms=4))
        await store.add_debt(debt(OTHER._replace(tenant="t2"), queued_ms=5))
        await store.add_debt(debt(OTHER._replace(session="s3"), queued_ms=1, held=True))
        first = await store.claim_debt("w1", 40, 10)
        assert first == debt(OTHER, queued_ms=4, lease_owner="w1", lease_until_ms=50, attempts=1)
        assert first is not None
        assert await store.debts(OTHER) == [first]
        second = await store.claim_debt("w2", 40, 10)
        assert second is not None
        assert second.scope.tenant == "t2"
        assert await store.claim_debt("w3", 40, 10) is None
        # What was put back for later stands behind what was owed by then, leases that ran out
        # included.
        due = [await store.claim_debt("w3", 50, 10) for _ in range(4)]
        assert [one and one.scope for one in due] == [
            OTHER,
            OTHER._replace(tenant="t2"),
            SCOPE,
            None,
        ]

    async def test_who_owes_is_named_and_claimed_of(self, store: Store) -> None:
        """Tenants with something due, who has waited longest first; and what is claimed of one is
        the oldest of his."""
        other = OTHER._replace(tenant="t2")
        await store.add_debt(debt(SCOPE, queued_ms=1))
        await store.add_debt(debt(OTHER, queued_ms=2))
        await store.add_debt(debt(other, queued_ms=3))
        await store.add_debt(debt(other._replace(session="s3"), queued_ms=4, not_before_ms=50))
        held = OTHER._replace(tenant="t3")
        await store.add_debt(debt(held, queued_ms=0, held=True))
        assert await store.debtors(40) == ["acme", "t2"]
        claimed = await store.claim_debt("w1", 40, 10, tenant="t2")
        assert claimed is not None
        assert claimed.scope == other
        assert await store.debtors(40) == ["acme"]
        assert await store.claim_debt("w1", 40, 10, tenant="t2") is None
        assert (await claim(store, "w1", 40)).scope == SCOPE
        assert await store.debtors(60) == ["acme", "t2"]

    async def test_nobody_waits_for_a_clock_that_was_set_back(self, store: Store) -> None:
        """Neither for a time to which it was put off, nor for a lease that nobody renews."""
        now, year = 1_000, 365 * LONGEST_WAIT_MS
        await store.add_debt(debt(SCOPE, queued_ms=now + year, not_before_ms=now + year + 10))
        assert await store.debtors(now) == ["acme"]
        claimed = await store.claim_debt("w1", now, 10)
        assert claimed is not None
        assert await store.claim_debt("w2", now, 10) is None
        assert await store.extend_debt(claimed, now + year)
        assert await store.debtors(now) == ["acme"]
        assert (await claim(store, "w2", now)).scope == SCOPE
        await store.add_debt(debt(OTHER, queued_ms=now, not_before_ms=now + LONGEST_WAIT_MS))
        assert await store.claim_debt("w3", now, 10) is None

    async def test_one_job_at_a_time_per_session(self, store: Store) -> None:
        await store.add_debt(debt(SCOPE, "a", queued_ms=1))
        await store.add_debt(debt(SCOPE, "b", queued_ms=2))
        await store.add_debt(debt(OTHER, "a", queued_ms=3))
        claims = await asyncio.gather(*(store.claim_debt(f"w{n}", 10, 5) for n in range(5)))
        # Claims that meet may pass over the job that another is looking at.
        assert sorted(one.scope.session for one in claims if one) == ["s1", "s2"]
        mine = next(one for one in claims if one and one.scope == SCOPE)
        await store.release_debt(mine, done=True)
        following = await store.claim_debt("w", 10, 5)
        assert following is not None
        assert {(one.scope, one.kind) for one in (mine, following)} == {(SCOPE, "a"), (SCOPE, "b")}

    async def test_a_lease_that_ran_out_is_lost_once_another_claims(self, store: Store) -> None:
        await store.add_debt(debt(SCOPE))
        old = await claim(store, "w", 0)
        assert await store.extend_debt(old, 20) is True
        assert await store.claim_debt("w", 19, 10) is None
        new = await claim(store, "w", 20)  # the same owner: only the attempt tells the leases apart
        assert (old.attempts, new.attempts) == (1, 2)
        assert await store.extend_debt(old, 99) is False
        await store.release_debt(old, done=True)
        await store.release_debt(old, done=False, not_before_ms=77, error="late", held=True)
        assert await store.debts(SCOPE) == [new]
        await store.release_debt(new, done=True)
        assert await store.debts(SCOPE) == []
        assert await store.extend_debt(new, 99) is False

    async def test_a_lease_is_put_back_for_later(self, store: Store, reopen: Reopen) -> None:
        await store.add_debt(debt(SCOPE, payload=b"p", cause="c"))
        held = await claim(store, "w", 0)
        await store.release_debt(held, done=False, not_before_ms=500, error="no model")
        back = replace(
            held, lease_owner="", lease_until_ms=0, not_before_ms=500, last_error="no model"
        )
        assert await store.debts(SCOPE) == [back]
        assert await store.claim_debt("w", 499, 10) is None
        again = await reopen()
        leased = await claim(again, "w2", 500)
        assert leased == replace(back, lease_owner="w2", lease_until_ms=510, attempts=2)
        await again.release_debt(leased, done=False, held=True)
        assert await again.claim_debt("w", 10_000, 10) is None

    async def test_a_deleted_session_owes_nothing(self, store: Store) -> None:
        await Pen(store).write(debt=debt(SCOPE))
        held = await claim(store, "w", 0)
        await store.delete(SCOPE, expected_revision=None, cascade=False)
        assert await store.extend_debt(held, 99) is False
        await store.release_debt(held, done=False, error="x")
        assert await store.debts(SCOPE) == []
        assert await store.claim_debt("w", 99, 10) is None
