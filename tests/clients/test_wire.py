"""Messages come back byte for byte, and every error is typed, sent again or borne as the vectors
say."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from contextlib import suppress
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2

from contextengine import types as t
from contextengine.calls import ASSEMBLE, EXPORT, GET_STATUS, WATCH
from contextengine_proto.v1.errors_pb2 import ErrorReason
from tests.clients.drivers import Driver, Json, Refused, written
from tests.clients.vectors import parsed, vectors
from tests.unit.client.conftest import Server
from tests.unit.client.test_errors import failing

MESSAGES = vectors("messages.json")
RETRY_FOR = 0.9
"""Seconds within which exactly three attempts are made, whatever chance does to the pauses: after
0.1 and 0.3 seconds and not after another 0.8, each a fifth more or less."""
ERRORS = vectors("errors.json")["errors"]
DROPS_UNKNOWN_FIELDS = {"rust"}
"""Clients whose protobuf library does not keep fields that it does not know."""


def encoded() -> list[bytes]:
    """All messages of the vectors, encoded."""
    known = [parsed(t.Message, entry["message"]) for entry in MESSAGES["messages"]]
    return [message.SerializeToString(deterministic=True) for message in known] + [
        base64.b64decode(entry["encoded"]) for entry in MESSAGES["encoded"]
    ]


@pytest.mark.parametrize("way", ["import", "ingest_batch", "assemble"])
def test_messages_come_back_byte_for_byte(way: str, driver: Driver, session: Json) -> None:
    sent = encoded()
    if driver.language in DROPS_UNKNOWN_FIELDS:
        sent = sent[:-1]
    messages = [t.Message.FromString(message) for message in sent]
    if way == "import":
        driver.ask("import", session=session, messages=[base64.b64encode(m).decode() for m in sent])
    elif way == "ingest_batch":
        request = t.IngestBatchRequest(messages=messages)
        reply = driver.session(session, way, request, t.IngestBatchResponse)
        assert len(reply.stored) == len(sent)
    else:
        driver.assemble(session, t.AssembleRequest(ingest=messages))
    assert driver.export(session) == sent
    context = driver.assemble(session, t.AssembleRequest(budget=t.Budget(message_tokens=100_000)))
    shown = {item.message.id: item for item in context.items}
    verbatim = [m for m in messages if m.id in shown and not shown[m.id].form]
    assert len(verbatim) > 10
    assert [shown[m.id].message for m in verbatim] == verbatim


def test_the_vectors_hold_every_reason() -> None:
    served = {
        name.removeprefix("ERROR_REASON_") for name in ErrorReason.DESCRIPTOR.values_by_name
    } - {"UNSPECIFIED"}
    assert {case["reason"] for case in ERRORS if case["reason"]} - served == {"A_LATER_ONE"}
    assert served <= {case["reason"] for case in ERRORS}


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case["reason"] or case["code"])
def test_errors(case: Json, alone: Driver, scripted: Server) -> None:
    reason, code = case["reason"], case["code"]
    details: list[Any] = []
    if reason:
        info = error_details_pb2.ErrorInfo(
            reason=f"ERROR_REASON_{reason}",
            domain="contextengine",
            metadata={"limit": "9007199254740993"},
        )
        violation = error_details_pb2.BadRequest.FieldViolation(
            field="session.agent_id", description="why"
        )
        bad = error_details_pb2.BadRequest(field_violations=[violation])
        details = [info, bad, error_details_pb2.RetryInfo(retry_delay=Duration(nanos=20_000_000))]
    alone.connect(scripted.address, retry_for=RETRY_FOR)
    request = t.GetStatusRequest(session=t.SessionRef(agent_id="a", session_id="s"))
    # The first call pays for the connection, and for what a runtime compiles at its first use.
    alone.call("ContextEngine.GetStatus", request, t.GetStatusResponse)
    scripted.requests.clear()
    scripted.answers[GET_STATUS.path] = failing(getattr(grpc.StatusCode, code), *details)
    with pytest.raises(Refused) as caught:
        alone.call("ContextEngine.GetStatus", request, t.GetStatusResponse)
    error = caught.value.error
    assert (error["type"], error["reason"], error["code"]) == (case["type"], reason, code)
    assert error["message"] == "what happened"
    if reason:
        assert error["metadata"] == {"limit": "9007199254740993"}
        assert error["violations"] == [{"field": "session.agent_id", "description": "why"}]
        assert error["retry_after"] == pytest.approx(0.02)
    assert len(scripted.requests) == case["attempts"]


def test_a_large_request_is_sent_again_too(alone: Driver, scripted: Server) -> None:
    scripted.answers[ASSEMBLE.path] = failing(grpc.StatusCode.UNAVAILABLE)
    alone.connect(scripted.address, fallback=False, retry_for=RETRY_FOR)
    text = t.Part(text=t.TextPart(text="x" * 2_000_000))
    request = t.AssembleRequest(ingest=[t.Message(id="m", role=t.ROLE_USER, parts=[text])])
    with pytest.raises(Refused):
        alone.assemble({"agent_id": "a", "session_id": "s"}, request)
    assert len(scripted.requests) > 1


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case["reason"] or case["code"])
def test_what_is_borne(case: Json, alone: Driver, scripted: Server) -> None:
    info = error_details_pb2.ErrorInfo(reason=case["reason"], domain="contextengine")
    retry = error_details_pb2.RetryInfo(retry_delay=Duration(nanos=1_000_000))
    code = getattr(grpc.StatusCode, case["code"])
    scripted.answers[ASSEMBLE.path] = failing(code, *([info, retry] if case["reason"] else []))
    session = {"agent_id": "a", "session_id": "s"}
    message = t.Message(id="m", role=t.ROLE_USER, parts=[t.Part(text=t.TextPart(text="hello"))])
    alone.connect(scripted.address, retry_for=0)
    if not case["borne"]:
        with pytest.raises(Refused) as caught:
            alone.assemble(session, t.AssembleRequest(ingest=[message]))
        assert caught.value.error["type"] == case["type"]
        assert alone.pending() == 0
        return
    context = alone.assemble(session, t.AssembleRequest(ingest=[message]))
    assert context.degraded == {"reason": case["reason"] or case["code"], "unqueued": 0}
    assert context.ids == ["m"]
    assert alone.pending(session) == alone.pending() == 1


def test_nothing_is_borne_where_that_is_turned_off(alone: Driver, scripted: Server) -> None:
    scripted.answers[ASSEMBLE.path] = failing(grpc.StatusCode.UNKNOWN)
    alone.connect(scripted.address, fallback=False)
    with pytest.raises(Refused):
        alone.assemble({"agent_id": "a", "session_id": "s"}, t.AssembleRequest())


def test_a_handle_says_what_is_wrong(driver: Driver) -> None:
    request = t.IngestRequest(message=t.Message(id="m"))
    with pytest.raises(Refused) as caught:
        driver.session({"agent_id": "a", "session_id": "s"}, "ingest", request, t.IngestResponse)
    assert caught.value.error["type"] == "InvalidField"
    assert caught.value.error["violations"][0]["field"] == "message.role"


def test_ids_are_set_once(alone: Driver, scripted: Server) -> None:
    """Each attempt of a call carries the same ids, and what waits carries them too."""
    scripted.answers[ASSEMBLE.path] = failing(grpc.StatusCode.UNAVAILABLE)
    alone.connect(scripted.address, retry_for=RETRY_FOR)
    session = {"agent_id": "a", "session_id": "s"}
    message = t.Message(role=t.ROLE_USER, parts=[t.Part(text=t.TextPart(text="hello"))])
    context = alone.assemble(session, t.AssembleRequest(ingest=[message]))
    seen = {request.ingest[0].id for request in scripted.requests}
    assert len(scripted.requests) == 3
    assert seen == set(context.ids)
    alone.ask("flush")
    assert scripted.requests[-1].messages[0].id in seen
    assert written(scripted.requests[-1].session) == written(t.SessionRef(**session))
    assert alone.pending() == 0


def test_the_current_span_travels_along(alone: Driver, scripted: Server) -> None:
    alone.connect(scripted.address, token="secret")
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    request = written(t.GetStatusRequest(session=t.SessionRef(agent_id="a", session_id="s")))
    rpc = "ContextEngine.GetStatus"
    alone.ask("traced", traceparent=parent, tracestate="vendor=1", rpc=rpc, request=request)
    alone.ask("call", rpc=rpc, request=request)
    traced, plain = scripted.metadata
    assert (traced["traceparent"], traced["tracestate"]) == (parent, "vendor=1")
    assert "traceparent" not in plain
    assert traced["authorization"] == plain["authorization"] == "Bearer secret"


def named(agent: str, session: str) -> str:
    """clients/README.md §1: what a session is called for who is between."""
    return hashlib.sha256(agent.encode() + b"\0" + session.encode()).hexdigest()[:32]


def test_a_call_names_its_session_for_who_is_between(alone: Driver, scripted: Server) -> None:
    alone.connect(scripted.address)
    parent, child = (t.SessionRef(agent_id="a", session_id=name) for name in ("one", "two"))
    asked: list[tuple[str, Any, str | None]] = [
        ("ContextEngine.GetStatus", t.GetStatusRequest(session=parent), named("a", "one")),
        (
            "Recall.Search",
            t.SearchRequest(session=t.SessionRef(agent_id="größe", session_id="会话\n")),
            named("größe", "会话\n"),
        ),
        (
            "ContextEngine.GetStatus",
            t.GetStatusRequest(session=t.SessionRef(agent_id="a", session_key="one")),
            named("a", "one"),
        ),
        (
            "ContextEngine.GetStatus",
            t.GetStatusRequest(
                session=t.SessionRef(agent_id="a", session_id="id", session_key="one")
            ),
            named("a", "id"),
        ),
        (
            "ContextEngine.PrepareSubagentSpawn",
            t.PrepareSubagentSpawnRequest(parent=parent, child=child),
            named("a", "one"),
        ),
        ("ContextEngine.EndSubagent", t.EndSubagentRequest(child=child), named("a", "two")),
        ("Sessions.List", t.SessionsListRequest(agent_id="a"), None),
        ("ContextEngine.GetStatus", t.GetStatusRequest(), None),
    ]
    for rpc, request, _ in asked:
        alone.ask("call", rpc=rpc, request=written(request))
    found = [metadata.get("contextengine-session") for metadata in scripted.metadata]
    assert found == [name for _, _, name in asked]
    assert all(name is None or re.fullmatch("[0-9a-f]{32}", name) for name in found)


def test_a_stream_names_its_session_for_who_is_between(alone: Driver, scripted: Server) -> None:
    """By its first request. A lent model works for any session."""
    session = {"agent_id": "größe", "session_id": "会话\n"}
    said = t.WatchResponse(position="p", name="session:ingested")
    scripted.answers[WATCH.path] = lambda request, context: iter([said])
    scripted.answers[EXPORT.path] = lambda request, context: iter(
        [t.ExportResponse(session=t.SessionInfo()), t.ExportResponse(end={})]
    )
    alone.connect(scripted.address)
    message = written(t.Message(role=t.ROLE_USER, parts=[t.Part(text=t.TextPart(text="hello"))]))
    alone.ask("import", session=session, messages=[message])
    alone.ask("export", session=session)
    alone.ask("watch", session=session, resume_position="p", count=1)
    alone.ask(
        "lend", hello=written(t.AttachRequest.Hello(host_id="h")), text="", delay=0, failures=0
    )
    deadline = time.monotonic() + 20
    while len(scripted.metadata) < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    with suppress(Refused):
        alone.ask("lent")
    found = [metadata.get("contextengine-session") for metadata in scripted.metadata[:4]]
    assert found == [*[named("größe", "会话\n")] * 3, None]
    assert [len(request) for request in scripted.requests if isinstance(request, list)] == [2]


def test_a_token_stays_on_this_machine(alone: Driver) -> None:
    with pytest.raises((Refused, AssertionError), match="unencrypted"):
        alone.connect("example.com:443", token="secret")
    alone.connect("example.com:443", token="secret", insecure=True)
    with pytest.raises((Refused, AssertionError), match="Nope"):
        alone.connect("127.0.0.1:1", timeouts={"ContextEngine.Nope": 1})
