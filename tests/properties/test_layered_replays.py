"""What `layered` promises over a whole session: nothing comes back, no room is left empty, and what
is laid down stays."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.engines.layered import LayeredEngine, LayeredOptions
from contextengine_server.engines.layered.compaction import MOST_RUNS
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


def noticed(rows: Sequence[ViewRow]) -> list[ViewRow]:
    """A session whose harness says something after each step."""
    said = list[pb.Message]()
    for row, behind in zip(rows, [*rows[1:], None], strict=True):
        said.append(row.message)
        if row.message.role == pb.ROLE_TOOL and behind and behind.message.role == pb.ROLE_ASSISTANT:
            said.append(message("system", f"After {len(said)} messages the list is as it was."))
    return rows_of(said)


@pytest.mark.parametrize("budget", [8_000, 16_000, 50_000])
@pytest.mark.parametrize("rows", [coding(), airline(0)], ids=["coding", "airline"])
def test_notices_do_not_part_a_session_into_a_summary_a_step(
    rows: Sequence[ViewRow], budget: int
) -> None:
    engine = ENGINES["dag"]
    plain, replay = replayed(engine, rows, budget), replayed(engine, noticed(rows), budget)
    assert len(replay.one.view.summaries) <= 2 * MOST_RUNS
    assert replay.share > plain.share - 0.03
    assert replay.large_back == 0


def test_a_rule_that_a_harness_laid_down_before_much_work_stays() -> None:
    work = [
        step for at in range(60) for step in (call(f"c{at}", "x"), answer(f"c{at}", "y " * 400))
    ]
    rule = message("system", "From here on only the folder web may be changed.")
    replay = replayed(ENGINES["dag"], rows_of([*work, rule, *work]), 16_000)
    kept = [atom.step for atom in replay.one.view.atoms if atom.entries[0].traits.instructs]
    assert [step for step in kept if replay.one.view.covering(step) is None] == kept


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
