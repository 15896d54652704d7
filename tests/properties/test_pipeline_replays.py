"""What `pipeline` promises over a whole session: what was evicted stays so although masks give
room, and no mask is lifted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.engines.pipeline import PipelineEngine, PipelineOptions
from tests.properties.replays import MIXED, Turn, coding, replayed, rows_of_turns

PIPELINE = PipelineEngine(PipelineOptions())
MASKING = PipelineEngine(
    PipelineOptions(
        compaction_prefix_anchor_turns=0,
        eviction_min_age=3,
        observation_keep_window=2,
        observation_trigger_chars=50_000,
        observation_deactivation_chars=45_000,
    )
)
"""Whose masks move at every step or two."""


@pytest.mark.parametrize(
    ("budget", "prefix"), [(8_000, 0.86), (16_000, 0.92), (32_000, 0.94), (50_000, 0.95)]
)
def test_the_coding_session(budget: int, prefix: float) -> None:
    replay = replayed(PIPELINE, coding(), budget)
    assert (replay.back, replay.lifted) == (0, 0)
    assert replay.kept / replay.sent >= prefix


@given(MIXED, st.integers(8_000, 40_000), st.integers(1, 6), st.booleans())
def test_any_session(turns: list[Turn], budget: int, files: int, masking: bool) -> None:
    """Of no more turns than the window shows; scraps aside, as with `dag`. Room that a mask gives
    is not filled with what had been evicted before it, but with what a compaction leaves."""
    replay = replayed(MASKING if masking else PIPELINE, rows_of_turns(turns, files), budget)
    assert (replay.large_back, replay.lifted) == (0, 0)
    assert masking or not replay.holes
