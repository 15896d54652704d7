"""Sessions of one client do not wait for each other, and a queue that two threads send arrives in
order."""

from __future__ import annotations

import threading
import time

import grpc

from contextengine import Client, user
from contextengine import types as t
from contextengine.calls import AFTER_TURN, ASSEMBLE
from tests.unit.client.conftest import Server
from tests.unit.client.test_errors import failing


def test_a_session_that_hangs_holds_up_no_other(scripted: Server) -> None:
    scripted.answers[ASSEMBLE.path] = failing(grpc.StatusCode.UNKNOWN)
    with Client(scripted.address) as client:
        stuck, free = (client.session(agent_id="a", session_id=name) for name in ("stuck", "free"))
        for session in (stuck, free):
            assert session.assemble(ingest=[user("hello")]).degraded
        release = threading.Event()

        def answer(
            request: t.AfterTurnRequest, context: grpc.ServicerContext
        ) -> t.AfterTurnResponse:
            if request.session.session_id == "stuck":
                release.wait(60)
            return t.AfterTurnResponse()

        scripted.answers |= {
            AFTER_TURN.path: answer,
            ASSEMBLE.path: lambda *_: t.AssembleResponse(),
        }
        waiting = threading.Thread(target=stuck.flush)
        waiting.start()
        assert free.assemble().degraded is None
        assert (free.pending, stuck.pending) == (0, 1)
        release.set()
        waiting.join(60)
        assert client.pending() == 0


def test_two_threads_that_send_keep_the_order(scripted: Server) -> None:
    scripted.answers[ASSEMBLE.path] = failing(grpc.StatusCode.UNKNOWN)
    answered: list[str] = []

    def answer(request: t.AfterTurnRequest, context: grpc.ServicerContext) -> t.AfterTurnResponse:
        time.sleep(0.002)
        answered.append(request.messages[0].id)
        return t.AfterTurnResponse()

    scripted.answers[AFTER_TURN.path] = answer
    with Client(scripted.address) as client:
        session = client.session(agent_id="a", session_id="s")
        ids = [f"{number:02}" for number in range(20)]
        for id in ids:
            client.queue.add(t.AfterTurnRequest(session=session.ref, messages=[user("x", id=id)]))  # type: ignore[union-attr]
        threads = [threading.Thread(target=session.flush) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert session.pending == 0
    firsts = sorted(ids, key=answered.index)
    assert firsts == ids
