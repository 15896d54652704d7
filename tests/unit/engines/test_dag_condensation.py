"""Which summaries `dag` folds into a deeper one, and when."""

from __future__ import annotations

import pytest

from contextengine_server.context.view import View
from contextengine_server.engines.contract import CompactionGoal, CompactionStep
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.session.load import place_summaries
from contextengine_server.session.state import SessionState
from contextengine_server.testing.engine.trial import FLOOR, Trial, trial_of

from .test_dag_compaction import TALK, said

DAG = DagEngine(
    DagOptions(
        fresh_tail_turns=2,
        leaf_chunk_tokens=1_000,
        leaf_target_tokens=200,
        condensed_min_fanout=3,
        condensed_target_tokens=300,
    )
)
ROOMY = CompactionGoal(available=100_000, force=True, floor=FLOOR)


def summarized(*texts: str, pinned: int = -1, more: int = 2) -> Trial:
    """A session whose steps are summarized two by two with these texts, but for a pinned one."""
    roles = ["assistant"] * (2 * len(texts) + more)
    if pinned >= 0:
        roles[pinned] = "user!"
    one = trial_of(said(*[(role, 300) for role in roles]))
    for number, text in enumerate(texts):
        first = 2 * number + (2 * number >= pinned >= 0)
        one.compact(first, first + 1, text)
    return one


def fold(
    one: Trial, goal: CompactionGoal = ROOMY, dag: DagEngine = DAG
) -> tuple[int, int, int] | str:
    """The steps and the depth of the next summary, or why there is none."""
    step = dag.compaction(one.view, goal)
    return (step.first, step.last, step.depth) if isinstance(step, CompactionStep) else step.reason


def test_a_run_of_neighbours_is_folded_into_one() -> None:
    one = summarized("[200] a", "[200] b", "[200] c")
    step = DAG.compaction(one.view, ROOMY)
    assert isinstance(step, CompactionStep)
    assert (step.first, step.last, step.depth) == (0, 5, 1)
    assert step.replaces == tuple(s.id for s in one.view.summaries)
    gain = sum(s.tokens for s in one.view.summaries)
    assert FLOOR < step.target_tokens <= gain // 2
    assert step.previous == ""


def test_fewer_than_the_fan_out_are_left_alone() -> None:
    assert fold(summarized("[200] a", "[200] b")) == "already compacted"


def test_what_would_not_gain_is_left_alone() -> None:
    assert (
        fold(summarized("a", "b", "c"), CompactionGoal(100_000, force=True, floor=400))
        == "already compacted"
    )


def test_a_run_ends_where_messages_lie_between_but_for_pinned_ones() -> None:
    gapped = summarized("[200] a", "[200] b")
    gapped.add(said(*[("system", 0)] * 6, *[("assistant", 300)] * 8)[6:])
    gapped.compact(6, 7, "[200] c")
    assert fold(gapped) == (4, 5, 0)
    pinned = summarized("[200] a", "[200] b", "[200] c", pinned=2)
    assert fold(pinned) == (0, 6, 1)


def test_the_shallowest_depth_first_and_of_it_the_oldest_run() -> None:
    """Depths never mix, and a parent is one deeper than its children."""
    one = summarized(*[f"[200] {n}" for n in range(12)])
    assert fold(one) == (0, 7, 1)  # a leaf's chunk of summaries
    made = []
    for _ in range(20):
        if not one.compaction(DAG, 100_000, force=True):
            break
        made.append([(s.first_step, s.last_step, s.depth) for s in one.view.summaries])
    assert made[0] == [(0, 7, 1), *((2 * n, 2 * n + 1, 0) for n in range(4, 12))]
    assert made[1] == [(0, 7, 1), (8, 15, 1), *((2 * n, 2 * n + 1, 0) for n in range(8, 12))]
    assert made[2] == [(0, 7, 1), (8, 15, 1), (16, 23, 1)]
    assert made[3] == [(0, 23, 2)]
    assert len(made) == 4


def test_the_summary_of_its_depth_before_it_goes_with_it() -> None:
    one = summarized(*[f"[200] {n}" for n in range(8)])
    assert one.compaction(DAG, 100_000, force=True)
    step = DAG.compaction(one.view, ROOMY)
    assert isinstance(step, CompactionStep)
    assert step.depth == 1
    assert step.previous == one.view.summaries[0].text


def test_below_the_threshold_nothing_is_folded() -> None:
    one = summarized(*[f"[200] {n}" for n in range(8)])
    assert fold(one, CompactionGoal(100_000, floor=FLOOR)) == "below threshold"


def test_leaves_come_first_until_the_summaries_are_crowded() -> None:
    few = summarized("[200] a", "[200] b", "[200] c", more=8)
    assert fold(few, CompactionGoal(4_000, floor=FLOOR)) == (6, 8, 0)
    many = summarized(*[f"[200] {n}" for n in range(8)], more=8)
    assert fold(many, CompactionGoal(4_000, floor=FLOOR)) == (0, 7, 1)


@pytest.mark.parametrize(("summaries", "expected"), [(3, "already under target"), (8, (0, 7, 1))])
def test_a_goal_that_is_reached_leaves_only_crowded_summaries_to_fold(
    summaries: int, expected: tuple[int, int, int] | str
) -> None:
    one = summarized(*[f"[200] {n}" for n in range(summaries)], more=8)
    assert fold(one, CompactionGoal(4_000, floor=FLOOR, reached=True)) == expected


def test_where_only_summaries_can_be_folded_a_compaction_is_due() -> None:
    one = summarized("[200] a", "[200] b", "[200] c")
    assert DAG.due(one.view, 1_000, None)
    assert not DAG.due(summarized("[200] a", "[200] b").view, 1_000, None)
    assert not DAG.due(one.view, 100_000, None)


def test_folding_brings_back_nothing_that_was_evicted() -> None:
    """The summaries that are folded take with them what they knew of the view before them."""
    one = trial_of(said(*TALK, *[("assistant", 300)] * 14))
    room = 3_444
    evicted = DAG.plan(one.view, room).cut
    for first in (0, 3, 6):
        one.compact(first, first + 2, "[100] leaf")
    assert one.view.raw_from < evicted == DAG.plan(one.view, room).cut
    leaves = list(one.view.summaries)
    # Below the summary that is all that is left of them, nothing says any more how full the view
    # was.
    one.compact(0, 8, "[10] deep", [s.id for s in one.view.summaries], depth=1)
    assert [s.depth for s in one.view.summaries] == [1]
    assert one.view.view_tokens() <= room
    assert DAG.plan(one.view, room).cut == evicted
    # Read from the store it says the same.
    again = View(one.view.scope)
    place_summaries(again, [*leaves, *one.view.summaries], SessionState())
    assert [s.id for s in again.summaries] == [s.id for s in one.view.summaries]
    assert again.evictions == one.view.evictions
    assert again.leaves == one.view.leaves
