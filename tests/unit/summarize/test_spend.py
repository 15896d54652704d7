"""The caps: what is admitted, when it leaves the window, and that the state stays small."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.summarize.guards.spend import DAY_MS, HOUR_MS, SLOT_MS, Spend, SpendLimits

LIMITS = SpendLimits()
T0 = 1_700_000_000_000


def spent(*calls: tuple[int, int]) -> Spend:
    state = Spend()
    for at, tokens in calls:
        state = state.add(tokens, at, at)
    return state


def test_the_defaults_are_those_of_comis() -> None:
    assert (LIMITS.per_hour, LIMITS.per_day) == (500_000, 5_000_000)


def test_a_call_is_admitted_up_to_the_cap_and_not_beyond() -> None:
    state = spent((T0, 480_000))
    assert state.refusal(20_000, LIMITS, T0) is None
    assert state.refusal(20_001, LIMITS, T0) == (
        "over the cap: 480,000 of 500,000 tokens an hour are spent, and it needs 20,001"
    )


def test_the_hour_rolls() -> None:
    state = spent((T0, 400_000), (T0 + 30 * 60_000, 100_000))
    assert state.refusal(1, LIMITS, T0 + HOUR_MS - 1) is not None
    assert state.refusal(400_000, LIMITS, T0 + HOUR_MS) is None
    assert state.refusal(400_001, LIMITS, T0 + HOUR_MS) is not None


def test_the_day_rolls_too() -> None:
    state = spent(*((T0 + hour * HOUR_MS, 500_000) for hour in range(10)))
    assert "a day" in str(state.refusal(1, LIMITS, T0 + 11 * HOUR_MS))
    assert state.refusal(500_000, LIMITS, T0 + DAY_MS) is None
    assert state.refusal(500_001, LIMITS, T0 + DAY_MS) is not None


def test_a_clock_that_was_set_back_refuses_nothing_for_as_long_as_that() -> None:
    ahead = T0 + 365 * DAY_MS
    state = spent((ahead, 5_000_000))
    assert state.refusal(1, LIMITS, ahead) is not None
    assert state.refusal(500_000, LIMITS, T0) is None
    assert state.add(10, T0, T0) == spent((T0, 10))
    assert spent((T0 + 1, 500_000)).refusal(1, LIMITS, T0) is not None


def test_nought_means_no_cap() -> None:
    state = spent((T0, 10**9))
    assert state.refusal(10**9, SpendLimits(0, 0), T0) is None
    assert "a day" in str(state.refusal(1, SpendLimits(per_hour=0), T0))
    assert "an hour" in str(state.refusal(1, SpendLimits(per_day=0), T0))


def test_the_difference_to_the_estimate_is_put_right_where_it_was_spent() -> None:
    state = spent((T0, 23_000)).add(12_000 - 23_000, T0, T0 + 40_000)
    assert state.within(HOUR_MS, T0 + 40_000) == 12_000
    assert state.within(HOUR_MS, T0 + HOUR_MS) == 0
    dear = spent((T0, 23_000)).add(50_000, T0, T0 + 20 * 60_000)
    assert dear.within(HOUR_MS, T0 + HOUR_MS - 1) == 73_000
    assert dear.within(HOUR_MS, T0 + HOUR_MS) == 0


def test_no_correction_makes_a_debt() -> None:
    assert spent((T0, 100)).add(-1_000, T0, T0).within(HOUR_MS, T0) == 0
    assert Spend().add(10**30, T0, T0).within(HOUR_MS, T0) == 10**12


@given(
    st.lists(
        st.tuples(st.integers(0, 2 * DAY_MS), st.integers(0, 100_000)),
        max_size=60,
    ).map(sorted)
)
def test_it_counts_what_an_exact_account_counts_but_for_the_slot(
    calls: list[tuple[int, int]],
) -> None:
    state = spent(*((T0 + at, tokens) for at, tokens in calls))
    state = Spend.decode(json.loads(json.dumps(state.encode())))
    now = T0 + (calls[-1][0] if calls else 0)
    for window in (HOUR_MS, DAY_MS):
        exact = sum(tokens for at, tokens in calls if T0 + at + window > now)
        late = sum(tokens for at, tokens in calls if T0 + at + window + SLOT_MS > now)
        assert exact <= state.within(window, now) <= late


def test_the_state_stays_small() -> None:
    state = Spend()
    for minute in range(3 * 24 * 60):
        state = state.add(1, T0 + minute * 60_000, T0 + minute * 60_000)
    assert len(state.slots) <= 289
    assert len(json.dumps(state.encode())) < 10_000
    assert state.within(DAY_MS, T0 + 3 * DAY_MS - 60_000) in range(24 * 60, 24 * 60 + 6)


@pytest.mark.parametrize("values", [[1], [[1]], [[1, 2, 3]], [["a", 1]], [[1.5, 1]], [None], 7])
def test_what_is_no_state_is_refused(values: list) -> None:
    with pytest.raises(ValueError, match="not the state of spending"):
        Spend.decode(values)
