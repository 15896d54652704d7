"""The bytes of requests and replies that are in memory at once, and what is refused beyond them."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from contextengine_proto.v1 import assemble_pb2, sessions_pb2
from contextengine_server.api.pipeline import bytes_in_flight
from contextengine_server.api.pipeline.auth import TokenGrant, hash_token
from contextengine_server.api.pipeline.server import ServerOptions
from tests.integration.api_infra.house import (
    House,
    SessionsDouble,
    failure,
    house,
    nothing,
)

MIB = 1 << 20
TOKENS = (TokenGrant(hash_token("noisy"), "noisy"), TokenGrant(hash_token("quiet"), "quiet"))
SMALL = assemble_pb2.AssembleRequest()
LARGE = assemble_pb2.AssembleRequest(prompt=[{"text": {"text": "x" * MIB}}])
OPTIONS = ServerOptions(
    address="127.0.0.1:0",
    max_message_bytes=2 * MIB,
    max_bytes_in_flight=4 * MIB,
    max_tenant_bytes_in_flight=3 * MIB,
    tokens=TOKENS,
)
NOISY, QUIET = ((("authorization", f"Bearer {name}"),) for name in ("noisy", "quiet"))
INGEST = "/contextengine.v1.ContextEngine/Ingest"


async def reaching(h: House, name: str, value: float) -> None:
    """Waits until a metric says so."""
    async with asyncio.timeout(60):
        while h.metrics.snapshot()[name] != value:
            await asyncio.sleep(0.01)


def in_flight(h: House) -> float:
    return h.metrics.snapshot()["contextengine.bytes.in_flight"]


async def held(h: House, count: int) -> list[Any]:
    """Calls with large requests, worked on until they are cancelled."""
    calls = [h.engine.Assemble(LARGE, metadata=NOISY) for _ in range(count)]
    await reaching(h, "contextengine.bytes.in_flight", count * LARGE.ByteSize())
    return calls


async def forever_if_large(request: Any, call: Any) -> Any:
    if request.prompt:
        await asyncio.Event().wait()
    return await nothing(request, call)


async def test_beyond_a_tenants_bytes_large_requests_are_told_when_to_come_back():
    async with house(forever_if_large, options=OPTIONS) as h:
        calls = await held(h, 2)
        refused = await failure(h.engine.Assemble(LARGE, metadata=NOISY))
        assert (await h.engine.Assemble(SMALL, metadata=NOISY)).revision == 3
        for call in calls:
            call.cancel()
        await reaching(h, "contextengine.bytes.in_flight", 0)
        counted = h.metrics.snapshot()["contextengine.bytes.refused{budget=tenant}"]
    assert (refused.code, refused.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
    assert refused.metadata == {
        "budget": "tenant",
        "limit": str(3 * MIB),
        "used": str(2 * LARGE.ByteSize()),
    }
    assert refused.retry_ms == bytes_in_flight.RETRY_MS
    assert "server.max_tenant_bytes_in_flight" in refused.text
    assert counted == 1


async def test_the_bytes_of_all_tenants_have_a_limit_too():
    async with house(forever_if_large, options=OPTIONS) as h:
        await held(h, 2)
        other = h.engine.Assemble(LARGE, metadata=QUIET)
        await reaching(h, "contextengine.bytes.in_flight", 3 * LARGE.ByteSize())
        refused = await failure(h.engine.Assemble(LARGE, metadata=QUIET))
        other.cancel()
    assert (refused.reason, refused.metadata["budget"]) == ("OVERLOADED", "server")


async def test_a_large_reply_counts_until_its_client_has_it(monkeypatch: pytest.MonkeyPatch):
    part = sessions_pb2.ExportResponse(message={"message": {"id": "x" * MIB}})

    async def export(self: object, request: Any, call: Any) -> Any:
        for _ in range(8):
            yield part

    monkeypatch.setattr(SessionsDouble, "export", export)
    async with house(options=OPTIONS) as h:
        slow = h.sessions.Export(sessions_pb2.ExportRequest(), metadata=NOISY)
        await slow.read()
        await reaching(h, "contextengine.bytes.in_flight", part.ByteSize())
        while await slow.read() is not grpc.aio.EOF:
            pass
        await reaching(h, "contextengine.bytes.in_flight", 0)


async def test_what_an_import_has_sent_counts_however_small_its_messages():
    message = sessions_pb2.ImportRequest(message={"id": "x" * 1_000})
    async with house(options=OPTIONS) as h:
        stream = h.sessions.Import(metadata=NOISY)
        await stream.write(message)
        each = message.ByteSize() + bytes_in_flight.GATHERED_BYTES
        await reaching(h, "contextengine.bytes.in_flight", each)
        await stream.write(message)
        await reaching(h, "contextengine.bytes.in_flight", 2 * each)
        await stream.done_writing()
        assert (await stream).stored_count == 2
        await reaching(h, "contextengine.bytes.in_flight", 0)


async def test_what_never_fits_is_not_to_be_sent_again():
    """One call alone gathers more than its tenant may have."""
    message = sessions_pb2.ImportRequest(message={"id": "x" * 60_000})
    each = message.ByteSize() + bytes_in_flight.GATHERED_BYTES
    fit = 3 * MIB // each

    async def messages() -> Any:
        """One more than fits, and then nothing: where a write meets a call that is over, gRPC's
        client for asyncio puts INTERNAL over the status that came (grpc/grpc#36066)."""
        for _ in range(fit + 1):
            yield message
        await asyncio.Event().wait()

    async with house(options=OPTIONS) as h:
        refused = await failure(h.sessions.Import(messages(), metadata=NOISY))
        await reaching(h, "contextengine.bytes.in_flight", 0)
        counted = h.metrics.snapshot()["contextengine.bytes.refused{budget=tenant}"]
    assert (refused.reason, refused.retry_ms, counted) == ("TOO_LARGE", None, 1)
    assert refused.metadata == {
        "budget": "tenant",
        "limit": str(3 * MIB),
        "used": str(fit * each),
    }
    assert "server.max_tenant_bytes_in_flight" in refused.text


async def unsaid(h: House, metadata: Any) -> Any:
    """A call whose request does not come."""
    reading = h.metrics.snapshot()["contextengine.bytes.reading"]
    call = h.channel.stream_unary(INGEST)(metadata=metadata)
    if reading < 2:
        await reaching(h, "contextengine.bytes.reading", reading + 1)
    return call


async def test_bodies_that_do_not_come_give_way_to_calls_that_wait():
    """One tenant's hang; the quiet one's call is answered all the same."""
    async with house(options=OPTIONS) as h:
        hanging = [await unsaid(h, NOISY) for _ in range(2)]
        assert (await h.engine.Assemble(SMALL, metadata=QUIET)).revision == 3
        refused = await failure(hanging[0])
        for call in hanging:
            call.cancel()
        await reaching(h, "contextengine.bytes.reading", 0)
        assert (await h.engine.Assemble(SMALL, metadata=QUIET)).revision == 3
    assert (refused.reason, refused.metadata["budget"]) == ("OVERLOADED", "reading")
    assert refused.retry_ms is not None


async def test_a_body_that_does_not_come_is_waited_for_while_nobody_else_waits(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(bytes_in_flight, "SLOW_S", 0.0)
    async with house(options=OPTIONS) as h:
        slow = await unsaid(h, NOISY)
        for _ in range(20):
            await h.engine.Assemble(SMALL, metadata=QUIET)
        assert not slow.done()
        slow.cancel()


async def test_a_body_that_does_not_come_gives_way_in_the_end_also_beside_a_loop_that_is_behind(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(bytes_in_flight, "LATE_S", -1.0)
    monkeypatch.setattr(bytes_in_flight, "SLOW_BEHIND_S", 0.5)
    async with house(options=OPTIONS) as h:
        hanging = [await unsaid(h, NOISY) for _ in range(2)]
        assert (await h.engine.Assemble(SMALL, metadata=QUIET)).revision == 3
        refused = await failure(hanging[0])
        for call in hanging:
            call.cancel()
    assert refused.metadata["budget"] == "reading"


async def test_tenants_are_read_by_turns_and_none_is_forgotten_who_goes_away():
    async with house(options=OPTIONS) as h:
        hanging = [await unsaid(h, NOISY) for _ in range(2)]
        gone = [h.engine.Assemble(SMALL, metadata=QUIET) for _ in range(5)]
        for call in gone:
            call.cancel()
        for call in hanging:
            call.cancel()
        await reaching(h, "contextengine.bytes.reading", 0)
        assert (await h.engine.Assemble(SMALL, metadata=QUIET)).revision == 3


async def test_while_memory_is_short_large_requests_are_refused_and_small_ones_answered():
    short = False
    async with house(options=OPTIONS, pressed=lambda: short) as h:
        assert (await h.engine.Assemble(LARGE, metadata=NOISY)).revision == 3
        short = True
        refused = await failure(h.engine.Assemble(LARGE, metadata=NOISY))
        assert (await h.engine.Assemble(SMALL, metadata=NOISY)).revision == 3
        await reaching(h, "contextengine.bytes.in_flight", 0)
    assert (refused.code, refused.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
    assert refused.metadata["budget"] == "memory"
    assert refused.retry_ms == bytes_in_flight.RETRY_MS
    assert "server.memory_limit" in refused.text
