"""What hosts rely on (clients/README.md, sections 3 to 5): who bears an outage is chosen call by
call, a fresh handle answers the host's own list, a service that is known to be away is not waited
for again, and every call of a session is on its handle."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest

from contextengine import types as t
from contextengine.breaker import SERVING
from contextengine.calls import AFTER_TURN, ASSEMBLE, GET_STATUS
from tests.clients.drivers import Driver, Json, Refused, written
from tests.clients.test_rules import AWAY, said, showing
from tests.soak.killing import free_port
from tests.unit.client.conftest import Server
from tests.unit.client.test_errors import failing, info

QUESTION_S = 0.05
"""What a call waits for a service that is known to be away."""
PATIENCE_S = 60
PAUSE_S = 5.0
"""The first pause of a breaker whose trial has failed."""


@contextmanager
def hung() -> Iterator[str]:
    """The address of a service that takes connections and answers nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def refused_write(driver: Driver, session: Json, method: str, fallback: bool | None = None) -> Json:
    requests = {
        "ingest": (t.IngestRequest(message=said("w")), t.IngestResponse),
        "ingest_batch": (t.IngestBatchRequest(messages=[said("w")]), t.IngestBatchResponse),
        "after_turn": (t.AfterTurnRequest(messages=[said("w")]), t.AfterTurnResponse),
        "report_usage": (t.ReportUsageRequest(), t.ReportUsageResponse),
    }
    request, kind = requests[method]
    with pytest.raises(Refused) as caught:
        driver.session(session, method, request, kind, fallback)
    return caught.value.error


@pytest.mark.parametrize("method", ["ingest", "ingest_batch", "after_turn", "report_usage"])
def test_writes_raise_where_they_are_told_to_and_queue_nothing(
    method: str, alone: Driver, session: Json
) -> None:
    alone.connect(f"127.0.0.1:{free_port()}", retry_for=0)
    assert refused_write(alone, session, method, False)["type"] == "Unavailable"
    assert alone.pending(session) == 0
    # Beside them an assembly is borne as before.
    assert alone.assemble(session, t.AssembleRequest(ingest=[said("a", "a")])).degraded
    assert alone.pending(session) == 1


def test_assemble_raises_where_it_is_told_to(alone: Driver, session: Json) -> None:
    alone.connect(f"127.0.0.1:{free_port()}", retry_for=0)
    with pytest.raises(Refused) as caught:
        alone.assemble(session, t.AssembleRequest(ingest=[said("a", "a")]), fallback=False)
    assert caught.value.error["type"] == "Unavailable"
    assert alone.pending(session) == 0


def test_assemble_is_borne_by_a_client_that_bears_nothing_else(
    alone: Driver, session: Json
) -> None:
    alone.connect(f"127.0.0.1:{free_port()}", retry_for=0, fallback=False)
    request = t.AssembleRequest(ingest=[said("a", "a"), said("b", "b")])
    with pytest.raises(Refused):
        alone.assemble(session, request)
    context = alone.assemble(session, request, fallback=True)
    assert context.ids == ["a", "b"]
    # Without a queue nobody stores them but the caller.
    assert context.degraded == {"reason": "UNAVAILABLE", "unqueued": 2}
    # A write that nothing queues would be lost.
    assert refused_write(alone, session, "ingest", True)["type"] == "Unavailable"


def test_a_fresh_handle_answers_the_hosts_own_list(alone: Driver, session: Json) -> None:
    alone.connect(f"127.0.0.1:{free_port()}", retry_for=0)
    own = [said("one", "m1"), said("two", "m2"), said("three", "m3")]
    # What is ingested stands in the list already.
    request = t.AssembleRequest(ingest=[said("three", "m3")])
    context = alone.assemble(session, request, host_messages=own)
    assert context.ids == ["m1", "m2", "m3"]
    assert context.degraded == {"reason": "UNAVAILABLE", "unqueued": 0}
    assert alone.pending(session) == 1
    # Whole atoms within the budget, as ever.
    request.budget.message_tokens = 60
    assert alone.assemble(session, request, host_messages=own).ids == ["m2", "m3"]


def test_the_hosts_list_is_not_sent(alone: Driver, scripted: Server, session: Json) -> None:
    scripted.answers[ASSEMBLE.path] = lambda *_: showing("a")
    alone.connect(scripted.address)
    context = alone.assemble(session, t.AssembleRequest(), host_messages=[said("mine", "m1")])
    assert context.ids == ["a"]
    assert not scripted.requests[0].HasField("live")
    # While the service is away it wins over what the handle holds.
    scripted.answers[ASSEMBLE.path] = AWAY
    alone.connect(scripted.address, retry_for=0)
    assert alone.assemble(session, t.AssembleRequest(), host_messages=[said("m", "m1")]).ids == [
        "m1"
    ]


