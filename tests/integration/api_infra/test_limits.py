"""How many calls at once, until when, and what becomes of them when a client or the server goes."""

from __future__ import annotations

import asyncio
import time
from itertools import islice
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2

from contextengine_proto.v1 import (
    assemble_pb2,
    context_engine_pb2_grpc,
    lifecycle_pb2,
    sessions_pb2,
)
from contextengine_server.api.pipeline import server as api_server
from contextengine_server.api.pipeline.auth import TokenGrant, hash_token
from contextengine_server.api.pipeline.server import ServerOptions
from tests.integration.api_infra.house import House, Seen, failure, failure_of, house, nothing

REQUEST = assemble_pb2.AssembleRequest()
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def forever(request, call):
    await asyncio.Event().wait()


async def soon(seen: Seen, event: str = "cancelled") -> None:
    await asyncio.wait_for(getattr(seen, event).wait(), 30)


def counted(h: House, code: str) -> float:
    """How many calls of Assemble ended so, in the metrics."""
    key = (
        "rpc.method=contextengine.v1.ContextEngine/Assemble,"
        f"rpc.response.status_code={code},rpc.system.name=grpc"
    )
    return h.metrics.snapshot().get(f"rpc.server.call.duration{{{key}}}.count", 0)


async def idle(h: House) -> None:
    """Waits until the server works on nothing: a call is counted behind its reply."""
    async with asyncio.timeout(30):
        while h.metrics.snapshot()["contextengine.rpc.in_flight"]:
            await asyncio.sleep(0.01)


async def test_beyond_the_limit_callers_are_told_when_to_come_back():
    options = ServerOptions(address="127.0.0.1:0", max_concurrent_rpcs=1, overload_retry_ms=350)
    async with house(forever, options=options) as h:
        first = h.engine.Assemble(REQUEST)
        await soon(h.seen, "started")
        refused = await failure(h.engine.GetStatus(lifecycle_pb2.GetStatusRequest()))
        first.cancel()
        await soon(h.seen)
        await idle(h)
        assert (await h.engine.GetStatus(lifecycle_pb2.GetStatusRequest())).revision == 7
    assert refused.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (refused.reason, refused.retry_ms, refused.metadata) == (
        "OVERLOADED",
        350,
        {"limit": "1", "kind": "calls", "cause": "limit"},
    )


async def test_beyond_the_limit_callers_are_told_before_there_is_a_body():
    """A body that nobody will work on, however large, is never in memory."""
    options = ServerOptions(address="127.0.0.1:0", max_concurrent_rpcs=1)
    async with house(forever, options=options) as h:
        first = h.engine.Assemble(REQUEST)
        await soon(h.seen, "started")
        unsaid = h.channel.stream_unary("/contextengine.v1.ContextEngine/Ingest")()
        refused = await failure(unsaid)
        first.cancel()
    assert refused.reason == "OVERLOADED"


