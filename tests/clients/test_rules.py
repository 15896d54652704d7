"""Rules of clients/README.md that show only in what a client sends: ids, attempts, deltas,
deadlines."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2

from contextengine import types as t
from contextengine.calls import AFTER_TURN, ASSEMBLE, CALL_TOOL, EXPORT, GET_STATUS, IMPORT
from tests.clients.drivers import PATIENCE_S, Driver, Json, Refused, written
from tests.soak.killing import free_port
from tests.unit.client.conftest import Server
from tests.unit.client.test_errors import failing, info

AWAY = failing(grpc.StatusCode.UNAVAILABLE)
ATTEMPTS = 4


def said(text: str, id: str = "") -> t.Message:
    return t.Message(id=id, role=t.ROLE_USER, parts=[t.Part(text=t.TextPart(text=text))])


def showing(*ids: str) -> t.AssembleResponse:
    """A whole list."""
    items = [t.Item(id=id, message=said(id, id), tokens=1) for id in ids]
    response = t.AssembleResponse(
        items=items, context_hash=b"hash", outcome=t.AssembleResponse.OUTCOME_FITS
    )
    response.context_projection.epoch = "epoch"
    response.cache.total_count = len(ids)
    return response


def test_a_tool_is_called_once(alone: Driver, scripted: Server) -> None:
    scripted.answers[CALL_TOOL.path] = AWAY
    alone.connect(scripted.address)
    with pytest.raises(Refused):
        alone.call("ContextEngine.CallTool", t.CallToolRequest(name="recall"), t.CallToolResponse)
    assert len(scripted.requests) == 1


@pytest.mark.parametrize("call", [EXPORT, IMPORT], ids=["export", "import"])
def test_streams_are_opened_again(
    call: Any, alone: Driver, scripted: Server, session: Json
) -> None:
    scripted.answers[call.path] = AWAY
    alone.connect(scripted.address)
    sent = [written(said("a", "a")), written(said("b", "b"))]
    more = {"messages": sent} if call is IMPORT else {}
    with pytest.raises(Refused) as caught:
        alone.ask(call.path.rpartition("/")[2].lower(), session=session, **more)
    assert caught.value.error["type"] == "Unavailable"
    assert len(scripted.requests) == ATTEMPTS
    if call is IMPORT:
        assert [len(requests) for requests in scripted.requests] == [3] * ATTEMPTS


def status_of(driver: Driver) -> t.GetStatusResponse:
    request = t.GetStatusRequest(session=t.SessionRef(agent_id="a", session_id="s"))
    return driver.call("ContextEngine.GetStatus", request, t.GetStatusResponse)


def test_a_restart_of_some_seconds_fails_no_call(
    alone: Driver, scripted: Server, session: Json
) -> None:
    """What drains answers UNAVAILABLE for as long as it lives, here for 8 calls: some 5 s."""

    def answer(_: Any, context: grpc.ServicerContext) -> t.AfterTurnResponse:
        if len(scripted.requests) <= 2 * ATTEMPTS:
            failing(grpc.StatusCode.UNAVAILABLE, info("DRAINING"))(None, context)
        return t.AfterTurnResponse(revision=7)

    scripted.answers[AFTER_TURN.path] = answer
    patient = {"retry_for": PATIENCE_S, "timeouts": {"ContextEngine.AfterTurn": PATIENCE_S}}
    alone.connect(scripted.address, fallback=False, **patient)
    turn = t.AfterTurnRequest(messages=[said("new")])
    stored = alone.session(session, "after_turn", turn, t.AfterTurnResponse)
    assert stored.revision == 7
    assert len(scripted.requests) == 2 * ATTEMPTS + 1
    # Each attempt is the same request: what an earlier one stored is not stored again.
    assert scripted.requests[0].request_id
    assert scripted.requests.count(scripted.requests[0]) == len(scripted.requests)


def test_a_server_that_is_gone_for_some_seconds_is_found_again(alone: Driver) -> None:
    port = free_port()
    patient = {"retry_for": PATIENCE_S, "timeouts": {"ContextEngine.GetStatus": PATIENCE_S}}
    alone.connect(f"127.0.0.1:{port}", fallback=False, **patient)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(status_of, alone)
        time.sleep(3)
        assert not asked.done()
        server = Server(port)
        try:
            asked.result(PATIENCE_S)
        finally:
            server.stop()


def test_a_service_that_stays_away_is_waited_for_once_and_then_asked_once_a_call(
    alone: Driver, scripted: Server
) -> None:
    scripted.answers[GET_STATUS.path] = AWAY
    # A pause is below a second: as long as this the machine may stand still.
    alone.connect(scripted.address, retry_for=2)

    def attempts() -> int:
        before = len(scripted.requests)
        with pytest.raises(Refused) as caught:
            status_of(alone)
        assert caught.value.error["type"] == "Unavailable"
        return len(scripted.requests) - before

    # After 0.1, 0.3 and then each 0.8 seconds, each a fifth more or less.
    assert 2 <= attempts() <= 6
    time.sleep(2)
    assert [attempts(), attempts()] == [1, 1]
    # An answer shows that it is back, an error as well.
    scripted.answers[GET_STATUS.path] = failing(
        grpc.StatusCode.NOT_FOUND, info("SESSION_NOT_FOUND")
    )
    with pytest.raises(Refused):
        status_of(alone)
    scripted.answers[GET_STATUS.path] = AWAY
    assert 2 <= attempts() <= 6


def test_an_agent_waits_for_a_dead_service_once_and_not_at_every_turn(
    alone: Driver, session: Json
) -> None:
    port = free_port()
    alone.connect(f"127.0.0.1:{port}", retry_for=2)
    took = []
    for turn in range(40):
        began = time.monotonic()
        assert alone.assemble(session, t.AssembleRequest(ingest=[said("a", f"m{turn}")])).degraded
        took.append(time.monotonic() - began)
    # All turns together, not each: what is left is one attempt a turn.
    assert 0.9 < sum(took) < 40, took
    server = Server(port)
    try:
        # However long it was gone, it is used once it is back.
        end = time.monotonic() + PATIENCE_S
        while alone.assemble(session, t.AssembleRequest(ingest=[])).degraded:
            assert time.monotonic() < end
            time.sleep(0.1)
    finally:
        server.stop()


def test_no_time_means_no_second_attempt(alone: Driver, scripted: Server) -> None:
    scripted.answers[GET_STATUS.path] = AWAY
    alone.connect(scripted.address, retry_for=0)
    with pytest.raises(Refused):
        status_of(alone)
    assert len(scripted.requests) == 1


def test_a_pause_that_would_reach_the_deadline_is_not_begun(
    alone: Driver, scripted: Server
) -> None:
    retry = error_details_pb2.RetryInfo(retry_delay=Duration(seconds=61))
    scripted.answers[GET_STATUS.path] = failing(
        grpc.StatusCode.RESOURCE_EXHAUSTED, info("OVERLOADED"), retry
    )
    alone.connect(scripted.address, timeouts={"ContextEngine.GetStatus": PATIENCE_S})
    with pytest.raises(Refused) as caught:
        status_of(alone)
    assert caught.value.error["type"] == "Overloaded"
    assert len(scripted.requests) == 1


def test_a_deadline_holds_for_what_is_sent_before(
    alone: Driver, scripted: Server, session: Json
) -> None:
    scripted.answers[ASSEMBLE.path] = AWAY
    timeouts = {"ContextEngine.Assemble": 0.3, "ContextEngine.AfterTurn": 50}
    alone.connect(scripted.address, timeouts=timeouts)
    assert alone.assemble(session, t.AssembleRequest(ingest=[said("a", "a")])).degraded
    release = threading.Event()
    scripted.answers[AFTER_TURN.path] = lambda *_: release.wait(PATIENCE_S)
    context = alone.assemble(session, t.AssembleRequest(ingest=[said("b", "b")]))
    release.set()
    assert context.degraded == {"reason": "DEADLINE_EXCEEDED", "unqueued": 0}
    assert context.ids == ["a", "b"]


def test_new_messages_get_ids_and_others_none(
    alone: Driver, scripted: Server, session: Json
) -> None:
    alone.connect(scripted.address)
    scripted.answers[ASSEMBLE.path] = lambda *_: t.AssembleResponse()
    alone.assemble(session, t.AssembleRequest(live=t.LiveList(messages=[said("a")])))
    shown = t.LiveList(messages=[said("a")], store_new=True)
    alone.assemble(session, t.AssembleRequest(live=shown))
    turn = t.AfterTurnRequest(messages=[said("old"), said("new")], pre_prompt_message_count=1)
    alone.session(session, "after_turn", turn, t.AfterTurnResponse)
    alone.session(session, "reset", t.ResetSessionRequest(), t.ResetSessionResponse)
    change = t.RecordHostChangeRequest(rewind=t.RecordHostChangeRequest.Rewind(after_sequence=1))
    alone.session(session, "record_host_change", change, t.RecordHostChangeResponse)
    only, stored, after, reset, changed = scripted.requests
    assert [message.id for message in (*only.live.messages, *stored.live.messages)] == ["", ""]
    assert not only.request_id
    assert stored.request_id
    assert [bool(message.id) for message in after.messages] == [False, True]
    assert after.request_id
    assert reset.request_id
    assert changed.change_id


def test_a_history_that_comes_again_is_stored_once(driver: Driver, session: Json) -> None:
    request = t.BootstrapRequest(
        session=t.SessionRef(**session), history=[said("one"), said("two")]
    )
    for _ in range(3):
        driver.call("ContextEngine.Bootstrap", request, t.BootstrapResponse)
    assert len(driver.export(session)) == 2


def test_a_delta_that_does_not_fit_is_an_error_once(
    alone: Driver, scripted: Server, session: Json
) -> None:
    alone.connect(scripted.address)
    scripted.answers[ASSEMBLE.path] = lambda *_: showing("a", "b")
    request = t.AssembleRequest()
    assert alone.assemble(session, request).ids == ["a", "b"]
    wrong = showing("c")
    wrong.cache.reused_count, wrong.cache.total_count = 3, 4
    scripted.answers[ASSEMBLE.path] = lambda *_: wrong
    # A client may have an error of its own kind for it, which a driver tells as a defect.
    with pytest.raises((Refused, AssertionError)):
        alone.assemble(session, request)
    scripted.answers[ASSEMBLE.path] = lambda *_: showing("d")
    assert alone.assemble(session, request).ids == ["d"]
    alone.assemble(session, request, delta=False)
    known = [asked.known_context_hash for asked in scripted.requests]
    assert known == [b"", b"hash", b"", b""]


def test_nothing_is_shown_of_what_a_reset_emptied(
    alone: Driver, scripted: Server, session: Json
) -> None:
    alone.connect(scripted.address)
    scripted.answers[ASSEMBLE.path] = lambda *_: showing("a")
    alone.assemble(session, t.AssembleRequest())
    alone.session(session, "ingest", t.IngestRequest(message=said("b", "b")), t.IngestResponse)
    alone.session(session, "reset", t.ResetSessionRequest(), t.ResetSessionResponse)
    scripted.answers[ASSEMBLE.path] = failing(grpc.StatusCode.UNKNOWN)
    context = alone.assemble(session, t.AssembleRequest(ingest=[said("c", "c")]))
    assert context.ids == ["c"]
    asked = scripted.requests[-1]
    assert (asked.known_context_hash, asked.known_epoch) == (b"hash", "epoch")
