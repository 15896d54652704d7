"""What `layered` promises over a whole session: nothing comes back, no room is left empty, and what
is laid down stays."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.engines.layered import LayeredEngine, LayeredOptions
from contextengine_server.testing.engine.real_sessions import rows_of
from contextengine_server.testing.oracle.pairs import ViewRow
from tests.properties.replays import MIXED, Turn, airline, coding, replayed, rows_of_turns
from tests.unit.engines.layered.first_half import CHINESE, ENGLISH
from tests.unit.engines.layered.sessions import answer, call, message

ENGINES = {
    strategy: LayeredEngine(LayeredOptions(compaction={"strategy": strategy}))
    for strategy in ("dag", "linear", "hybrid")
}


@pytest.mark.parametrize("budget", [8_000, 16_000, 50_000])
@pytest.mark.parametrize("strategy", ENGINES)
@pytest.mark.parametrize("rows", [coding(), airline(0)], ids=["coding", "airline"])
def test_real_sessions(rows: Sequence[ViewRow], strategy: str, budget: int) -> None:
    replay = replayed(ENGINES[strategy], rows, budget)
    assert (replay.large_back, replay.lifted) == (0, 0)
    # The room of summaries shrinks where a larger request comes, until the next compaction.
    assert replay.holes <= 1
    assert replay.one.view.summaries
    if strategy == "linear":
        assert len(replay.one.view.summaries) == 1


@given(MIXED, st.integers(8_000, 40_000), st.sampled_from(sorted(ENGINES)))
def test_any_session(turns: list[Turn], budget: int, strategy: str) -> None:
    replay = replayed(ENGINES[strategy], rows_of_turns(turns), budget)
    assert (replay.large_back, replay.lifted) == (0, 0)


@st.composite
def talks(draw: st.DrawFn) -> list[ViewRow]:
    """Sessions of labelled messages of both languages, some of them long, with calls between."""
    made = []
    for number in range(draw(st.integers(5, 60))):
        role, text, _ = draw(st.sampled_from(ENGLISH + CHINESE))
        text += " word" * draw(st.sampled_from((0, 0, 20, 400)))
        if role in ("tool", "assistant call"):
            made += [call(f"c{number}", text), answer(f"c{number}", text)]
        else:
            made.append(message("system" if role == "developer" else role, text))
    return rows_of(made)


@given(talks(), st.integers(900, 6_000), st.sampled_from(sorted(ENGINES)))
def test_any_talk(rows: list[ViewRow], budget: int, strategy: str) -> None:
    replay = replayed(ENGINES[strategy], rows, budget)
    assert (replay.large_back, replay.lifted) == (0, 0)
