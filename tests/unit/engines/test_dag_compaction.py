"""What `dag` summarizes next."""

from __future__ import annotations

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.engines.contract import CompactionGoal, CompactionStep, NothingToDo
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.testing.engine.random_sessions import text
from contextengine_server.testing.engine.trial import FLOOR, Trial, trial_of
from contextengine_server.testing.oracle.pairs import ViewRow

DAG = DagEngine(DagOptions(fresh_tail_turns=2, leaf_chunk_tokens=1_000))
FORCED = CompactionGoal(available=100_000, force=True, floor=FLOOR)


def said(*told_by: tuple[str, int]) -> list[ViewRow]:
    """Messages of these roles and sizes, one after the other."""
    rows = []
    for number, (role, tokens) in enumerate(told_by, 1):
        message = pb.Message(role=f"ROLE_{role.rstrip('!').upper()}", parts=[text(tokens, "words")])
        if role.endswith("!"):
            message.labels["pinned"] = "true"
        rows.append(ViewRow(number, message, 2 * number))
    return rows


def chunk(one: Trial, goal: CompactionGoal = FORCED) -> tuple[int, int] | str:
    """The steps that the next summary is to cover, or why there is none."""
    step = DAG.compaction(one.view, goal)
    return (step.first, step.last) if isinstance(step, CompactionStep) else step.reason


TALK = [("assistant", 300)] * 6


def test_it_takes_the_oldest_steps_up_to_a_leaf() -> None:
    one = trial_of(said(("system", 50), ("user", 100), *TALK))
    assert chunk(one) == (1, 4)
    one.compact(1, 4, "[200] so far")
    assert chunk(one) == (5, 5)
    one.compact(5, 5, "[100] and then")
    assert chunk(one) == "already compacted"


def test_a_step_larger_than_a_leaf_is_a_leaf() -> None:
    assert chunk(trial_of(said(("assistant", 5_000), *TALK))) == (0, 0)


def test_a_scrap_before_a_step_larger_than_a_leaf_goes_with_it() -> None:
    assert chunk(trial_of(said(("assistant", 5), ("assistant", 5_000), *TALK))) == (0, 1)


def test_a_scrap_left_between_summaries_does_not_end_compaction() -> None:
    one = trial_of(said(("assistant", 300), ("assistant", 5), ("assistant", 300), *TALK))
    one.compact(0, 0, "[100] first")
    one.compact(2, 2, "[100] third")
    assert chunk(one) == (3, 5)


def test_the_newest_user_message_is_covered_with_its_neighbours_and_not_left_as_a_scrap() -> None:
    one = trial_of(said(("system", 50), ("user", 20), *TALK))
    assert chunk(one) == (1, 4)
    one.compact(1, 4, "[200] so far")
    # It is shown all the same, behind the summary, as long as it is the newest.
    plan = DAG.plan(one.view, 1_600)
    assert [type(segment).__name__ for segment in plan.segments] == [
        "Keep",
        "Summarized",
        "Keep",
        "Keep",
    ]
    one.add(said(*[("system", 0)] * 8, ("user", 30), *TALK)[8:])
    assert chunk(one) == (5, 8)


def test_leading_and_pinned_messages_begin_and_end_no_chunk() -> None:
    one = trial_of(said(("system", 500), ("user!", 400), ("assistant", 300), ("user!", 400), *TALK))
    assert chunk(one) == (2, 5)
    one = trial_of(
        said(
            ("system", 500), ("assistant", 300), ("user!", 400), ("assistant", 9), ("assistant", 9)
        )
    )
    assert chunk(one) == (1, 1)


def test_the_tail_is_left_alone() -> None:
    assert chunk(trial_of(said(("assistant", 300), ("assistant", 300)))) == "nothing to compact"
    assert chunk(trial_of(said())) == "nothing to compact"


@pytest.mark.parametrize(
    ("measured", "expected"),
    [(None, "below threshold"), (7_600, (0, 2)), (7_400, "below threshold")],
)
def test_below_the_threshold_it_waits(
    measured: int | None, expected: tuple[int, int] | str
) -> None:
    one = trial_of(said(*TALK))
    assert chunk(one, CompactionGoal(available=10_000, measured=measured, floor=FLOOR)) == expected
    assert DAG.due(one.view, 10_000, measured) == (expected != "below threshold")


def test_the_target_is_below_what_is_gained_and_the_summary_before_goes_with_it() -> None:
    one = trial_of(said(("assistant", 300), *TALK))
    one.compact(0, 0, "[100] first")
    step = DAG.compaction(one.view, FORCED)
    assert isinstance(step, CompactionStep)
    gain = sum(one.view.atom(at).tokens for at in range(step.first, step.last + 1))
    assert FLOOR < step.target_tokens < gain
    assert step.previous == "[100] first"
    assert not step.replaces


def test_what_is_not_worth_a_summary_is_not_planned() -> None:
    answer = DAG.compaction(
        trial_of(said(("assistant", 20), ("assistant", 9), ("assistant", 9))).view, FORCED
    )
    assert answer == NothingToDo("nothing to compact")