async def test_a_call_that_ends_without_a_request_is_told_so():
    async with house() as h:
        call = h.channel.stream_unary("/contextengine.v1.ContextEngine/Ingest")()
        await call.done_writing()
        failed = await failure(call)
    assert (failed.code, failed.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_REQUEST")


async def test_far_beyond_the_limit_every_caller_is_told_when_to_come_back():
    """Of calls that wait to be taken gRPC itself lets 1,000 to 3,000 be: others would hear a bare
    CANCELLED."""
    options = ServerOptions(
        address="127.0.0.1:0",
        max_concurrent_rpcs=10,
        max_streams_per_connection=10_000,
        max_wait_s=0.5,  # three times as long all but the first are held back
    )
    async with house(forever, options=options) as h:
        channels = [
            grpc.aio.insecure_channel(
                f"127.0.0.1:{h.port}", [("grpc.use_local_subchannel_pool", 1)]
            )
            for _ in range(4)
        ]
        stubs: list[Any] = [context_engine_pb2_grpc.ContextEngineStub(one) for one in channels]
        calls = [stub.Assemble(REQUEST) for _ in range(1_250) for stub in stubs]

        async def told(call: Any) -> tuple[grpc.StatusCode, str, int | None]:
            try:
                await call
            except grpc.aio.AioRpcError as error:
                failed = failure_of(error)
                return failed.code, failed.reason, failed.retry_ms
            raise AssertionError("the call did not fail")

        asked = [asyncio.ensure_future(told(call)) for call in calls]
        async with asyncio.timeout(120):
            heard = {await one for one in islice(asyncio.as_completed(asked), len(calls) - 10)}
        for one in asked:
            one.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        for channel in channels:
            await channel.close()
    assert heard == {(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", 200)}


async def test_a_connection_has_only_so_many_calls_at_once_and_what_is_beyond_waits_at_its_client():
    """gRPC would count calls that are over among them, and refuse bare what its own client takes
    for allowed."""
    options = ServerOptions(
        address="127.0.0.1:0", max_streams_per_connection=4, max_concurrent_rpcs=2_000
    )
    async with house(options=options) as h:
        replies = await asyncio.gather(*(h.engine.Assemble(REQUEST) for _ in range(1_000)))
    assert {reply.revision for reply in replies} == {3}


async def test_who_sends_whatever_becomes_of_it_is_slowed_down_by_his_own_connection():
    """Beyond the first refusals his calls stay open, so that no more come; others are answered
    meanwhile."""
    options = ServerOptions(
        address="127.0.0.1:0",
        max_concurrent_rpcs=20,
        max_working_rpcs=4,
        max_streams_per_connection=100,
        max_wait_s=60,
        tokens=tuple(TokenGrant(hash_token(name), name) for name in ("noisy", "quiet")),
    )
    noisy, quiet = ((("authorization", f"Bearer {name}"),) for name in ("noisy", "quiet"))
    status = "/contextengine.v1.ContextEngine/GetStatus"
    async with house(forever, options=options) as h:

        def held_back() -> float:
            return h.metrics.snapshot()["contextengine.calls.held_back"]

        calls = [h.engine.Assemble(REQUEST, metadata=noisy) for _ in range(500)]
        async with asyncio.timeout(30):
            while held_back() < 80:
                await asyncio.sleep(0.01)
        refused = h.metrics.snapshot()["contextengine.calls.refused{kind=calls,reason=limit}"]
        own = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{h.port}", own) as channel:
            asked: Any = channel.unary_unary(status)
            answered = await asked(b"", metadata=quiet, timeout=10)
        for call in calls:
            call.cancel()
        async with asyncio.timeout(30):
            while held_back():
                await asyncio.sleep(0.01)
    assert refused < 100
    assert lifecycle_pb2.GetStatusResponse.FromString(answered).revision == 7


async def test_watchers_do_not_use_up_the_places_of_calls():
    options = ServerOptions(address="127.0.0.1:0", max_concurrent_rpcs=1, max_long_lived_rpcs=1)
    async with house(options=options) as h:
        watch = h.sessions.Watch(sessions_pb2.WatchRequest())
        await watch.read()
        assert (await h.engine.Assemble(REQUEST)).revision == 3
        refused = await failure(h.sessions.Watch(sessions_pb2.WatchRequest()).read())
        watch.cancel()
    assert refused.reason == "OVERLOADED"


async def test_a_client_that_goes_away_cancels_the_work():
    async with house(forever) as h:
        call = h.engine.Assemble(REQUEST)
        await soon(h.seen, "started")
        call.cancel()
        await soon(h.seen)
        await idle(h)
        assert counted(h, "CANCELLED") == 1
    assert not h.seen.finished.is_set()


async def test_a_client_whose_clock_rings_first_is_late_all_the_same():
    """On the wire a timeout is rounded up, so the client often gives up before the server would."""
    async with house(forever) as h:
        for left, status in ((0.02, "DEADLINE_EXCEEDED"), (1.9, "CANCELLED")):
            h.seen.started.clear()
            call = h.engine.Assemble(REQUEST, timeout=2)
            await soon(h.seen, "started")
            while (h.seen.calls[-1].remaining() or 0) > left:
                await asyncio.sleep(0.001)
            call.cancel()
            await idle(h)
            assert counted(h, status) == 1


async def test_a_watcher_that_goes_away_ends_its_generator():
    async with house() as h:
        watch = h.sessions.Watch(sessions_pb2.WatchRequest())
        await watch.read()
        watch.cancel()
        await soon(h.seen, "finished")


async def test_half_a_stream_of_requests_is_never_taken_for_a_whole_one():
    async with house() as h:
        for _ in range(100):
            h.seen.started.clear()
            stream = h.sessions.Import()
            await stream.write(sessions_pb2.ImportRequest())
            await soon(h.seen, "started")
            stream.cancel()
        await idle(h)
        assert not h.seen.finished.is_set()


async def test_the_deadline_reaches_the_work():
    async with house(forever) as h:
        # Where the machine stands still, a short time is over before the server knows of the call.
        for timeout in (0.2, 2, 20):
            failed = await failure(h.engine.Assemble(REQUEST, timeout=timeout))
            assert failed.code is grpc.StatusCode.DEADLINE_EXCEEDED
            await idle(h)
            if counted(h, "DEADLINE_EXCEEDED"):
                break
        assert counted(h, "DEADLINE_EXCEEDED") == 1
        await soon(h.seen)
    assert h.seen.calls[-1].remaining() == 0


async def test_work_knows_how_long_it_may_take():
    times = []

    async def look(request, call):
        times.append(
            (call.remaining(), call.deadline and call.deadline - asyncio.get_running_loop().time())
        )
        return await nothing(request, call)

    async with house(look) as h:
        await h.engine.Assemble(REQUEST, timeout=900)
        await h.engine.Assemble(REQUEST)
    (remaining, until), never = times
    # On the wire gRPC rounds a timeout up.
    assert 800 < remaining <= 910
    assert 800 < until <= 910
    assert never == (None, None)


async def test_draining_lets_calls_finish_and_takes_no_new_ones():
    release = asyncio.Event()

    async def until_released(request, call):
        await release.wait()
        return await nothing(request, call)

    order = []

    async def dispose():
        order.append("engines")

    async def fail():
        order.append("broken")
        raise RuntimeError("a hook that fails")

    async def close():
        order.append("store")

    async with house(until_released) as h:
        for name, hook in (("engines", dispose), ("broken", fail), ("store", close)):
            h.server.on_drain(name, hook)
        running = h.engine.Assemble(REQUEST)
        await soon(h.seen, "started")
        watch = h.sessions.Watch(sessions_pb2.WatchRequest())
        await watch.read()
        drain = asyncio.create_task(h.server.drain(60))
        ended = await failure(watch.read())
        refused = await failure(h.engine.GetStatus(lifecycle_pb2.GetStatusRequest()))
        statuses = [
            (await h.health.Check(health_pb2.HealthCheckRequest(service=name))).status
            for name in ("", "contextengine.v1.ContextEngine")
        ]
        assert not order
        release.set()
        assert (await running).revision == 3
        await drain
        await h.server.drain(60)
    for failed in (ended, refused):
        assert (failed.code, failed.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
        assert failed.retry_ms
    assert statuses == [NOT_SERVING, NOT_SERVING]
    assert order == ["engines", "broken", "store"]


async def test_what_outlasts_the_grace_is_stopped_and_told_so():
    async with house(forever) as h:
        call = asyncio.create_task(failure(h.engine.Assemble(REQUEST)))
        await soon(h.seen, "started")
        await h.server.drain(0.1)
        failed = await call
    assert (failed.code, failed.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
    assert h.seen.cancelled.is_set()


async def test_a_hook_that_hangs_does_not_keep_the_server(monkeypatch):
    monkeypatch.setattr(api_server, "HOOK_TIMEOUT_S", 0.05)
    done = []

    async def hang():
        await asyncio.Event().wait()

    async def last():
        done.append(True)

    async with house() as h:
        h.server.on_drain("hanging", hang)
        h.server.on_drain("last", last)
        began = time.monotonic()
        await h.server.drain(0)
    assert done
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("service", ["ContextEngine", "Sessions", "Engines"])
async def test_each_service_has_its_health(service):
    name = f"contextengine.v1.{service}"
    async with house() as h:

        async def status(which: str) -> int:
            reply = await h.health.Check(health_pb2.HealthCheckRequest(service=which))
            return int(reply.status)

        assert [await status(""), await status(name)] == [SERVING, SERVING]
        assert await status("contextengine.v1.Projection") == SERVING
        await h.server.set_serving(name, False)
        assert [await status(""), await status(name)] == [SERVING, NOT_SERVING]
        assert (await failure(status("contextengine.v1.Nothing"))).code is grpc.StatusCode.NOT_FOUND