def test_a_hang_costs_its_deadline_once(alone: Driver, session: Json) -> None:
    deadline = 2.0
    with hung() as address:
        timeouts = {"ContextEngine.Assemble": deadline, "ContextEngine.AfterTurn": deadline}
        alone.connect(address, breaker=True, timeouts=timeouts)
        began = time.monotonic()
        assert alone.assemble(session, t.AssembleRequest(ingest=[said("a", "a")])).degraded
        assert time.monotonic() - began > deadline / 2
        turns = 40
        began = time.monotonic()
        for turn in range(turns):
            alone.assemble(session, t.AssembleRequest(ingest=[said("b", f"b{turn}")]))
        took = time.monotonic() - began
        # Without a breaker each would wait for its deadline: 80 s.
        assert took < turns * deadline / 4, took
        assert alone.pending(session) == turns + 1


def test_calls_behind_a_hang_do_not_wait_each_anew(alone: Driver, session: Json) -> None:
    with hung() as address:
        alone.connect(address, breaker=True, timeouts={"ContextEngine.GetStatus": 1.0})

        def ask() -> None:
            with pytest.raises(Refused):
                alone.session(session, "status", t.GetStatusRequest(), t.GetStatusResponse)

        ask()
        calls = 300
        began = time.monotonic()
        for _ in range(calls):
            ask()
        # Each for itself would wait 15 s; together they wait for a question, and one begins in 5 s.
        assert time.monotonic() - began < calls * QUESTION_S / 2


def test_a_dead_service_is_asked_for_no_longer(alone: Driver, session: Json) -> None:
    alone.connect(f"127.0.0.1:{free_port()}", breaker=True, retry_for=0.2)
    assert alone.assemble(session, t.AssembleRequest(ingest=[said("a", "a")])).degraded
    turns = 40
    began = time.monotonic()
    for turn in range(turns):
        asked = t.AssembleRequest(ingest=[said("b", f"b{turn}")])
        assert alone.assemble(session, asked).degraded
    # Each waits for the answer of a question, and no attempt of its own.
    assert time.monotonic() - began < turns * (QUESTION_S + 0.25)


def test_it_is_found_again_by_a_question(alone: Driver, session: Json) -> None:
    port = free_port()
    alone.connect(f"127.0.0.1:{port}", breaker=True, retry_for=0.2)
    assert alone.assemble(session, t.AssembleRequest(ingest=[said("a", "a")])).degraded
    server = Server(port)
    try:
        server.answers[ASSEMBLE.path] = lambda *_: showing("a")
        server.answers[AFTER_TURN.path] = lambda *_: t.AfterTurnResponse(revision=1)
        ends = time.monotonic() + PATIENCE_S
        while alone.assemble(session, t.AssembleRequest()).degraded:
            assert time.monotonic() < ends
            time.sleep(0.1)
        assert alone.pending(session) == 0
    finally:
        server.stop()


class Pretender:
    """A service that says that it serves, while its calls hang for as long as it `hangs`."""

    def __init__(self, server: Server, driver: Driver) -> None:
        server.health = SERVING
        server.answers[GET_STATUS.path] = self._answer
        self.hangs = False
        self.arrivals: list[float] = []
        """When each call came since it hangs, by the monotonic clock."""
        driver.connect(server.address, breaker=True, timeouts={GET_STATUS.name: 1.0})
        ends = time.monotonic() + PATIENCE_S
        while not answered(driver):  # the first call of a program takes long
            assert time.monotonic() < ends
        self.hangs = True

    def _answer(self, request: t.GetStatusRequest, context: grpc.ServicerContext) -> object:
        if self.hangs:
            self.arrivals.append(time.monotonic())
            ended = threading.Event()
            if context.add_callback(ended.set):
                ended.wait()
        return t.GetStatusResponse()


def answered(driver: Driver) -> bool:
    """Whether a call is answered; one that is not costs its deadline, or next to nothing."""
    try:
        driver.call(GET_STATUS.name, t.GetStatusRequest(), t.GetStatusResponse)
    except Refused:
        return False
    return True


def test_a_hang_behind_a_service_that_says_it_serves_costs_its_deadline_at_few_calls(
    alone: Driver, scripted: Server
) -> None:
    pretender = Pretender(scripted, alone)
    began = time.monotonic()
    assert not any(answered(alone) for _ in range(40))
    # The call that finds out, the trial behind the question, and those behind later ones.
    assert len(pretender.arrivals) <= 2 + (time.monotonic() - began) / PAUSE_S
    pretender.hangs = False
    ends = time.monotonic() + PATIENCE_S
    while not answered(alone):
        assert time.monotonic() < ends
        time.sleep(0.1)
    assert all(answered(alone) for _ in range(5)), "the trial has closed it"


def test_pauses_behind_trials_that_fail_are_twice_as_long_each_time(
    everyone: dict[str, Driver],
) -> None:
    def arrivals(driver: Driver) -> list[float]:
        server = Server()
        try:
            pretender = Pretender(server, driver)
            ends = time.monotonic() + PATIENCE_S
            while len(pretender.arrivals) < 4 and time.monotonic() < ends:
                assert not answered(driver)
                time.sleep(0.1)
            return pretender.arrivals
        finally:
            server.stop()

    with ThreadPoolExecutor(len(everyone)) as threads:  # together they take no longer than one
        for came in threads.map(arrivals, everyone.values()):
            _, first, second, third = came
            assert second - first > PAUSE_S
            assert third - second > 2 * PAUSE_S


