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
from contextengine.breaker import FIRST_PAUSE, PATIENCE, SERVING, TRIAL_SECONDS, Breaker
from contextengine.probe import Probe
from contextengine.types import SessionRef
from tests.unit.client.conftest import Server

REF = SessionRef(agent_id="a", session_id="s")
PATIENCE_S = 60
GONE = ContextEngineError("gone", code=grpc.StatusCode.UNAVAILABLE)
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
    """A question that goes on."""

    def __init__(self) -> None:
        self.asked = 0

    def future(self, request: bytes) -> Unanswered:
        self.asked += 1
        return self

    def add_done_callback(self, hear: object) -> None:
        pass


def test_calls_behind_a_hang_wait_for_a_question_together() -> None:
    breaker = Breaker()
    breaker.failed(GONE)
    question = Unanswered()
    probe = Probe(breaker, lambda: (question, {}))
    calls = 200
    began = time.monotonic()
    for _ in range(calls):
        probe.ask()
    assert time.monotonic() - began < calls * PATIENCE / 2, "not each for itself"
    assert question.asked == 1
    assert breaker.open


async def test_calls_behind_a_hang_wait_for_a_question_together_for_asyncio_too() -> None:
    breaker = Breaker()
    breaker.failed(GONE)
    asked = []

    async def unanswered(request: bytes) -> None:
        asked.append(request)
        await asyncio.Event().wait()

    probe = AsyncProbe(breaker, lambda: (unanswered, {}))
    calls = 200
    async with asyncio.timeout(calls * PATIENCE / 2):  # each for itself: calls * PATIENCE
        for _ in range(calls):
            await probe.ask()
    assert len(asked) == 1
    assert breaker.open


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
        client._breaker.failed(GONE)
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
        (None, SERVING): True,
        (None, b"\x08\x02"): False,  # it drains
        (grpc.StatusCode.UNAVAILABLE, b""): False,
        (grpc.StatusCode.DEADLINE_EXCEEDED, b""): False,
        (grpc.StatusCode.CANCELLED, b""): False,
        (grpc.StatusCode.UNIMPLEMENTED, b""): True,
        (grpc.StatusCode.UNAUTHENTICATED, b""): True,
    }
    for (code, reply), half_opens in cases.items():
        breaker = Breaker()
        breaker.failed(GONE)
        breaker.heard(code, reply)
        assert admitted(breaker) is half_opens, (code, reply)


def admitted(breaker: Breaker) -> bool:
    """Whether a call gets through."""
    try:
        breaker.admit()
    except ContextEngineError:
        return False
    return True


class Clock:
    """Seconds, which pass as a test says."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def half_open(clock: Clock | None = None) -> Breaker:
    """Of a service that was away and says that it serves."""
    breaker = Breaker(clock or Clock())
    breaker.failed(GONE)
    breaker.heard(None, SERVING)
    return breaker


def doubted(clock: Clock) -> Breaker:
    """Of a service that says that it serves, as it did before in vain."""
    breaker = half_open(clock)
    breaker.failed(GONE, breaker.admit())
    clock.now += FIRST_PAUSE
    breaker.heard(None, SERVING)
    return breaker


def test_the_first_answer_that_it_serves_is_trusted() -> None:
    """All calls go to a service that is back."""
    breaker = half_open()
    trials = [breaker.admit() for _ in range(3)]
    assert trials == [True] * 3
    breaker.failed(GONE, trials[0])
    assert not admitted(breaker)
    assert not breaker.asks
    began = breaker._paused_until
    breaker.failed(GONE, trials[1])
    assert breaker._paused_until == began, "it was wrong once"


def test_one_call_at_a_time_is_the_trial_once_a_trial_has_failed() -> None:
    breaker = doubted(Clock())
    assert breaker.admit() is True
    assert [admitted(breaker) for _ in range(3)] == [False] * 3
    assert not breaker.asks, "the trial finds out"
    breaker.answered()
    assert [breaker.admit() for _ in range(3)] == [False] * 3, "closed: none is a trial"


def test_the_pause_doubles_with_each_trial_that_fails_until_a_call_is_answered() -> None:
    clock = Clock()
    breaker = half_open(clock)
    pauses = []
    for _ in range(6):
        assert breaker.admit()
        breaker.failed(GONE, trial=True)
        began = clock.now
        while not breaker.asks:
            assert not admitted(breaker)
            clock.now += 0.5
        pauses.append(clock.now - began)
        breaker.heard(None, SERVING)
    assert pauses == [5, 10, 20, 40, 60, 60]
    breaker.answered()
    breaker.failed(GONE)
    assert breaker.asks
    breaker.heard(None, SERVING)
    breaker.failed(GONE, trial=breaker.admit())
    clock.now += FIRST_PAUSE
    assert breaker.asks, "it begins anew"


def test_a_dead_service_is_asked_as_often_as_ever() -> None:
    breaker = Breaker(Clock())
    breaker.failed(GONE)
    for _ in range(9):
        assert breaker.asks
        breaker.heard(grpc.StatusCode.UNAVAILABLE)
        assert not admitted(breaker)


def test_a_trial_that_says_nothing_leaves_it_to_the_next_call() -> None:
    cancelled = ContextEngineError("cancelled", code=grpc.StatusCode.CANCELLED)
    breaker = doubted(Clock())
    breaker.abandoned(breaker.admit())
    breaker.failed(cancelled, breaker.admit())
    assert breaker.admit() is True


def test_a_call_from_before_decides_no_trial() -> None:
    breaker = doubted(Clock())
    breaker.failed(GONE)
    assert breaker.admit() is True
    breaker.failed(GONE)
    breaker.abandoned(False)
    assert not admitted(breaker)
    assert not breaker.asks


def test_a_long_trial_does_not_hold_the_others_back_for_ever() -> None:
    clock = Clock()
    breaker = doubted(clock)
    assert breaker.admit() is True
    clock.now += TRIAL_SECONDS
    assert breaker.admit() is True
    assert not admitted(breaker)


async def test_a_trial_that_is_cancelled_says_nothing() -> None:
    with hung() as address:
        async with AsyncClient(address, breaker=True) as client:
            client._breaker = doubted(Clock())
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await client.get_status(REF)
            assert client._breaker.admit() is True
