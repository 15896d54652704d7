"""Every field of every request with hostile values: a precise status, the field named, and nothing
changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from google.protobuf.message import Message

from contextengine import types as t
from contextengine_server.api.pipeline import contract, unserved
from contextengine_server.api.pipeline.contract import Rpc
from contextengine_server.context.scope import Scope
from tests.integration.bad_input.mutations import changed, mutations, named, resolves
from tests.integration.bad_input.requests import GOOD, NOT_THERE, history
from tests.integration.harness import PATIENCE_S, Answer, House, house, ref

PACKAGE = "contextengine.v1."
SERVED = [rpc for rpc in contract.rpcs() if rpc.method not in unserved.UNSERVED]
STATUSES = {
    "OK",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "FAILED_PRECONDITION",
    "RESOURCE_EXHAUSTED",
    "UNIMPLEMENTED",
}


def short(rpc: Rpc) -> str:
    return rpc.method.removeprefix(PACKAGE)


def test_there_is_a_good_request_for_every_rpc_that_is_served() -> None:
    assert set(GOOD) == {short(rpc) for rpc in SERVED}


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[House]:
    """A house where a message may be large."""
    async with house(tmp_path) as made:
        yield made


async def state(home: House, session: t.SessionRef) -> tuple[object, ...]:
    """What a refused call must not have changed, as the store has it: the session, the one written
    last, the choices."""
    store = home.app.store
    held = await store.head(Scope("default", session.agent_id, session.session_id))
    newest = await store.list_sessions("default", agent="", session_key="", limit=1, after=None)
    return held, newest, await store.assignments("default")


async def ask(home: House, rpc: Rpc, requests: list[Message]) -> Answer:
    call = asyncio.ensure_future(
        home.raw(rpc, *(request.SerializeToString() for request in requests))
    )
    if rpc.long_lived and not rpc.streams_in and not await refused(home, call):
        await left(home, call)
        return Answer("OK", [])  # a watch that was taken lasts as long as one likes
    return await call


async def refused(home: House, watch: asyncio.Future[Answer]) -> bool:
    """True once a watch has its answer, False once it waits for what happens."""
    while not watch.done():
        if home.app.core.events._waiters:
            return False
        await asyncio.sleep(0.001)
    return True


async def left(home: House, watch: asyncio.Future[Answer]) -> None:
    """Ends a watch that was taken, and waits until the server knows."""
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)
    async with asyncio.timeout(PATIENCE_S):
        while home.app.core.events._waiters:
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("rpc", SERVED, ids=short)
async def test_one_field_at_a_time(home: House, rpc: Rpc) -> None:
    await home.client.ingest_batch(ref("good"), history())
    answer = await ask(home, rpc, GOOD[short(rpc)](ref("good")))
    expected = "NOT_FOUND" if short(rpc) in NOT_THERE else "OK"
    assert answer.code == expected, "the good request is taken"
    wrong: list[str] = []
    for place, good in enumerate(GOOD[short(rpc)](ref("s"))):
        requests: list[Message] = []
        for number, (path, value) in enumerate(mutations(good.DESCRIPTOR, pruned(rpc))):
            if (
                not requests
            ):  # a call that was taken has changed its session: the next case gets one of its own
                session = ref(f"s{place}-{number}")
                await home.client.ingest_batch(session, history())
                requests, before = GOOD[short(rpc)](session), await state(home, session)
            bad = changed(requests[place], path, value)
            answer = await ask(home, rpc, [*requests[:place], bad, *requests[place + 1 :]])
            wrong += [f"{named(path)}: {said}" for said in faults(answer, rpc)]
            if answer.code == "OK":
                requests = []
            elif await state(home, session) != before:
                wrong.append(f"{named(path)}: {answer.code}, and yet something changed")
    assert wrong == []


def pruned(rpc: Rpc) -> set[str]:
    """Types that are looked into elsewhere: parts of messages in Ingest."""
    return set() if short(rpc) == "ContextEngine/Ingest" else {"Part"}


def faults(answer: Answer, rpc: Rpc) -> list[str]:
    """What is wrong with an answer to a bad request."""
    if answer.code not in STATUSES:
        return [f"{answer.code} {answer.error}"]
    if answer.error is None:
        return []
    found = []
    if not answer.error.reason:
        found.append(f"{answer.code} without a reason: {answer.error}")
    if answer.error.reason in ("INVALID_FIELD", "CONTRADICTORY_FIELDS", "BUDGET_IMPOSSIBLE"):
        fields = [violation.field for violation in answer.error.violations]
        if not fields:
            found.append(f"{answer.error.reason} names no field")
        found += [
            f"names {field!r}, which is no field" for field in fields if not resolves(rpc, field)
        ]
    return found
