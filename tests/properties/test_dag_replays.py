"""What `dag` promises over a whole session with its default options: nothing comes back, no room is
left that something would fit into, all stands in order, most of a list is what was sent before, and
the budget is used.

What comes back is counted without scraps (`Replay.large_back`): of a tail that has to give way law
6 takes the oldest steps, and what stood before the newest request in so few tokens that no summary
is made of it is shown again with the compaction that follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.testing.oracle.pairs import ViewRow
from tests.properties.replays import (
    ALIKE,
    MIXED,
    Turn,
    airline,
    coding,
    doubled,
    replayed,
    rows_of_turns,
)

DAG = DagEngine(DagOptions())


@pytest.mark.parametrize(
    ("budget", "prefix"),
    [(8_000, 0.65), (16_000, 0.88), (32_000, 0.94), (50_000, 0.965), (64_000, 0.965),
     (100_000, 0.98)],
)  # fmt: skip
@pytest.mark.parametrize("rows", [coding(), airline(0), airline(1)], ids=["coding", "even", "odd"])
def test_real_sessions(rows: Sequence[ViewRow], budget: int, prefix: float) -> None:
    """A coding session, which the shares were chosen on, and dialogues with customers."""
    replay = replayed(DAG, rows, budget)
    assert (replay.large_back, replay.holes, replay.lifted) == (0, 0, 0)
    assert replay.share >= prefix
    assert median(replay.uses) >= 0.89


@pytest.mark.parametrize("budget", [16_000, 50_000])
@pytest.mark.parametrize("written", [0.3, 0.6])
def test_a_summarizer_that_writes_less_than_it_may(budget: int, written: float) -> None:
    replay = replayed(DAG, coding(), budget, written=written)
    assert (replay.large_back, replay.holes) == (0, 0)
    assert replay.share >= (0.88 if budget == 16_000 else 0.96)
    assert median(replay.uses) >= 0.87


@pytest.mark.parametrize("written", [0.6, 1])
def test_steps_larger_than_the_budget(written: float) -> None:
    """Summaries that such a step left no room for are made anew, and the rest stays as it is."""
    replay = replayed(DAG, doubled(), 16_000, written=written)
    assert (replay.large_back, replay.lifted) == (0, 0)
    assert replay.holes <= 2
    assert replay.share >= 0.8
    assert median(replay.uses) >= 0.88


@given(MIXED, st.integers(8_000, 40_000))
def test_any_session(turns: list[Turn], budget: int) -> None:
    """Of small and large steps, with long requests and short ones, none above a third of the
    budget."""
    replay = replayed(DAG, rows_of_turns(turns), budget)
    assert (replay.large_back, replay.holes) == (0, 0)


@given(ALIKE, st.integers(8_000, 40_000))
def test_any_session_of_steps_alike(turns: list[Turn], budget: int) -> None:
    """Of many small steps, of few large ones up to half of the budget, and of talk."""
    replay = replayed(DAG, rows_of_turns(turns), budget)
    assert (replay.large_back, replay.holes) == (0, 0)


@given(MIXED, st.integers(8_000, 40_000), st.integers(1, 6))
def test_any_session_that_reads_the_same_files_again(
    turns: list[Turn], budget: int, files: int
) -> None:
    """What later reads stand for gives room for more, and that room is neither left empty nor
    filled with what had gone."""
    replay = replayed(DAG, rows_of_turns(turns, files), budget)
    assert (replay.large_back, replay.holes, replay.lifted) == (0, 0, 0)
