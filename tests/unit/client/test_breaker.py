"""A service that is known to be away is not waited for again and again (clients/README.md,
section 5): what the first call pays, the later ones do not."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import pytest

from contextengine import AsyncClient, Client, ContextEngineError
from contextengine.aio_probe import AsyncProbe
from contextengine.breaker import PATIENCE, SERVING, Breaker
from contextengine.probe import Probe
from contextengine.types import SessionRef
from tests.unit.client.conftest import Server

REF = SessionRef(agent_id="a", session_id="s")
PATIENCE_S = 60
DEADLINE_S = 20.0
"""What a call to a hung service costs without a breaker: forty such calls are long enough for a
slow machine to tell the difference."""


@contextmanager
def hung() -> Iterator[str]:
    """The address of a service that takes connections and answers nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def refused(client: Client) -> ContextEngineError:
    with pytest.raises(ContextEngineError) as caught:
        client.get_status(REF)
    return caught.value


def test_a_hang_costs_its_deadline_once() -> None:
    timeouts = {"ContextEngine.GetStatus": 1.0}
    with hung() as address, Client(address, breaker=True, timeouts=timeouts) as client:
        first = refused(client)
        client._timeouts["ContextEngine.GetStatus"] = DEADLINE_S
        began = time.monotonic()
        later = [refused(client) for _ in range(40)]
        assert time.monotonic() - began < DEADLINE_S * 40 / 4
        assert {error.code for error in later} == {first.code}


async def test_a_hang_costs_its_deadline_once_for_asyncio_too() -> None:
    with hung() as address:
        timeouts = {"ContextEngine.GetStatus": 1.0}
        async with AsyncClient(address, breaker=True, timeouts=timeouts) as client:
            with pytest.raises(ContextEngineError):
                await client.get_status(REF)
            client._timeouts["ContextEngine.GetStatus"] = DEADLINE_S
            async with asyncio.timeout(DEADLINE_S * 40 / 4):
                for _ in range(40):
                    with pytest.raises(ContextEngineError):
                        await client.get_status(REF)


class Unanswered:
    """A question that goes on, and how long each call waits for its answer."""

    def __init__(self) -> None:
        self.asked = 0
        self.waits: list[float] = []

    def future(self, request: bytes) -> Unanswered:
        self.asked += 1
        return self

    def done(self) -> bool:
        return False

    def add_done_callback(self, hear: object) -> None:
        pass

    def exception(self, timeout: float) -> None:
        self.waits.append(timeout)
        time.sleep(timeout)
        raise grpc.FutureTimeoutError


def test_calls_behind_a_hang_wait_for_a_question_together() -> None:
    breaker = Breaker()
    breaker.failed(ContextEngineError("gone", code=grpc.StatusCode.UNAVAILABLE))
    question = Unanswered()
    probe = Probe(breaker, lambda: (question, {}))
    assert not any(probe.finds_service() for _ in range(10))
    assert question.asked == 1
    assert question.waits[0] <= PATIENCE
    assert question.waits[1:] == [0.0] * 9


async def test_calls_behind_a_hang_wait_for_a_question_together_for_asyncio_too() -> None:
    breaker = Breaker()
    breaker.failed(ContextEngineError("gone", code=grpc.StatusCode.UNAVAILABLE))
    asked = []

    async def unanswered(request: bytes) -> None:
        asked.append(request)
        await asyncio.Event().wait()

    probe = AsyncProbe(breaker, lambda: (unanswered, {}))
    calls = 200
    async with asyncio.timeout(calls * PATIENCE / 2):  # each for itself: calls * PATIENCE
        assert not any([await probe.finds_service() for _ in range(calls)])
    assert len(asked) == 1


def test_a_dead_service_is_asked_for_no_longer_and_found_again(server: Server) -> None:
    address = f"127.0.0.1:{free_port()}"
    with Client(address, breaker=True, retry_for=0.3) as client:
        first = refused(client)
        assert first.code is grpc.StatusCode.UNAVAILABLE
        assert refused(client) is not first, "an error of its own for each call"
        client._retry_for = 10 * PATIENCE_S
        began = time.monotonic()
        for _ in range(20):  # without the breaker each would wait for the service to come back
            refused(client)
        assert time.monotonic() - began < 10 * PATIENCE_S / 2


def test_the_answer_of_a_question_ends_it(server: Server) -> None:
    """Whoever answers the question is there, whatever it says: this server knows no health."""
    with Client(server.address, breaker=True) as client:
        client.get_status(REF)
        client._breaker.failed(ContextEngineError("gone", code=grpc.StatusCode.UNAVAILABLE))
        ends = time.monotonic() + PATIENCE_S
        while client._breaker.open and time.monotonic() < ends:
            try:
                client.get_status(REF)
            except ContextEngineError:
                time.sleep(0.05)
        assert not client._breaker.open
        client.get_status(REF)


def test_without_it_each_call_waits_for_its_own_deadline() -> None:
    with hung() as address, Client(address, timeouts={"ContextEngine.GetStatus": 0.3}) as client:
        refused(client)
        began = time.monotonic()
        refused(client)
        assert time.monotonic() - began > 0.2


@pytest.mark.parametrize(
    ("code", "reason", "opens"),
    [
        (grpc.StatusCode.UNAVAILABLE, "", True),
        (grpc.StatusCode.UNAVAILABLE, "DRAINING", True),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "", True),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE", False),
        (grpc.StatusCode.INTERNAL, "", True),
        (grpc.StatusCode.INTERNAL, "DEFECT", False),
        (grpc.StatusCode.NOT_FOUND, "SESSION_NOT_FOUND", False),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", False),
        (grpc.StatusCode.CANCELLED, "", False),
    ],
)
def test_what_says_that_the_service_is_away(
    code: grpc.StatusCode, reason: str, opens: bool
) -> None:
    breaker = Breaker()
    breaker.failed(ContextEngineError("x", code=code, reason=reason))
    assert breaker.open == opens


def test_what_answers_the_question() -> None:
    cases = {
        (None, SERVING): False,
        (None, b"\x08\x02"): True,  # it drains
        (grpc.StatusCode.UNAVAILABLE, b""): True,
        (grpc.StatusCode.DEADLINE_EXCEEDED, b""): True,
        (grpc.StatusCode.CANCELLED, b""): True,
        (grpc.StatusCode.UNIMPLEMENTED, b""): False,
        (grpc.StatusCode.UNAUTHENTICATED, b""): False,
    }
    for (code, reply), still_open in cases.items():
        breaker = Breaker()
        breaker.failed(ContextEngineError("x", code=grpc.StatusCode.UNAVAILABLE))
        breaker.heard(code, reply)
        assert breaker.open == still_open, (code, reply)