def test_one_call_alone_is_the_trial_once_one_has_failed(alone: Driver, scripted: Server) -> None:
    pretender = Pretender(scripted, alone)
    ends = time.monotonic() + PATIENCE_S
    while len(pretender.arrivals) < 2:
        assert not answered(alone)
        assert time.monotonic() < ends
    while len(pretender.arrivals) == 2:  # until the pause is over
        assert time.monotonic() < ends
        time.sleep(0.1)
        asked = {"rpc": GET_STATUS.name, "request": written(t.GetStatusRequest()), "count": 6}
        answers = alone.ask("together", **asked)["answers"]
        assert [answer["error"]["code"] for answer in answers] == ["DEADLINE_EXCEEDED"] * 6
    assert len(pretender.arrivals) == 3


def test_all_calls_go_to_a_service_that_is_back(alone: Driver, scripted: Server) -> None:
    pretender = Pretender(scripted, alone)
    assert not answered(alone)
    pretender.hangs = False
    scripted.requests.clear()
    asked = {"rpc": GET_STATUS.name, "request": written(t.GetStatusRequest()), "count": 6}
    ends = time.monotonic() + PATIENCE_S
    while not scripted.requests:  # until the question is answered in time
        assert time.monotonic() < ends
        alone.ask("together", **asked)
    assert len(scripted.requests) > 1, "none waits for the first one's answer"


def test_an_answer_that_refuses_does_not_open_it(
    alone: Driver, scripted: Server, session: Json
) -> None:
    unknown = failing(grpc.StatusCode.NOT_FOUND, info("SESSION_NOT_FOUND"))
    scripted.answers[GET_STATUS.path] = unknown
    alone.connect(scripted.address, breaker=True)
    for _ in range(3):
        with pytest.raises(Refused):
            alone.session(session, "status", t.GetStatusRequest(), t.GetStatusResponse)
    # Each was asked itself: no question stands before it.
    assert len(scripted.requests) == 3


def test_every_call_of_a_session_is_on_its_handle(driver: Driver, session: Json) -> None:
    host = t.HostInfo(host_id="clients", capabilities=["compact"])
    begun = driver.session(session, "bootstrap", t.BootstrapRequest(host=host), t.BootstrapResponse)
    assert begun.engine.id
    driver.session(
        session,
        "ingest_batch",
        t.IngestBatchRequest(messages=[said("the word is xylophone", "m1"), said("b", "m2")]),
        t.IngestBatchResponse,
    )
    model = t.UpdateModelRequest(model="some-model", window=32_000)
    driver.session(session, "update_model", model, t.UpdateModelResponse)
    status = driver.session(session, "status", t.GetStatusRequest(), t.GetStatusResponse)
    assert (status.message_count, status.last_message_id) == (2, "m2")
    assert status.model == "some-model"
    tools = driver.session(session, "list_tools", t.ListToolsRequest(), t.ListToolsResponse)
    assert "ctx_search" in [tool.name for tool in tools.tools]
    asked = t.CallToolRequest(name="ctx_search", arguments_json=b'{"query":"xylophone"}')
    found = driver.session(session, "call_tool", asked, t.CallToolResponse)
    assert b"xylophone" in found.result_json
    due = driver.session(
        session, "should_compact", t.ShouldCompactRequest(), t.ShouldCompactResponse
    )
    assert not due.should_compact
    driver.session(session, "maintain", t.MaintainRequest(), t.MaintainResponse)
    with pytest.raises(Refused) as caught:
        driver.session(
            session,
            "commit_compaction",
            t.CommitCompactionRequest(proposal_id="none", accept=True),
            t.CommitCompactionResponse,
        )
    assert caught.value.error["code"] in ("NOT_FOUND", "INVALID_ARGUMENT", "FAILED_PRECONDITION")
    child = {**session, "session_id": session["session_id"] + "-child"}
    spawn = t.PrepareSubagentSpawnRequest(
        child=t.SessionRef(**child), context_mode=t.CONTEXT_MODE_FORK
    )
    prepared = driver.session(session, "prepare_subagent", spawn, t.PrepareSubagentSpawnResponse)
    forked = driver.assemble(child, t.AssembleRequest())
    assert [item.message.id for item in forked.items] == ["m1", "m2"]
    ended = t.EndSubagentRequest(reason=t.SUBAGENT_END_REASON_COMPLETED)
    driver.session(child, "end_as_subagent", ended, t.EndSubagentResponse)
    token = t.RollbackSubagentSpawnRequest(spawn_token=prepared.spawn_token)
    driver.session(session, "rollback_subagent", token, t.RollbackSubagentSpawnResponse)
    driver.session(session, "end", t.EndSessionRequest(), t.EndSessionResponse)
    driver.session(session, "dispose", t.DisposeSessionRequest(), t.DisposeSessionResponse)
    assert len(driver.assemble(session, t.AssembleRequest()).items) == 2
