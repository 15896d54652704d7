"""Caps on tokens: which one refuses, and when the same call passes again."""

from __future__ import annotations

import pytest

from contextengine_server.usage.caps import DAY_MS, HOUR_MS, Caps, Refusal, within

NOW = 1_700_000_000_000
CAPS = Caps(per_execution=100, per_hour=200, per_day=300)


def test_the_defaults_are_those_of_the_guard_of_comis() -> None:
    assert Caps() == Caps(2_000_000, 10_000_000, 100_000_000)


def test_exactly_a_cap_passes_and_one_token_more_does_not() -> None:
    assert CAPS.refusal(60, [], 40, NOW) is None
    assert CAPS.refusal(60, [], 41, NOW) == Refusal("per-execution", 60, 100, None)
    assert CAPS.refusal(0, [(NOW, 150)], 50, NOW) is None
    refused = CAPS.refusal(0, [(NOW, 150)], 51, NOW)
    assert refused is not None
    assert (refused.scope, refused.used, refused.cap) == ("per-hour", 150, 200)
    day = [(NOW - 2 * HOUR_MS, 250)]
    assert CAPS.refusal(0, day, 50, NOW) is None
    refused = CAPS.refusal(0, day, 51, NOW)
    assert refused is not None
    assert (refused.scope, refused.used, refused.cap) == ("per-day", 250, 300)


def test_execution_is_looked_at_before_hour_and_hour_before_day() -> None:
    spent = [(NOW, 1_000)]
    scopes = []
    for execution, caps in (
        (1_000, CAPS),
        (0, CAPS),
        (0, Caps(100, 10_000, 300)),
    ):
        refused = caps.refusal(execution, spent, 1, NOW)
        assert refused is not None
        scopes.append(refused.scope)
    assert scopes == ["per-execution", "per-hour", "per-day"]


def test_the_wait_is_exact() -> None:
    spent = [(NOW - 50 * 60_000, 100), (NOW - 10 * 60_000, 80)]
    refused = CAPS.refusal(0, spent, 90, NOW)
    assert refused is not None
    assert refused.wait_ms == 10 * 60_000 + 1
    assert CAPS.refusal(0, spent, 90, NOW + refused.wait_ms) is None
    assert CAPS.refusal(0, spent, 90, NOW + refused.wait_ms - 1) is not None


def test_a_clock_that_was_set_back_refuses_nothing_for_as_long_as_that() -> None:
    assert CAPS.refusal(0, [(NOW + 365 * DAY_MS, 300)], 50, NOW) is None
    refused = CAPS.refusal(0, [(NOW + HOUR_MS, 200)], 50, NOW)
    assert refused is not None
    assert (refused.scope, refused.wait_ms) == ("per-hour", 2 * HOUR_MS + 1)
    # Until then it counts: clocks are set back by moments as well.
    assert CAPS.refusal(0, [(NOW + 1, 300)], 50, NOW) is not None


def test_what_passes_the_hour_waits_for_the_day_as_well() -> None:
    spent = [(NOW - 2 * HOUR_MS, 150), (NOW, 150)]
    refused = CAPS.refusal(0, spent, 100, NOW)
    assert refused is not None
    assert refused.scope == "per-hour"
    assert refused.wait_ms == DAY_MS - 2 * HOUR_MS + 1
    assert CAPS.refusal(0, spent, 100, NOW + refused.wait_ms) is None
    assert CAPS.refusal(0, spent, 100, NOW + refused.wait_ms - 1) is not None


def test_no_wait_helps_a_call_that_is_larger_than_a_cap() -> None:
    caps = Caps(per_execution=1_000, per_hour=200, per_day=300)
    refused = caps.refusal(0, [], 201, NOW)
    assert refused == Refusal("per-hour", 0, 200, None)


@pytest.mark.parametrize("window", [HOUR_MS, DAY_MS])
def test_windows_roll(window: int) -> None:
    spent = [(NOW, 7)]
    assert within(spent, window, NOW + window) == 7
    assert within(spent, window, NOW + window + 1) == 0
