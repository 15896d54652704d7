"""Settings of a client: what is refused, what gRPC is told, and when to try again."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine import AsyncClient, Client
from contextengine.attempts import FIRST_PAUSE, JITTER, LONGEST_PAUSE, Absence, Attempts
from contextengine.calls import ASSEMBLE, CALLS, MAX_ATTEMPTS, WATCH, service_config
from contextengine.connection import channel_options, is_loopback
from contextengine.errors import (
    ContextEngineError,
    LostRace,
    MessageConflict,
    Overloaded,
    Unavailable,
)

ABORTED = grpc.StatusCode.ABORTED
DEADLINE = grpc.StatusCode.DEADLINE_EXCEEDED
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    "target",
    [
        "127.0.0.1:1",
        "localhost:1",
        "[::1]:1",
        "unix:/run/x",
        "dns:///localhost:1",
        "ipv4:127.0.0.1:1",
        "::1",
    ],
)
def test_this_machine(target: str) -> None:
    assert is_loopback(target)


@pytest.mark.parametrize(
    "target",
    ["10.0.0.1:1", "engine:50051", "dns:///engine.example:1", "[::]:1", "localhost.example:1"],
)
def test_another_machine(target: str) -> None:
    assert not is_loopback(target)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_token_does_not_travel_unencrypted(kind: type[Client] | type[AsyncClient]) -> None:
    with pytest.raises(ValueError, match="unencrypted to engine:1"):
        kind("engine:1", token="secret")
    kind("engine:1", token="secret", tls=True)
    kind("engine:1", token="secret", insecure=True)
    kind("engine:1")


def test_settings_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="credentials excludes"):
        Client(credentials=grpc.ssl_channel_credentials(), tls=True)
    with pytest.raises(FileNotFoundError):
        Client(root_certificates=tmp_path / "none.pem")
    with pytest.raises(
        ValueError, match=r"unknown rpc Assemble; known are .*ContextEngine\.Assemble"
    ):
        Client(timeouts={"Assemble": 1})


def test_the_nearest_deadline_wins() -> None:
    client = Client(timeouts={"ContextEngine.Assemble": 2, "Sessions.Watch": 3})
    assert client.timeout_of(ASSEMBLE, 1) == 1
    assert client.timeout_of(ASSEMBLE, None) == 2
    assert client.timeout_of(WATCH, None) == 3
    assert client.timeout_of(WATCH, math.inf) is None
    assert Client().timeout_of(ASSEMBLE, None) == ASSEMBLE.timeout
    for bad in (0, -1, math.nan):
        with pytest.raises(ValueError, match="above 0"):
            client.timeout_of(ASSEMBLE, bad)


def test_only_what_streams_without_end_has_no_deadline() -> None:
    assert {call.name for call in CALLS if call.timeout is None} == {
        "Sessions.Watch",
        "Runtime.Attach",
    }


def test_only_what_is_safe_is_sent_again() -> None:
    once = {call.name for call in CALLS if not call.retried}
    assert once == {"ContextEngine.CallTool", "Runtime.Attach"}


def test_grpc_opens_streams_again_and_leaves_the_rest_to_us() -> None:
    (config,) = json.loads(service_config())["methodConfig"]
    named = {f"{name['service'].rpartition('.')[2]}.{name['method']}" for name in config["name"]}
    assert named == {"Sessions.Import", "Sessions.Export", "Sessions.Watch"}
    assert config["retryPolicy"]["maxAttempts"] == MAX_ATTEMPTS == 4
    assert config["retryPolicy"]["retryableStatusCodes"] == ["UNAVAILABLE"]


def test_options_given_win() -> None:
    options = channel_options(1000, 2.5, [("grpc.keepalive_time_ms", 7)])
    assert ("grpc.max_receive_message_length", 1000) in options
    # Of an argument that is there twice gRPC takes the first.
    assert [value for name, value in options if name == "grpc.keepalive_time_ms"] == [7]


def test_a_service_config_keeps_what_it_does_not_say() -> None:
    def made(given: str) -> Any:
        options = dict(channel_options(1000, 2.5, [("grpc.service_config", given)]))
        return json.loads(str(options["grpc.service_config"]))

    balanced: dict[str, Any] = {"loadBalancingConfig": [{"round_robin": {}}]}
    assert made(json.dumps(balanced)) == json.loads(service_config()) | balanced
    assert made('{"methodConfig": []}') == {"methodConfig": []}
    for wrong in ("[]", "{"):
        with pytest.raises(ValueError, match=r"JSON|Expecting"):
            Client(options=[("grpc.service_config", wrong)])


class Clock:
    """A clock that stands until it is set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def overloaded(retry_after: float | None) -> ContextEngineError:
    return Overloaded("", code=EXHAUSTED, retry_after=retry_after)


