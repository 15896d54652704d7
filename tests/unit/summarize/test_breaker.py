"""The breaker: when it opens, whom it lets through, and that its state can be stored at any
moment."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.summarize.guards.breaker import Breaker, BreakerLimits, Ticket

LIMITS = BreakerLimits()
T0 = 1_700_000_000_000


def admitted(state: Breaker, now_ms: int) -> tuple[Breaker, Ticket]:
    state, ticket = state.admit(LIMITS, now_ms)
    assert ticket is not None
    return state, ticket


def opened(now_ms: int = T0) -> Breaker:
    state = Breaker()
    for _ in range(LIMITS.failure_threshold):
        state, ticket = admitted(state, now_ms)
        state = state.failed(ticket, LIMITS, now_ms)
    return state


def test_the_defaults_are_those_of_comis() -> None:
    assert (LIMITS.failure_threshold, LIMITS.reset_timeout_ms, LIMITS.half_open_timeout_ms) == (
        5,
        60_000,
        30_000,
    )


def test_it_opens_with_the_fifth_failure_in_a_row() -> None:
    state = Breaker()
    for failures in range(1, 5):
        state, ticket = admitted(state, T0)
        state = state.failed(ticket, LIMITS, T0)
        assert (state.phase(LIMITS, T0), state.failures) == ("closed", failures)
    state, ticket = admitted(state, T0)
    state = state.failed(ticket, LIMITS, T0)
    assert state.phase(LIMITS, T0) == "open"
    assert state.admit(LIMITS, T0 + 59_999)[1] is None
    assert state.wait_ms(LIMITS, T0 + 1_000) == 59_000


def test_a_success_ends_the_row() -> None:
    state = Breaker()
    for outcome in "ffffsffff":
        state, ticket = admitted(state, T0)
        state = (state.succeeded if outcome == "s" else state.failed)(ticket, LIMITS, T0)
    assert state.phase(LIMITS, T0) == "closed"
    assert state.failures == 4


def test_after_the_reset_one_trial_is_let_through_and_no_other() -> None:
    state = opened()
    assert state.phase(LIMITS, T0 + 60_000) == "half_open"
    state, trial = admitted(state, T0 + 60_000)
    assert trial.trial
    for later in (0, 1, 29_999):
        again, ticket = state.admit(LIMITS, T0 + 60_000 + later)
        assert ticket is None
        assert again.phase(LIMITS, T0 + 60_000 + later) == "half_open"


def test_the_trials_success_closes_it() -> None:
    state, trial = admitted(opened(), T0 + 60_000)
    state = state.succeeded(trial, LIMITS, T0 + 61_000)
    assert (state.phase(LIMITS, T0 + 61_000), state.failures) == ("closed", 0)
    state, ticket = admitted(state, T0 + 61_000)
    assert not ticket.trial


def test_the_trials_failure_opens_it_anew() -> None:
    state, trial = admitted(opened(), T0 + 60_000)
    state = state.failed(trial, LIMITS, T0 + 65_000)
    assert state.admit(LIMITS, T0 + 124_999)[1] is None
    assert admitted(state, T0 + 125_000)[1].trial


def test_a_trial_that_is_not_back_in_time_has_failed() -> None:
    state, trial = admitted(opened(), T0 + 60_000)
    late = T0 + 60_000 + 30_000
    assert state.phase(LIMITS, late) == "open"
    assert state.wait_ms(LIMITS, late) == 60_000
    # Its answer says nothing any more, whatever it is.
    assert state.succeeded(trial, LIMITS, late).phase(LIMITS, late) == "open"
    assert admitted(state, late + 60_000)[1].trial


def test_a_trial_that_asked_nobody_leaves_its_place_to_the_next() -> None:
    state, trial = admitted(opened(), T0 + 60_000)
    state = state.released(trial)
    assert state.phase(LIMITS, T0 + 60_001) == "half_open"
    state, second = admitted(state, T0 + 60_001)
    assert second.trial
    assert state.released(trial) == state
    closed, ticket = admitted(Breaker(failures=3), T0)
    assert closed.released(ticket).failures == 3


def test_answers_to_what_was_asked_before_it_opened_change_nothing() -> None:
    state, early = admitted(Breaker(failures=4), T0)
    state, other = admitted(state, T0)
    state = state.failed(other, LIMITS, T0)
    assert state.succeeded(early, LIMITS, T0 + 10) == state
    assert state.failed(early, LIMITS, T0 + 59_000) == state
    state, trial = admitted(state, T0 + 60_000)
    assert state.failed(early, LIMITS, T0 + 60_001) == state
    assert state.succeeded(trial, LIMITS, T0 + 60_002).phase(LIMITS, T0 + 60_002) == "closed"


def test_a_clock_that_was_set_back_does_not_keep_it_open() -> None:
    assert admitted(opened(), T0 - 10**9)[1].trial
    state, _ = admitted(opened(), T0 + 60_000)
    state, ticket = state.admit(LIMITS, T0 - 10**9)
    assert ticket is None
    assert admitted(state, T0 - 10**9 + 60_000)[1].trial


def test_limits_may_differ_from_call_to_call() -> None:
    strict = BreakerLimits(failure_threshold=1, reset_timeout_ms=10, half_open_timeout_ms=10)
    state, ticket = admitted(Breaker(), T0)
    state = state.failed(ticket, strict, T0)
    assert state.phase(strict, T0 + 9) == "open"
    assert state.phase(strict, T0 + 10) == "half_open"
    assert state.phase(LIMITS, T0 + 10) == "open"


@given(st.lists(st.tuples(st.sampled_from("asfr"), st.integers(-100_000, 100_000)), max_size=40))
def test_it_can_be_stored_at_any_moment_and_never_lets_two_trials_out(
    steps: list[tuple[str, int]],
) -> None:
    state, now, out = Breaker(), T0, []
    for what, passed in steps:
        now += passed
        state = Breaker.decode(json.loads(json.dumps(state.encode())))
        if what == "a":
            state, ticket = state.admit(LIMITS, now)
            if ticket is not None:
                out.append(ticket)
        elif out:
            ticket = out.pop()
            if what == "r":
                state = state.released(ticket)
            else:
                state = (state.succeeded if what == "s" else state.failed)(ticket, LIMITS, now)
        assert sum(ticket.trial and ticket.era == state.era for ticket in out) <= 1
        assert 0 <= state.wait_ms(LIMITS, now) <= 60_000
        assert (state.admit(LIMITS, now)[1] is None) == (state.wait_ms(LIMITS, now) > 0)


@pytest.mark.parametrize(
    "values", [{"failures": "5"}, {"nonsense": 1}, {"era": None}, {"opened_ms": 1.5}]
)
def test_what_is_no_state_is_refused(values: dict) -> None:
    with pytest.raises(ValueError, match="not the state of a breaker"):
        Breaker.decode(values)
