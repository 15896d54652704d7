"""What is had at once, and how evenly the rest waits."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.fairness import cadence
from contextengine_server.fairness.cadence import Cadence


def test_a_burst_and_then_a_rate_is_had_at_once() -> None:
    some = Cadence(rate=10, burst=3, longest_s=4)
    assert [some.wait("a", 0.0) > 0 for _ in range(5)] == [False, False, False, True, True]
    assert some.wait("b", 0.0) == 0
    assert [some.wait("a", 0.101) > 0 for _ in range(2)] == [False, True]
    assert [some.wait("a", 9.0) > 0 for _ in range(4)] == [False, False, False, True]


@given(count=st.integers(50, 400))
def test_the_rest_waits_evenly(count: int) -> None:
    some = Cadence(rate=1, burst=1, longest_s=4)
    some.wait("a", 0.0)
    waits = sorted(some.wait("a", 0.0) for _ in range(count))
    assert waits[0] > 0
    assert waits[-1] < 4
    # No gap is as large as three times the mean one.
    assert max(after - before for before, after in pairwise([0.0, *waits, 4.0])) < 3 * 4 / count


@given(
    times=st.lists(st.floats(0, 0.5), min_size=1, max_size=200),
    rate=st.sampled_from([1.0, 10.0, 100.0]),
    burst=st.integers(1, 20),
)
def test_no_more_than_the_rate_and_the_burst_is_had_at_once(
    times: list[float], rate: float, burst: int
) -> None:
    some, now, had = Cadence(rate, burst, 5), 0.0, 0
    for step in times:
        now += step
        had += some.wait("a", now) == 0
    assert had <= burst + now * rate + 1


def test_who_had_nothing_lately_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cadence, "_KEPT", 4)
    some = Cadence(rate=1, burst=1, longest_s=4)
    for number in range(100):
        assert some.wait(f"t{number}", number * 10.0) == 0
    assert len(some._due) <= 4
    for number in range(100):  # all at once: they begin anew rather than be remembered
        some.wait(f"u{number}", 1_000.0)
    assert len(some._due) <= 4