def test_the_server_says_when_to_try_again() -> None:
    attempts = Attempts(10, Clock())
    assert attempts.pause(overloaded(3.5)) == 3.5
    assert attempts.pause(overloaded(None)) == 0.2
    assert attempts.pause(LostRace("", code=ABORTED)) == 0.4
    assert attempts.pause(overloaded(0)) is None, "four attempts were made"


def test_only_what_may_help_and_comes_in_time_is_tried_again() -> None:
    clock = Clock()
    assert Attempts(None, clock).pause(MessageConflict("", code=ABORTED)) is None
    assert Attempts(None, clock).pause(overloaded(3600)) == 3600
    attempts = Attempts(10, clock)
    clock.now += 8
    assert attempts.remaining() == 2
    assert attempts.pause(overloaded(2)) is None
    clock.now += 8
    assert attempts.remaining() == 0


def away() -> ContextEngineError:
    return Unavailable("", code=UNAVAILABLE)


def pauses(attempts: Attempts, clock: Clock) -> list[float]:
    """The pauses of a call whose every attempt finds nobody."""
    found = []
    while (pause := attempts.pause(away())) is not None:
        found.append(pause)
        clock.now += pause
    return found


@given(retry_for=st.floats(0, 60), timeout=st.none() | st.floats(0.01, 60))
def test_a_service_that_is_away_is_asked_for_as_long_as_is_set_and_no_longer(
    retry_for: float, timeout: float | None
) -> None:
    clock = Clock()
    found = pauses(Attempts(timeout, clock, retry_for=retry_for), clock)
    least = min(retry_for, math.inf if timeout is None else timeout)
    assert sum(found) <= least
    # The next pause would have come too late.
    assert sum(found) + LONGEST_PAUSE * (1 + JITTER) >= least
    for number, pause in enumerate(found):
        usual = min(LONGEST_PAUSE, FIRST_PAUSE * 3**number)
        assert usual * (1 - JITTER) <= pause <= usual * (1 + JITTER)


def test_an_absence_is_waited_for_once_by_all_calls_together() -> None:
    clock = Clock()
    absence = Absence(clock)

    def call() -> Attempts:
        return Attempts(None, clock, retry_for=20, absence=absence)

    clock.now += 1
    first = call()
    assert pauses(first, clock)
    # Who comes while it lasts waits for the rest of it, and afterwards nobody waits any more.
    late = Attempts(None, clock, retry_for=30, absence=absence)
    assert 0 < sum(pauses(late, clock)) <= 11
    assert pauses(call(), clock) == []
    clock.now += 3600
    assert pauses(call(), clock) == []
    # Whoever answers, if only with an error, is there.
    call().pause(MessageConflict("", code=ABORTED))
    assert absence.began() == math.inf
    clock.now += 1
    assert sum(pauses(call(), clock)) > 18


def test_a_call_that_nobody_took_says_nothing_of_what_another_was_answered_since() -> None:
    clock = Clock()
    absence = Absence(clock)
    attempts = Attempts(None, clock, retry_for=20, absence=absence)
    clock.now += 1
    absence.end()
    clock.now += 1
    pause = attempts.pause(away())
    assert pause is not None
    assert absence.began() == math.inf
    # The next attempt is newer than the answer.
    clock.now += pause
    assert attempts.pause(away()) is not None
    assert absence.began() == clock.now


def test_a_call_does_not_ask_for_ever_where_only_others_are_answered() -> None:
    clock = Clock()
    absence = Absence(clock)
    attempts = Attempts(None, clock, retry_for=20, absence=absence)
    began = clock.now
    while (pause := attempts.pause(away())) is not None:
        clock.now += pause
        absence.end()
    assert 19 < clock.now - began <= 20


@pytest.mark.parametrize("code", [DEADLINE, grpc.StatusCode.CANCELLED, grpc.StatusCode.UNKNOWN])
def test_what_nobody_said_ends_no_absence(code: grpc.StatusCode) -> None:
    clock = Clock()
    absence = Absence(clock)
    attempts = Attempts(None, clock, absence=absence)
    attempts.pause(away())
    began = absence.began()
    clock.now += 1
    assert attempts.pause(ContextEngineError("", code=code)) is None
    assert absence.began() == began < clock.now


def test_refusals_are_counted_apart_from_absences() -> None:
    clock = Clock()
    attempts = Attempts(None, clock, retry_for=600)
    for _ in range(MAX_ATTEMPTS):
        assert attempts.pause(away()) is not None
    assert attempts.pause(overloaded(None)) == 0.1


def test_a_time_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="retry_for"):
        Client(retry_for=-1)
