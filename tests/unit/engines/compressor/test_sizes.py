"""The compressor's arithmetic: when it compacts, what stays, and how large a summary may be, by the
facts of Hermes's compressor (docs/compressor.md)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.engines.compressor import CompressorOptions
from contextengine_server.engines.compressor.sizes import (
    most_of_summary,
    share_for,
    summary_budget,
    tail_budget,
    threshold_of,
)

DEFAULTS = CompressorOptions()
LEGACY = CompressorOptions(tail_mode="legacy")


TABLE = [
    # window, threshold, tail in the modes legacy and lean, largest summary
    (32_000, 27_200, 5_440, 6_400, 1_600),
    (64_000, 54_400, 10_880, 10_000, 3_200),
    (70_000, 59_500, 11_900, 10_000, 3_500),
    (100_000, 75_000, 15_000, 10_000, 5_000),
    (128_000, 96_000, 19_200, 10_000, 6_400),
    (200_000, 150_000, 30_000, 10_000, 10_000),
    (262_144, 196_608, 39_321, 10_000, 10_000),
    (511_999, 383_999, 76_799, 12_799, 10_000),
    (512_000, 256_000, 76_799, 12_800, 10_000),
    (1_000_000, 500_000, 100_000, 25_000, 10_000),
]


@pytest.mark.parametrize(("window", "threshold", "legacy", "lean", "summary"), TABLE)
def test_the_measured_table(
    window: int, threshold: int, legacy: int, lean: int, summary: int
) -> None:
    assert threshold_of(window, DEFAULTS) == threshold
    assert tail_budget(window, LEGACY) == legacy
    assert tail_budget(window, DEFAULTS) == lean
    assert most_of_summary(window) == summary


def test_what_is_reserved_for_the_answer_is_taken_off() -> None:
    assert threshold_of(200_000, DEFAULTS, reply=65_536) == 100_848


@pytest.mark.parametrize("reply", [None, 0, -5, "nope", True, 200_000, 300_000])
def test_a_reserve_that_is_none_is_taken_for_none(reply: object) -> None:
    assert threshold_of(200_000, DEFAULTS, reply=reply) == 150_000


@pytest.mark.parametrize(("ratio", "tail"), [(0.01, 0.10), (2, 0.80), (0.3, 0.3)])
def test_the_ratio_of_the_tail_is_brought_within_its_limits(ratio: float, tail: float) -> None:
    options = CompressorOptions(tail_mode="legacy", target_ratio=ratio)
    assert tail_budget(100_000, options) == int(75_000 * tail)


def test_a_cap_lowers_the_threshold_and_never_raises_it() -> None:
    assert threshold_of(200_000, CompressorOptions(threshold_tokens=90_000)) == 90_000
    assert threshold_of(200_000, CompressorOptions(threshold_tokens=900_000)) == 150_000


@pytest.mark.parametrize(
    ("model", "provider", "share"),
    [
        ("gpt-5.5-codex", "openai", 0.7),
        ("gpt-5.5", "openai", 0.85),
        ("gpt-5.5", "other", 0.6),
        ("claude", "openai", 0.5),
    ],
)
def test_the_longest_key_that_names_a_model_holds(model: str, provider: str, share: float) -> None:
    shares = {"gpt-5.5": 0.6, "openai:gpt-5.5": 0.85, "gpt-5.5-codex-but-longer": 0.1}
    shares["openai:gpt-5.5-codex"] = 0.7
    assert share_for(model, provider, shares, 0.5) == share


@given(st.integers(1, 2_000_000), st.integers(0, 100_000), st.floats(0.05, 1), st.booleans())
def test_neither_tail_nor_summary_shrinks_where_the_budget_grows(
    window: int, more: int, threshold: float, lean: bool
) -> None:
    options = CompressorOptions(threshold=threshold, tail_mode="lean" if lean else "legacy")
    assert tail_budget(window, options) <= tail_budget(window + more, options)
    assert summary_budget(window, 50_000) <= summary_budget(window + more, 50_000)
    assert 1 <= threshold_of(window, options) <= window
