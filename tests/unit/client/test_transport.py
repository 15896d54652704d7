"""Deadlines, retries, metadata and streams, against a server that does as the test says."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2

from contextengine import AsyncClient, Client, attempts, errors, user
from contextengine.calls import (
    ASSEMBLE,
    ATTACH,
    CALL_TOOL,
    EXPORT,
    GET_STATUS,
    IMPORT,
    INGEST,
    MAX_ATTEMPTS,
    WATCH,
)
from contextengine.types import (
    AssembleResponse,
    AttachRequest,
    AttachResponse,
    CallToolResponse,
    ExportResponse,
    ImportResponse,
    IngestResponse,
    Item,
    SessionInfo,
    SessionRef,
    WatchResponse,
)
from tests.unit.client.conftest import Server
from tests.unit.client.test_errors import failing, info

REF = SessionRef(agent_id="a", session_id="s")
Run = Callable[..., Any]
PATIENT: dict[str, Any] = {"retry_for": 60, "timeouts": {"ContextEngine.Ingest": 60}}
"""On a machine that stands still the usual times may be over before the last attempt."""


def first(failures: int, fail: Callable[..., Any], reply: Any) -> Callable[..., Any]:
    """Fails this often, then replies."""
    left = [failures]

    def answer(request: Any, context: grpc.ServicerContext) -> Any:
        left[0] -= 1
        return fail(request, context) if left[0] >= 0 else reply

    return answer


def overloaded(seconds: float) -> Callable[..., Any]:
    retry = error_details_pb2.RetryInfo()
    retry.retry_delay.FromMilliseconds(round(seconds * 1_000))
    return failing(grpc.StatusCode.RESOURCE_EXHAUSTED, info("OVERLOADED"), retry)


def test_a_write_is_sent_again_while_the_server_is_unavailable(server: Server, run: Run) -> None:
    fail = failing(grpc.StatusCode.UNAVAILABLE, info("STORE_UNAVAILABLE"))
    server.answers[INGEST.path] = first(2, fail, IngestResponse(revision=7))
    sent = run(lambda client: client.ingest(REF, user("hello", id="")), **PATIENT)
    assert sent.revision == 7
    assert len(server.requests) == 3
    # The very same request: the message's id was set once.
    assert server.requests[0].message.id
    assert server.requests.count(server.requests[0]) == 3


def test_retries_end(server: Server, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "JITTER", 0.0)
    server.answers[GET_STATUS.path] = failing(grpc.StatusCode.UNAVAILABLE, info("DRAINING"))
    with pytest.raises(errors.Draining):
        run(lambda client: client.get_status(REF), retry_for=1.1)
    # After 0.1 and 0.3 seconds; another 0.8 would be too late, as may be others where it stands
    # still.
    assert len(server.requests) <= 3


def test_a_restart_of_some_seconds_fails_no_call(server: Server, run: Run) -> None:
    fail = failing(grpc.StatusCode.UNAVAILABLE, info("DRAINING"))
    server.answers[INGEST.path] = first(MAX_ATTEMPTS, fail, IngestResponse(revision=7))
    began = time.monotonic()
    assert run(lambda client: client.ingest(REF, user("hello")), **PATIENT).revision == 7
    assert time.monotonic() - began > 1.5
    assert len(server.requests) == MAX_ATTEMPTS + 1


def test_what_is_not_safe_to_send_twice_is_sent_once(server: Server, run: Run) -> None:
    server.answers[CALL_TOOL.path] = failing(grpc.StatusCode.UNAVAILABLE)
    with pytest.raises(errors.Unavailable):
        run(lambda client: client.call_tool(REF, "recall"))
    assert len(server.requests) == 1


def test_a_refusal_for_load_is_sent_again_when_the_server_says(server: Server, run: Run) -> None:
    # Refused before anything was done: safe even for what is else sent once.
    server.answers[CALL_TOOL.path] = first(2, overloaded(0.01), CallToolResponse(tokens=3))
    assert run(lambda client: client.call_tool(REF, "recall")).tokens == 3
    assert len(server.requests) == 3


def test_a_refusal_that_outlasts_the_deadline_is_raised_at_once(server: Server, run: Run) -> None:
    server.answers[INGEST.path] = overloaded(61)
    with pytest.raises(errors.Overloaded) as caught:
        run(lambda client: client.ingest(REF, user("hello"), timeout=60))
    assert caught.value.retry_after == 61
    assert len(server.requests) == 1


@pytest.mark.parametrize("reason", ["TOO_LARGE", "BUDGET_SPENT"])
def test_other_exhaustion_is_not_sent_again(reason: str, server: Server, run: Run) -> None:
    server.answers[INGEST.path] = failing(grpc.StatusCode.RESOURCE_EXHAUSTED, info(reason))
    with pytest.raises(errors.BY_REASON[reason]):
        run(lambda client: client.ingest(REF, user("hello")))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "settings", [{}, {"timeouts": {"ContextEngine.Assemble": 0.2}}], ids=["call", "client"]
)
def test_a_deadline_ends_the_call(settings: dict[str, Any], server: Server, run: Run) -> None:
    release = threading.Event()
    server.answers[ASSEMBLE.path] = lambda request, context: release.wait(60)
    argument = {} if settings else {"timeout": 0.2}
    with pytest.raises(errors.DeadlinePassed) as caught:
        run(lambda client: client.assemble(REF, **argument), **settings)
    release.set()
    assert caught.value.code == grpc.StatusCode.DEADLINE_EXCEEDED
    assert len(server.requests) <= 1  # it may be over before the server hears of the call


def test_every_call_has_a_deadline_unless_it_is_taken_away(server: Server, run: Run) -> None:
    seen: list[float | None] = []

    def answer(request: Any, context: grpc.ServicerContext) -> Any:
        seen.append(context.time_remaining())
        return IngestResponse()

    server.answers[INGEST.path] = answer
    run(lambda client: client.ingest(REF, user("hello")))
    run(lambda client: client.ingest(REF, user("hello"), timeout=math.inf))
    assert seen[0] is not None
    assert INGEST.timeout is not None
    assert 0 < seen[0] <= INGEST.timeout + 1  # on the wire a deadline is rounded up
    # gRPC says "no deadline" as years.
    assert seen[1] is None or seen[1] > 1e6


def test_a_server_that_is_not_there_is_unavailable(server: Server, run: Run) -> None:
    server.stop()
    with pytest.raises(errors.Unavailable) as caught:
        run(lambda client: client.get_status(REF, timeout=60), retry_for=1)
    assert caught.value.reason == ""


def test_token_and_metadata_travel_with_every_rpc(server: Server, run: Run) -> None:
    spans = iter(["00-1", "00-2"])
    settings = {"token": "secret", "metadata": lambda: [("traceparent", next(spans))]}
    run(lambda client: client.get_status(REF), **settings)
    run(lambda client: client.sessions.list(), **settings)
    assert [seen["authorization"] for seen in server.metadata] == ["Bearer secret"] * 2
    assert [seen["traceparent"] for seen in server.metadata] == ["00-1", "00-2"]


def test_messages_above_grpcs_own_limit_pass(server: Server, run: Run) -> None:
    large = user("x" * (6 * 1024 * 1024))
    reply = AssembleResponse(items=[Item(message=large)])
    server.answers[ASSEMBLE.path] = lambda request, context: reply
    assert run(lambda client: client.assemble(REF, ingest=[large])) == reply
    assert server.requests[0].ingest[0] == large


def test_an_import_streams_its_header_and_messages(server: Server, run: Run) -> None:
    server.answers[IMPORT.path] = lambda requests, context: ImportResponse(
        stored_count=len(requests) - 1
    )
    messages = [user("a", id=""), user("b")]
    stored = run(
        lambda client: client.sessions.import_session(REF, iter(messages), model="m")
    ).stored_count
    assert stored == 2
    assert server.requests[0][0].header.model == "m"
    assert [request.message for request in server.requests[0][1:]] == messages


def test_an_import_refused_says_why(server: Server, run: Run) -> None:
    server.answers[IMPORT.path] = failing(grpc.StatusCode.ALREADY_EXISTS, info("SESSION_EXISTS"))
    with pytest.raises(errors.SessionExists):
        run(lambda client: client.sessions.import_session(REF, [user("a")]))


def test_an_import_that_is_refused_while_it_is_sent_says_why_too(server: Server, run: Run) -> None:
    def refused(requests: Iterator[Any], context: grpc.ServicerContext) -> Any:
        for _ in range(3):
            next(requests)
        failing(grpc.StatusCode.RESOURCE_EXHAUSTED, info("TOO_LARGE"))(requests, context)

    server.gathers = False
    server.answers[IMPORT.path] = refused
    messages = [user("x" * 50_000, id=f"m{number}") for number in range(100)]
    for _ in range(30):  # whether a write meets the end of the call is a race
        with pytest.raises(errors.TooLarge):
            run(lambda client: client.sessions.import_session(REF, messages))


def test_messages_that_cannot_be_read_stop_an_import_before_it_begins(
    server: Server, run: Run
) -> None:
    def broken() -> Iterator[Any]:
        yield user("a")
        raise ValueError("line 2 is bad")

    with pytest.raises(ValueError, match="line 2 is bad"):
        run(lambda client: client.sessions.import_session(REF, broken()))
    assert not server.requests


def exported(request: Any, context: grpc.ServicerContext) -> Iterator[ExportResponse]:
    yield ExportResponse(session=SessionInfo(session_id="s"))
    yield ExportResponse(message=ExportResponse.ExportedMessage(sequence=1))
    context.abort(grpc.StatusCode.ABORTED, "deleted meanwhile")


def endless(request: Any, context: grpc.ServicerContext) -> Iterator[WatchResponse]:
    count = 0
    while context.is_active():
        count += 1
        yield WatchResponse(position=str(count))


def jobs(
    requests: Iterator[AttachRequest], context: grpc.ServicerContext
) -> Iterator[AttachResponse]:
    for request in requests:
        if request.HasField("hello"):
            yield AttachResponse(job=AttachResponse.Job(job_id="j"))
        else:
            yield AttachResponse(
                receipt=AttachResponse.Receipt(job_id=request.completion.job_id, accepted=True)
            )
            return


HELLO = AttachRequest(hello=AttachRequest.Hello(host_id="h"))
DONE = AttachRequest(completion=AttachRequest.Completion(job_id="j", text="a summary"))


def test_streams(server: Server) -> None:
    server.answers |= {EXPORT.path: exported, WATCH.path: endless, ATTACH.path: jobs}
    with Client(server.address) as client:
        session = client.session(agent_id="a", session_id="s")
        export = session.export()
        assert next(export).session.session_id == "s"
        assert next(export).message.sequence == 1
        with pytest.raises(errors.ContextEngineError, match="deleted meanwhile"):
            next(export)
        with session.watch() as watch:
            assert [next(watch).position, next(watch).position] == ["1", "2"]
        with pytest.raises(errors.ContextEngineError) as caught:
            list(watch)
        assert caught.value.code == grpc.StatusCode.CANCELLED
        replies = list(client.runtime.attach([HELLO, DONE]))
        assert [reply.WhichOneof("kind") for reply in replies] == ["job", "receipt"]


async def test_streams_async(server: Server) -> None:
    server.answers |= {EXPORT.path: exported, WATCH.path: endless, ATTACH.path: jobs}

    async def requests() -> AsyncIterator[AttachRequest]:
        yield HELLO
        yield DONE

    async with AsyncClient(server.address) as client:
        session = client.session(agent_id="a", session_id="s")
        export = session.export()
        assert (await anext(export)).session.session_id == "s"
        assert (await anext(export)).message.sequence == 1
        with pytest.raises(errors.ContextEngineError, match="deleted meanwhile"):
            await anext(export)
        async with session.watch() as watch:
            assert (await anext(watch)).position == "1"
        replies = [reply.WhichOneof("kind") async for reply in client.runtime.attach(requests())]
        assert replies == ["job", "receipt"]


async def test_cancelling_reaches_the_server(server: Server) -> None:
    ended = threading.Event()

    def answer(request: Any, context: grpc.ServicerContext) -> Any:
        context.add_callback(ended.set)
        ended.wait(60)
        return None

    server.answers[ASSEMBLE.path] = answer
    async with AsyncClient(server.address) as client:
        call = asyncio.create_task(client.assemble(REF))
        while not server.requests:
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await asyncio.to_thread(ended.wait, 60)
