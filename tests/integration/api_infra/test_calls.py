"""A call from bytes to bytes: what is refused before a servicer sees it, and how replies of each
kind come back."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import grpc
import pytest

from contextengine.answers import answer_of
from contextengine_proto.v1 import (
    assemble_pb2,
    errors_pb2,
    lifecycle_pb2,
    runtime_pb2,
    runtime_pb2_grpc,
    sessions_pb2,
)
from contextengine_server import errors as domain
from contextengine_server.api.pipeline import contract, unserved
from contextengine_server.api.pipeline.call import Call
from contextengine_server.api.pipeline.server import ServerOptions
from contextengine_server.store.errors import StoreUnavailable
from tests.integration.api_infra.house import failure, house, nothing
from tests.integration.harness import PATIENCE_S

CALLS = 150
REQUEST = assemble_pb2.AssembleRequest()


async def test_a_message_and_its_bytes_are_the_same_reply():
    async def encoded(request, call):
        return (await nothing(request, call)).SerializeToString()

    async with house(nothing) as plain, house(encoded) as quick:
        first = await plain.raw("ContextEngine/Assemble")
        second = await quick.raw("ContextEngine/Assemble")
    assert first == second
    assert assemble_pb2.AssembleResponse.FromString(first).revision == 3


@pytest.mark.parametrize(
    "body",
    [
        b"\x0a\x05ab",  # shorter than it says
        b"\xff\xff\xff",  # no field at all
        b"\x0a\x04\x0a\x02\xc3\x28",  # a string that is not UTF-8
        b"\x0a\x05\x0a\x03\xed\xa0\x80",  # a lone surrogate
    ],
)
async def test_broken_bytes_are_named_with_their_rpc(body):
    async with house() as h:
        failed = await failure(h.raw("ContextEngine/Assemble", body))
        assert (await h.engine.GetStatus(lifecycle_pb2.GetStatusRequest())).revision == 7
    assert failed.code is grpc.StatusCode.INVALID_ARGUMENT
    assert failed.reason == "MALFORMED_REQUEST"
    assert failed.metadata["rpc"] == "contextengine.v1.ContextEngine/Assemble"
    assert "AssembleRequest" in failed.text
    assert not h.seen.calls


@pytest.mark.parametrize("over", [1, 200])
async def test_what_is_too_large_is_told_the_limit(over):
    options = ServerOptions(address="127.0.0.1:0", max_message_bytes=1_000)
    async with house(options=options) as h:
        failed = await failure(h.raw("ContextEngine/Assemble", b"\x0a" * (1_000 + over)))
    assert failed.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert failed.reason == "TOO_LARGE"
    assert failed.metadata == {"size": str(1_000 + over), "limit": "1000"}
    assert "max_message_bytes" in failed.text


async def test_beyond_the_transports_limit_the_code_is_the_same():
    async with house(options=ServerOptions(address="127.0.0.1:0", max_message_bytes=1_000)) as h:
        failed = await failure(h.raw("ContextEngine/Assemble", b"\x0a" * 4_000_000))
    assert failed.code is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_reply_that_is_too_large_is_not_sent():
    async def much(request, call):
        return b"x" * 1_001

    async with house(
        much, options=ServerOptions(address="127.0.0.1:0", max_message_bytes=1_000)
    ) as h:
        failed = await failure(h.engine.Assemble(REQUEST))
    assert failed.reason == "TOO_LARGE"
    assert "reply" in failed.text


async def test_an_unknown_rpc_is_unimplemented():
    async with house() as h:
        failed = await failure(h.raw("ContextEngine/Improvise"))
    assert failed.code is grpc.StatusCode.UNIMPLEMENTED


async def test_every_rpc_that_is_still_to_come_says_what_completes_it(monkeypatch):
    monkeypatch.setitem(unserved.UNSERVED, "contextengine.v1.ContextEngine/Maintain", "a version")
    async with house() as h:
        for rpc in contract.rpcs():
            if rpc.method not in unserved.UNSERVED:
                continue
            if rpc.streams_out:
                call = h.channel.stream_stream(f"/{rpc.method}")(iter([b""])).read()
            else:
                call = h.channel.unary_unary(f"/{rpc.method}")(b"")
            failed = await failure(call)
            assert failed.code is grpc.StatusCode.UNIMPLEMENTED, rpc.method
            assert failed.reason == "NOT_YET_SERVED"
            assert failed.metadata == {
                "rpc": rpc.method,
                "completed_by": unserved.UNSERVED[rpc.method],
            }


ALL_ERRORS = [
    kind
    for kind in vars(domain).values()
    if isinstance(kind, type) and issubclass(kind, domain.DomainError) and kind.reason != "DEFECT"
]


@pytest.mark.parametrize("kind", ALL_ERRORS, ids=lambda kind: kind.__name__)
async def test_every_domain_error_arrives_with_its_details(kind):
    async def fail(request, call):
        if kind is domain.InvalidField:
            raise domain.InvalidField("budget.window", "must be positive; got -1")
        if kind is domain.ContradictoryFields:
            raise domain.ContradictoryFields(["live", "ingest"], "give one of them")
        raise kind("what to do", metadata={"a": "b"}, retry_after_ms=1_500)

    async with house(fail) as h:
        failed = await failure(h.engine.Assemble(REQUEST))
    documented = f"ERROR_REASON_{kind.reason}"
    assert documented in [name for name, _ in errors_pb2.ErrorReason.items()]
    assert failed.reason == kind.reason
    assert failed.code is not grpc.StatusCode.UNKNOWN
    if kind is domain.InvalidField:
        assert failed.fields == {"budget.window": "must be positive; got -1"}
    elif kind is domain.ContradictoryFields:
        assert failed.fields == {"live": "give one of them", "ingest": "give one of them"}
    else:
        assert (failed.text, failed.metadata, failed.retry_ms) == ("what to do", {"a": "b"}, 1_500)


class PanicException(BaseException):
    """What a Rust library raises when it gives up: not an Exception."""


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("secret words of a user"),
        KeyError("secret words of a user"),
        PanicException("secret words of a user"),
        asyncio.CancelledError(),
        domain.DomainError("a reason that nobody gave"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_what_nobody_foresaw_is_a_defect_with_an_id(error, capsys):
    async def fail(request, call):
        raise error

    async with house(fail) as h:
        failed = await failure(h.engine.Assemble(REQUEST))
        assert (await h.engine.GetStatus(lifecycle_pb2.GetStatusRequest())).revision == 7
    assert failed.code is grpc.StatusCode.INTERNAL
    assert failed.reason == "DEFECT"
    assert failed.metadata["id"] in failed.text
    logged = capsys.readouterr().err
    assert failed.metadata["id"] in logged
    assert type(error).__name__ in logged
    assert "secret words" not in logged + failed.text


async def test_a_reply_of_no_known_kind_is_a_defect():
    async def fail(request, call):
        return "a string"

    async with house(fail) as h:
        assert (await failure(h.engine.Assemble(REQUEST))).reason == "DEFECT"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (StoreUnavailable("/var/lib/x.db: disk full"), "STORE_UNAVAILABLE"),
        (TimeoutError(), "DEADLINE"),
        (ExceptionGroup("", [domain.SessionNotFound("no such session")]), "SESSION_NOT_FOUND"),
    ],
)
async def test_errors_from_below_have_their_reason(error, reason):
    async def fail(request, call):
        raise error

    async with house(fail) as h:
        failed = await failure(h.engine.Assemble(REQUEST))
    assert failed.reason == reason
    assert "/var/lib" not in failed.text


@pytest.mark.parametrize("letter", ["x", "字", "\n", "\x00", "\ud800", "é"])
async def test_huge_and_hostile_error_texts_still_arrive(letter):
    async def fail(request, call):
        wrong = [
            domain.FieldViolation(f"field{index}{letter * 500}", letter * 5_000)
            for index in range(200)
        ]
        raise domain.SessionNotFound(
            letter * 1_000_000,
            violations=wrong,
            metadata={f"k{index}": letter * 10_000 for index in range(50)},
        )

    async with house(fail) as h:
        failed = await failure(h.engine.Assemble(REQUEST))
    assert failed.reason == "SESSION_NOT_FOUND"
    assert failed.code is grpc.StatusCode.NOT_FOUND


async def test_a_stream_of_requests_is_read_to_its_end():
    async with house() as h:
        reply = await h.sessions.Import(iter([sessions_pb2.ImportRequest()] * 5))
        assert reply.stored_count == 5
        call = h.channel.stream_unary("/contextengine.v1.Sessions/Import")(iter([b"", b"\xff"]))
        failed = await failure(answer_of(call))
    assert failed.reason == "MALFORMED_REQUEST"


async def test_a_stream_of_replies_ends_with_its_status():
    async with house() as h:
        whole = [part async for part in h.sessions.Export(sessions_pb2.ExportRequest())]
        broken = sessions_pb2.ExportRequest()
        broken.session.session_id = "broken"
        stream = h.sessions.Export(broken)
        parts = [await stream.read() for _ in range(3)]
        failed = await failure(stream.read())
    assert whole == parts
    assert (failed.code, failed.reason) == (grpc.StatusCode.INTERNAL, "DEFECT")


async def test_both_ways_may_stream():
    async with house() as h:
        stream: Any = runtime_pb2_grpc.RuntimeStub(h.channel).Attach()
        for name in ("a", "b"):
            request = runtime_pb2.AttachRequest()
            request.hello.host_id = name
            await stream.write(request)
            assert (await stream.read()).welcome.stream_id == name
        await stream.done_writing()
        assert await stream.read() is grpc.aio.EOF
        assert await stream.code() is grpc.StatusCode.OK


async def test_calls_are_counted():
    async with house() as h:
        await h.engine.Assemble(REQUEST)
        await failure(h.raw("ContextEngine/Assemble", b"\xff"))
        found = h.metrics.snapshot()
    method = "rpc.method=contextengine.v1.ContextEngine/Assemble"
    for status in ("OK", "INVALID_ARGUMENT"):
        labels = f"{method},rpc.response.status_code={status},rpc.system.name=grpc"
        assert found[f"rpc.server.call.duration{{{labels}}}.count"] == 1
    assert found[f"contextengine.rpc.received{{{method}}}"] == 1
    assert found[f"contextengine.rpc.sent{{{method}}}"] > 0
    assert found["contextengine.rpc.in_flight"] == 0


async def test_calls_that_are_done_are_freed_without_the_collector():
    """Circles would stand until the collector comes by, which for what it once met is hardly ever:
    of refused calls each was 10 KB of frames."""

    async def refuse(request, call):
        raise domain.Overloaded("not now", retry_after_ms=200)

    def held(kind: type) -> int:
        return sum(isinstance(one, kind) for one in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        async with house() as fine, house(refuse) as refusing:
            for _ in range(CALLS):
                await fine.raw("ContextEngine/Assemble")
                await failure(refusing.raw("ContextEngine/Assemble"))
            fine.seen.calls.clear()
            refusing.seen.calls.clear()
            async with asyncio.timeout(PATIENCE_S):
                # The intake holds on to the last dozens that it took, and not to what is theirs.
                while held(Call) or held(grpc.aio.AbortError) > CALLS / 2:
                    await asyncio.sleep(0.05)
    finally:
        gc.enable()
