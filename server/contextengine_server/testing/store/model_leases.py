"""The work that harnesses do: one job for the same work, leased to one at a time, answered once,
and there after a restart."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from contextengine_server.store.model_jobs import JobOutcome, ModelJob
from contextengine_server.store.protocols import Store

from .case import Reopen, StoreCase
from .rows import SCOPE, Pen

JOB = ModelJob("acme", "j1", "d1", "main", "s1", 100, 1_000, input_tokens=50, work=b"\x00work")


def job(number: int, **more: Any) -> ModelJob:
    return replace(JOB, id=f"j{number}", digest=f"d{number}", queued_ms=100 + number, **more)


async def claim(
    store: Store, now: int, lease: str = "l1", tenant: str = "acme", **more: Any
) -> ModelJob | None:
    return await store.model_leases.claim(tenant, lease, now, 60, **{"most_attempts": 3, **more})


class ModelLeaseCases(StoreCase):
    """Jobs for leased models: one for the same work, leased to one at a time, answered once."""

    async def test_the_same_work_is_one_job_until_its_result_is_taken(self, store: Store) -> None:
        assert await store.model_leases.offer(JOB, 100) == JOB
        again = await store.model_leases.offer(replace(JOB, id="j2", expire_ms=2_000), 200)
        assert again == replace(JOB, expire_ms=2_000)
        assert await store.model_leases.find("acme", "j2") is None
        assert await store.model_leases.offer(replace(JOB, id="j3", expire_ms=1_500), 300) == again
        await claim(store, 300)
        assert (
            await store.model_leases.answer("acme", "j1", "l1", b"said", 310) is JobOutcome.ACCEPTED
        )
        kept = await store.model_leases.offer(replace(JOB, id="j4"), 320)
        assert (kept.id, kept.answered, kept.result) == ("j1", True, b"said")
        await store.model_leases.settle("acme", "j1", 2_000)
        assert (await store.model_leases.offer(replace(JOB, id="j5"), 330)).id == "j5"

    async def test_of_two_who_want_a_job_the_first_takes_nothing_from_the_second(
        self, store: Store
    ) -> None:
        """A server stood still for longer than its lease, and another goes on with its work."""
        await store.model_leases.offer(JOB, 100)
        await store.model_leases.offer(replace(JOB, id="j2", expire_ms=1_200), 300)
        assert await store.model_leases.remove("acme", "j1", 1_000) is False
        await claim(store, 300)
        await store.model_leases.answer("acme", "j1", "l1", b"said", 310)
        await store.model_leases.settle("acme", "j1", 1_000)
        found = await store.model_leases.find("acme", "j1")
        assert found is not None
        assert (found.result, found.digest) == (b"said", "d1")
        await store.model_leases.settle("acme", "j1", 1_200)
        found = await store.model_leases.find("acme", "j1")
        assert found is not None
        assert (found.result, found.digest) == (b"", "")
        assert await store.model_leases.remove("acme", "j1", 1_200) is True

    async def test_of_a_taken_result_no_text_is_left_but_that_there_was_one(
        self, store: Store
    ) -> None:
        await store.model_leases.offer(JOB, 100)
        await claim(store, 100)
        await store.model_leases.answer("acme", "j1", "l1", b"said", 110)
        await store.model_leases.settle("acme", "j1", 1_000)
        left = await store.model_leases.find("acme", "j1")
        assert left is not None
        assert (left.digest, left.work, left.result, left.answered) == ("", b"", b"", True)
        assert (
            await store.model_leases.answer("acme", "j1", "l1", b"again", 120) is JobOutcome.TWICE
        )

    async def test_the_oldest_that_suits_is_handed_out(self, store: Store) -> None:
        await store.model_leases.offer(job(3), 0)
        await store.model_leases.offer(job(1, agent="other"), 0)
        await store.model_leases.offer(job(2, input_tokens=500), 0)
        await store.model_leases.offer(job(0, model="big"), 0)
        assert await claim(store, 50, tenant="foreign") is None
        first = await claim(store, 50, agent="main", most_tokens=100, models=["small"])
        assert first == replace(job(3), lease_id="l1", lease_until_ms=110, attempts=1)
        assert await store.model_leases.find("acme", "j3") == first
        assert await claim(store, 50, agent="main", most_tokens=100, models=["small"]) is None
        named = await claim(store, 50, "l2", models=["small", "big"])
        assert named is not None
        assert named.id == "j0"
        rest = [await claim(store, 50, f"l{n}") for n in (3, 4, 5)]
        assert [one.id if one else None for one in rest] == ["j1", "j2", None]

    async def test_a_job_without_a_wish_suits_every_model(self, store: Store) -> None:
        await store.model_leases.offer(JOB, 0)
        assert await claim(store, 50, models=["small"]) is not None

    async def test_a_job_is_handed_to_one_at_a_time(self, store: Store) -> None:
        await store.model_leases.offer(JOB, 0)
        claims = await asyncio.gather(*(claim(store, 50, f"l{n}") for n in range(10)))
        assert len([one for one in claims if one]) == 1

    async def test_a_lease_that_ran_out_counts_until_another_has_the_job(
        self, store: Store
    ) -> None:
        await store.model_leases.offer(job(1), 0)
        await store.model_leases.offer(job(2), 0)
        assert [(await claim(store, 0, "a")), (await claim(store, 0, "a"))] != [None, None]
        assert await store.model_leases.extend("acme", "j1", "a", 90) is True
        assert await store.model_leases.extend("acme", "j1", "a", 10) is True  # never shortens
        assert await claim(store, 60, "b") is not None  # j2: j1 is held until 90
        assert await claim(store, 89, "b") is None
        assert (
            await store.model_leases.answer("acme", "j1", "a", b"late", 95) is JobOutcome.ACCEPTED
        )
        assert await store.model_leases.answer("acme", "j2", "a", b"late", 95) is JobOutcome.LOST
        assert await store.model_leases.extend("acme", "j2", "a", 500) is False
        assert await store.model_leases.put_back("acme", "j2", "a", 0) is JobOutcome.LOST
        assert (
            await store.model_leases.answer("acme", "j2", "b", b"mine", 95) is JobOutcome.ACCEPTED
        )
        found = await store.model_leases.find("acme", "j2")
        assert found is not None
        assert found.result == b"mine"

    async def test_a_result_is_accepted_once_and_only_where_there_is_a_job(
        self, store: Store
    ) -> None:
        await store.model_leases.offer(JOB, 0)
        assert await store.model_leases.answer("acme", "j1", "", b"x", 10) is JobOutcome.LOST
        await claim(store, 0)
        assert await store.model_leases.answer("other", "j1", "l1", b"x", 10) is JobOutcome.UNKNOWN
        assert await store.model_leases.answer("acme", "none", "l1", b"x", 10) is JobOutcome.UNKNOWN
        answers = await asyncio.gather(
            *(store.model_leases.answer("acme", "j1", "l1", b"%d" % n, 10) for n in range(5))
        )
        accepted = answers.index(JobOutcome.ACCEPTED)
        assert answers.count(JobOutcome.TWICE) == 4
        found = await store.model_leases.find("acme", "j1")
        assert found is not None
        assert found.result == b"%d" % accepted
        assert await store.model_leases.extend("acme", "j1", "l1", 900) is False
        assert await store.model_leases.put_back("acme", "j1", "l1", 0) is JobOutcome.TWICE

    async def test_what_is_put_back_is_handed_out_later_but_not_for_ever(
        self, store: Store
    ) -> None:
        await store.model_leases.offer(JOB, 0)
        for attempt, now in ((1, 0), (2, 200), (3, 400)):
            held = await claim(store, now, f"l{attempt}")
            assert held is not None
            assert held.attempts == attempt
            assert (
                await store.model_leases.put_back("acme", "j1", f"l{attempt}", now + 150)
                is JobOutcome.ACCEPTED
            )
            rests = replace(held, lease_id="", lease_until_ms=now + 150)
            assert await store.model_leases.find("acme", "j1") == rests
            assert (
                await store.model_leases.put_back("acme", "j1", f"l{attempt}", now)
                is JobOutcome.LOST
            )
            assert await claim(store, now + 149) is None
        assert await claim(store, 900) is None

    async def test_what_nobody_wants_any_more_is_gone(self, store: Store) -> None:
        await store.model_leases.offer(JOB, 0)
        await store.model_leases.offer(job(2, tenant="other"), 0)
        assert await store.model_leases.open_count("acme") == 1
        await claim(store, 990)
        assert await claim(store, 1_000, tenant="other") is None
        assert (
            await store.model_leases.answer("acme", "j1", "l1", b"x", 1_000) is JobOutcome.UNKNOWN
        )
        await store.model_leases.offer(job(3, expire_ms=9_000), 1_000)
        assert await store.model_leases.find("acme", "j1") is None
        assert await store.model_leases.find("other", "j2") is not None
        assert await store.model_leases.remove("acme", "j3", 9_000) is True
        assert await store.model_leases.remove("acme", "j3", 9_000) is True
        assert await store.model_leases.open_count("acme") == 0

    async def test_a_session_takes_its_jobs_along(self, store: Store) -> None:
        await Pen(store).write(count=1)
        await store.model_leases.offer(JOB, 0)
        await store.model_leases.offer(job(2, session="s2"), 0)
        await store.delete(SCOPE, expected_revision=None, cascade=False)
        assert await store.model_leases.find("acme", "j1") is None
        assert await store.model_leases.find("acme", "j2") is not None

    @pytest.mark.parametrize("answered", [False, True])
    async def test_a_job_outlives_the_process(
        self, store: Store, reopen: Reopen, answered: bool
    ) -> None:
        await store.model_leases.offer(JOB, 0)
        await claim(store, 0)
        if answered:
            await store.model_leases.answer("acme", "j1", "l1", b"said", 10)
        before = await store.model_leases.find("acme", "j1")
        again = await reopen()
        assert await again.model_leases.find("acme", "j1") == before
        outcome = JobOutcome.TWICE if answered else JobOutcome.ACCEPTED
        assert await again.model_leases.answer("acme", "j1", "l1", b"said", 20) is outcome

    async def test_no_lease_outlasts_its_job(self, store: Store) -> None:
        await store.model_leases.offer(JOB, 0)
        held = await claim(store, 970)
        assert held is not None
        assert held.lease_until_ms == 1_000
        await store.model_leases.offer(replace(JOB, expire_ms=1_100), 980)
        assert await store.model_leases.extend("acme", "j1", "l1", 5_000) is True
        found = await store.model_leases.find("acme", "j1")
        assert found is not None
        assert found.lease_until_ms == 1_100

    async def test_what_may_still_come_for_a_session(self, store: Store) -> None:
        async def coming(now: int, session: str = "s1", tenant: str = "acme") -> bool:
            return await store.model_leases.coming(tenant, "main", session, now)

        await store.model_leases.offer(JOB, 0)
        assert not await coming(0)  # nobody has it
        await claim(store, 0)
        assert await coming(59)
        assert not await coming(60)  # the lease ran out
        assert not await coming(59, session="s2")
        assert not await coming(59, tenant="other")
        await store.model_leases.put_back("acme", "j1", "l1", 500)
        assert not await coming(59)  # it rests, and nobody has it
        await claim(store, 500, "l2")
        await store.model_leases.answer("acme", "j1", "l2", b"said", 510)
        assert await coming(900)
        assert not await coming(1_000)
        await store.model_leases.settle("acme", "j1", 1_000)
        assert not await coming(900)
