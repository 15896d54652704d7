"""Compact is answered once for a request, insists on a revision where it is told one, and shares
what runs already. See docs/semantics.md#compaction."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import grpc
import pytest

from contextengine import types as t
from tests.integration.assemble.asking import (
    ask,
    assign,
    scope_of,
    settled,
    store,
    talk,
)
from tests.integration.harness import PATIENCE_S, House, budget, ref

from .summarizers import Gated
from .test_compact import compact, engine, long, own_summarizer

__all__ = ["engine", "own_summarizer"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_request_is_answered_once(
    shared: House, session: t.SessionRef, engine: str
) -> None:
    tokens = await long(shared, session, engine)
    asked: dict[str, Any] = {"force": True, "budget": budget(tokens // 2), "request_id": "r1"}
    first = await compact(shared, session, **asked)
    await store(shared, session, talk(20, 100, "n"))
    assert await compact(shared, session, **asked) == first
    await shared.restart()
    assert await compact(shared, session, **asked) == first
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await compact(shared, session, force=True, request_id="r1")
    assert refused.value.code() == grpc.StatusCode.ALREADY_EXISTS


async def test_the_same_request_at_the_same_time(
    shared: House, session: t.SessionRef, engine: str, own_summarizer: None
) -> None:
    tokens = await long(shared, session, engine)
    gated = Gated(shared)
    asked: dict[str, Any] = {"force": True, "budget": budget(tokens - 100), "request_id": "r1"}
    both = asyncio.gather(*(compact(shared, session, **asked) for _ in range(3)))
    await gated.reached.wait()
    gated.gate.set()
    first, *others = await both
    assert first.summaries
    assert all(other == first for other in others)
    assert len(gated.asked) == first.passes


async def test_it_may_insist_on_a_revision(
    shared: House, session: t.SessionRef, engine: str
) -> None:
    await long(shared, session, engine)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await compact(shared, session, force=True, expected_revision=7)
    assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert (
        await compact(shared, session, force=True, expected_revision=1, budget=budget(2_000))
    ).summaries


@pytest.mark.parametrize("force", [False, True])
async def test_it_need_not_wait(
    shared: House, session: t.SessionRef, engine: str, force: bool
) -> None:
    await assign(shared, session, engine)
    await store(shared, session, talk(20, 100))
    tokens = (await shared.client.get_status(session)).message_tokens
    size = tokens * 3 // 2 if force else tokens // 2
    deferred = await compact(shared, session, no_wait=True, force=force, budget=budget(size))
    assert (deferred.compacted, deferred.reason, deferred.ok) == (
        False,
        "deferred to background",
        True,
    )
    assert not deferred.HasField("tokens_after")
    status = await settled(shared, session)
    assert status.generation > 0
    assert status.view_tokens < tokens


class Wanted(asyncio.Lock):
    """Counts who wanted it."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted = 0

    async def acquire(self) -> Literal[True]:
        self.wanted += 1
        return await super().acquire()


async def test_it_joins_a_running_job(
    shared: House, session: t.SessionRef, own_summarizer: None
) -> None:
    """And has nothing left to do where the job reached what was asked for."""
    twin = ref(f"{session.session_id} by itself")
    for each in (session, twin):
        await assign(shared, each, "dag", leafChunkTokens=1_000, leafTargetTokens=200)
        await store(shared, each, talk(20, 100))
    tokens = (await shared.client.get_status(session)).message_tokens
    await ask(shared, twin, budget=budget(tokens))
    alone = await settled(shared, twin)
    async with shared.app.core.sessions.open(await scope_of(shared, session)) as warm:
        lock = warm.compaction = Wanted()
    gated = Gated(shared)
    await ask(shared, session, budget=budget(tokens))  # above the threshold: a job is queued
    await gated.reached.wait()
    now = await compact(shared, session, force=True, no_wait=True, budget=budget(tokens))
    assert now.reason == "deferred to background"
    joined = asyncio.ensure_future(compact(shared, session, force=True, budget=budget(tokens)))
    async with asyncio.timeout(PATIENCE_S):
        while lock.wanted < 2:  # by the job, and by who joins it
            await asyncio.sleep(0.01)
    assert not joined.done()
    gated.gate.set()
    done = await joined
    assert (bool(done.summaries), done.tokens_before) == (True, tokens)
    status = await settled(shared, session)
    assert status.generation == alone.generation == done.generation == len(gated.asked)
    made = [summary.info.id for summary in (await shared.export(session)).summaries]
    assert [summary.id for summary in done.summaries] == made
    assert done.passes == len(made)


async def test_what_is_asked_beside_a_running_job_is_done_after_it(
    shared: House, session: t.SessionRef, own_summarizer: None
) -> None:
    """A host that may not wait has its focus and its target all the same."""
    await assign(shared, session, "dag", leafChunkTokens=1_000, leafTargetTokens=200)
    await store(shared, session, talk(20, 100))
    tokens = (await shared.client.get_status(session)).message_tokens
    gated = Gated(shared)
    await ask(shared, session, budget=budget(tokens))
    await gated.reached.wait()
    reply = await compact(
        shared, session, force=True, no_wait=True, focus="the parcel", budget=budget(tokens // 3)
    )
    assert reply.reason == "deferred to background"
    gated.gate.set()
    await settled(shared, session)
    assert [request.focus for request in gated.asked][-1] == "the parcel"
