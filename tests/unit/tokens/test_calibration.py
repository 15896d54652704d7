"""Calibration follows what is billed, slowly, and within bounds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.tokens import calibrate
from contextengine_server.tokens.calibration import MAX_FACTOR, MIN_FACTOR, MIN_SAMPLE


def test_a_report_moves_the_factor_a_fifth_of_the_way() -> None:
    assert calibrate(1.0, 10_000, 12_000) == pytest.approx(1.04)
    assert calibrate(1.0, 10_000, 8_000) == pytest.approx(0.96)


def test_reports_alike_lead_to_their_ratio() -> None:
    factor = 1.0
    for _ in range(40):
        factor = calibrate(factor, 100_000, 122_000)
    assert factor == pytest.approx(1.22, abs=1e-3)


def test_reports_that_teach_nothing_change_nothing() -> None:
    assert calibrate(1.3, MIN_SAMPLE - 1, 5_000) == 1.3
    assert calibrate(1.3, 10_000, 0) == 1.3
    assert calibrate(1.3, 10_000, -7) == 1.3
    assert calibrate(1.3, 0, 0) == 1.3


def test_one_absurd_report_moves_it_no_further_than_the_bound_would() -> None:
    assert calibrate(1.0, 1_000, 10**12) == pytest.approx(1.4)
    assert calibrate(1.0, 10**12, 1) == pytest.approx(0.9)


@given(st.floats(allow_nan=False), st.integers(), st.integers())
def test_the_factor_is_always_within_its_bounds(
    previous: float, estimated: int, billed: int
) -> None:
    factor = calibrate(previous, estimated, billed)
    assert MIN_FACTOR <= factor <= MAX_FACTOR
    assert math.isfinite(factor)
