"""What only waits takes nothing of others: reads for a revision that never comes, and streams on
which nothing happens."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import grpc
import pytest

from contextengine import AsyncClient, ContextEngineError, user
from contextengine_proto.v1 import (
    context_engine_pb2_grpc,
    lifecycle_pb2,
    message_pb2,
    runtime_pb2,
    runtime_pb2_grpc,
    sessions_pb2,
    sessions_pb2_grpc,
)
from tests.integration.harness import ALICE, BOB, PATIENCE_S, TOKENS, House, budget, ref
from tests.integration.harness import house as living

NEVER = 10**9
REF = message_pb2.SessionRef(agent_id="agent", session_id="quiet")


def as_tenant(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)


async def held(house: House, kind: str, number: int) -> None:
    """Waits until the service counts so many of a kind."""
    key = f"contextengine.calls.held{{kind={kind}}}"
    async with asyncio.timeout(PATIENCE_S):
        while house.app.metrics.snapshot()[key] != number:
            await asyncio.sleep(0.01)


def refusals(house: House, kind: str) -> dict[str, float]:
    """How many calls of a kind were refused, by cause."""
    prefix = f"contextengine.calls.refused{{kind={kind},reason="
    found = house.app.metrics.snapshot()
    return {
        key.removeprefix(prefix).rstrip("}"): value
        for key, value in found.items()
        if key.startswith(prefix) and value
    }


async def steps(client: AsyncClient, number: int) -> None:
    """What a quiet tenant does; raises where any of it is refused."""
    for index in range(number):
        await client.ingest(ref("quiet"), user(f"say {index}"))
        await client.assemble(ref("quiet"), budget=budget(10_000))


def never(house: House, number: int) -> list[Any]:
    """Alice waits so many times for what never comes."""
    stub = context_engine_pb2_grpc.ContextEngineStub(house.channel)
    request = lifecycle_pb2.GetStatusRequest(session=REF, at_least_revision=NEVER)
    return [stub.GetStatus(request, metadata=as_tenant(ALICE)) for _ in range(number)]


async def gone(calls: list[Any]) -> None:
    for call in calls:
        call.cancel()
    await asyncio.gather(*(_end(call) for call in calls))


async def _end(call: Any) -> None:
    with contextlib.suppress(grpc.RpcError, asyncio.CancelledError):
        await call


async def test_reads_that_wait_hold_no_place_of_calls(tmp_path: Path) -> None:
    few = {
        "server.max_concurrent_rpcs": 4,
        "server.max_working_rpcs": 2,
        "server.max_waiting_reads": 50,
    }
    async with living(tmp_path, token=BOB, **{"auth.tokens": TOKENS}, **few) as house:
        waits: list[Any] = []
        for number in range(1, 51):  # one after the other: at most four calls are let in at once
            waits += never(house, 1)
            await held(house, "waits", number)
        await held(house, "calls", 0)
        await steps(house.client, 10)
        assert refusals(house, "calls") == {}
        # A wait of the quiet tenant takes the place of the newest of the other's.
        reader = asyncio.create_task(
            house.client.assemble(ref("quiet"), budget=budget(10_000), at_least_revision=11)
        )
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await waits[-1]
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        await house.client.ingest(ref("quiet"), user("what the reader waits for"))
        assert (await reader).revision == 11
        assert refusals(house, "waits") == {"pushed_out": 1}
        await gone(waits)
        await house.working(0)


async def test_a_read_hears_of_the_write_that_it_waits_for(house: House) -> None:
    await house.client.ingest(ref(), user("one"))
    reader = asyncio.create_task(
        house.client.assemble(ref(), budget=budget(10_000), at_least_revision=3)
    )
    await held(house, "waits", 1)
    await house.client.ingest(ref(), user("two"))
    await held(house, "waits", 1)
    await house.client.ingest(ref(), user("three"))
    assert (await reader).revision == 3
    await house.working(0)


async def test_idle_watches_of_one_tenant_leave_room_for_others(tmp_path: Path) -> None:
    settings = {"auth.tokens": TOKENS, "server.max_long_lived_rpcs": 20}
    async with living(tmp_path, token=BOB, **settings) as house:
        stub = sessions_pb2_grpc.SessionsStub(house.channel)

        def watch(token: str) -> Any:
            return stub.Watch(sessions_pb2.WatchRequest(), metadata=as_tenant(token))

        noisy = [watch(ALICE) for _ in range(20)]
        for stream in noisy:
            await stream.initial_metadata()
        await held(house, "streams", 20)
        quiet = watch(BOB)
        await quiet.initial_metadata()
        reads = [asyncio.ensure_future(stream.read()) for stream in noisy]
        (ended,), _ = await asyncio.wait(reads, return_when=asyncio.FIRST_COMPLETED)
        error = ended.exception()
        assert isinstance(error, grpc.aio.AioRpcError)
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        await house.client.ingest(ref("quiet"), user("something happens"))
        event = await quiet.read()
        assert event.session_id == "quiet"
        # One more of the noisy tenant finds no room, and one of the quiet does.
        with pytest.raises(grpc.aio.AioRpcError):
            await watch(ALICE).read()
        again = watch(BOB)
        await again.initial_metadata()
        assert refusals(house, "streams") == {"limit": 1, "pushed_out": 2}
        for stream in (*noisy, quiet, again):
            stream.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        await house.working(0)


async def test_idle_harnesses_hold_no_place_of_calls_and_leave_room_for_others(
    tmp_path: Path,
) -> None:
    settings = {
        "auth.tokens": TOKENS,
        "server.max_long_lived_rpcs": 20,
        "server.max_concurrent_rpcs": 2,
        "server.max_working_rpcs": 1,
    }
    async with living(tmp_path, token=BOB, **settings) as house:
        stub = runtime_pb2_grpc.RuntimeStub(house.channel)
        hello = runtime_pb2.AttachRequest(hello={"host_id": "harness"})

        def attach(token: str) -> Any:
            return stub.Attach(metadata=as_tenant(token))

        # Half of them introduce themselves, half never say a word.
        noisy = [attach(ALICE) for _ in range(20)]
        for stream in noisy[:10]:
            await stream.write(hello)
            await stream.read()
        await held(house, "streams", 20)
        await held(house, "calls", 0)
        await steps(house.client, 3)
        quiet = attach(BOB)
        await quiet.write(hello)
        assert (await quiet.read()).welcome.stream_id
        await held(house, "streams", 20)
        assert refusals(house, "streams") == {"pushed_out": 1}
        assert not refusals(house, "calls")
        for stream in (*noisy, quiet):
            stream.cancel()
        await held(house, "streams", 0)


async def test_a_quota_of_the_settings_holds_and_clients_hear_what_it_is(tmp_path: Path) -> None:
    quotas = [{"tenant": "alice", "waits": 1}]
    settings = {"auth.tokens": TOKENS, "server.quotas": quotas}
    async with living(tmp_path, token=ALICE, **settings) as house:
        await house.client.ingest(ref("quiet"), user("one"))
        waits = never(house, 1)
        await held(house, "waits", 1)
        with pytest.raises(ContextEngineError) as caught:
            await house.client.assemble(
                ref("quiet"), budget=budget(10_000), at_least_revision=NEVER
            )
        assert caught.value.metadata == {"limit": "1", "kind": "waits", "cause": "quota"}
        # The client tried four times, as it does for every call that found no room.
        assert refusals(house, "waits") == {"quota": 4}
        other = house.client_of(BOB)
        await steps(other, 2)
        await gone(waits)
        await house.working(0)
