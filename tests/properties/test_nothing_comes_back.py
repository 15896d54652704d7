"""What every engine that compacts promises at any budget: no summary that had no room comes back,
and where there is room for the newest of what is not shown, it is shown, unless it was left out
before.

Sessions go on at one budget and are compacted in the background. A step that is larger than the
budget, or half of it, takes the room of all that stands before; what follows it leaves room again.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.engines.compressor import CompressorEngine, CompressorOptions
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.engines.layered import LayeredEngine, LayeredOptions
from contextengine_server.engines.pipeline import PipelineEngine, PipelineOptions
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

ENGINES: dict[str, Engine] = {
    "dag": DagEngine(DagOptions()),
    "pipeline": PipelineEngine(PipelineOptions()),
    "compressor": CompressorEngine(CompressorOptions()),
    "layered": LayeredEngine(LayeredOptions()),
}
STEADY = 8_000
"""From this budget on there is no room that something would fit into. Below it there are a few,
above all where a message stood between two assemblies that nobody asked for: it took room that is
free again at the next."""


@pytest.mark.parametrize("engine", sorted(ENGINES))
@given(
    turns=st.one_of(MIXED, ALIKE),
    budget=st.integers(1_500, 30_000),
    written=st.sampled_from([0.6, 1]),
)
def test_of_any_session(engine: str, turns: list[Turn], budget: int, written: float) -> None:
    """Of no more turns than the pipeline's window shows."""
    replay = replayed(ENGINES[engine], rows_of_turns(turns), budget, written=written)
    assert replay.told_back == 0
    assert budget < STEADY or not replay.unforced, replay.unforced


@pytest.mark.parametrize("budget", [2_500, 5_000, 8_000, 12_000])
@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize(
    "rows", [coding(), airline(0), doubled()], ids=["coding", "airline", "doubled"]
)
def test_of_real_sessions(rows: Sequence[ViewRow], engine: str, budget: int) -> None:
    """The pipeline leaves out turns that its window does not show, whatever room there is."""
    replay = replayed(ENGINES[engine], rows, budget)
    assert (replay.large_back, replay.told_back) == (0, 0)
    if engine == "dag":
        assert not replay.unforced
    elif engine != "pipeline":
        assert len(replay.unforced) <= (0 if budget >= STEADY else 3), replay.unforced
