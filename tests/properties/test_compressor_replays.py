"""What `compressor` promises over a whole session: one summary at most, nothing comes back, and
nothing that was shown in short is whole again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.engines.compressor import CompressorEngine, CompressorOptions
from contextengine_server.testing.oracle.pairs import ViewRow
from tests.properties.replays import MIXED, Turn, airline, coding, replayed, rows_of_turns, turns_of

LEAN = CompressorEngine(CompressorOptions())
LEGACY = CompressorEngine(CompressorOptions(tail_mode="legacy", protect_first_n=0))
PRUNING = CompressorEngine(
    CompressorOptions(
        tail_mode="legacy",
        protect_last_n=4,
        proactive_prune_tokens=4_000,
        proactive_prune_min_result_chars=300,
        proactive_prune_min_reclaim_tokens=4_000,
    )
)
LONG = turns_of([3, 300], [3, 4_000], [5, 80], 6)
"""Sessions of long answers, 20,000 characters each, among short ones."""
CUTTING = CompressorEngine(CompressorOptions(tail_assistant_max_chars=1, protect_first_n=0))


@pytest.mark.parametrize(("budget", "prefix"), [(8_000, 0.87), (16_000, 0.92), (50_000, 0.97)])
@pytest.mark.parametrize("rows", [coding(), airline(0)], ids=["coding", "airline"])
def test_real_sessions(rows: Sequence[ViewRow], budget: int, prefix: float) -> None:
    replay = replayed(LEAN, rows, budget)
    assert (replay.back, replay.holes, replay.lifted) == (0, 0, 0)
    assert len(replay.one.view.summaries) == 1 < len(replay.one.stretches)
    assert replay.share >= prefix


@given(MIXED, st.integers(2_000, 40_000), st.integers(1, 6), st.booleans())
def test_any_session(turns: list[Turn], budget: int, files: int, lean: bool) -> None:
    replay = replayed(LEAN if lean else LEGACY, rows_of_turns(turns, files), budget)
    assert (replay.large_back, replay.lifted) == (0, 0)
    assert len(replay.one.view.summaries) <= 1


@given(MIXED, st.integers(2_000, 40_000), st.integers(0, 6))
def test_any_session_whose_large_results_go_early(
    turns: list[Turn], budget: int, files: int
) -> None:
    """What gets short between compactions stays so, and makes room for nothing that had gone."""
    replay = replayed(PRUNING, rows_of_turns(turns, files), budget)
    assert (replay.large_back, replay.lifted) == (0, 0)
    assert len(replay.one.view.summaries) <= 1


@given(LONG, st.integers(20_000, 80_000))
def test_any_session_whose_long_answers_are_cut(turns: list[Turn], budget: int) -> None:
    """What a compaction cuts stays so, and makes room for nothing that had gone."""
    replay = replayed(CUTTING, rows_of_turns(turns, 2), budget)
    assert (replay.large_back, replay.lifted) == (0, 0)
    assert len(replay.one.view.summaries) <= 1
