"""Which summaries `dag` folds into a deeper one, and when."""

from __future__ import annotations

import pytest

from contextengine_server.context.settled import settled_room
from contextengine_server.context.view import View
from contextengine_server.engines.contract import CompactionGoal, CompactionStep
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.engines.dag.condensation import next_fold
from contextengine_server.engines.dag.sizes import Shares
from contextengine_server.session.load import place_summaries
from contextengine_server.session.state import SessionState
from contextengine_server.testing.engine.trial import FLOOR, Trial, trial_of

from .test_dag_compaction import TALK, said

DAG = DagEngine(
    DagOptions(
        fresh_tail_turns=2,
        leaf_chunk_tokens=1_000,
        leaf_target_tokens=500,
        condensed_min_fanout=3,
    )
)
"""Where no summary of messages may be as long as the room of all, there are several."""
CROWDED = CompactionGoal(available=1_800, force=True, floor=FLOOR)
"""Room for about 700 tokens of summaries."""
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


def test_the_oldest_summaries_are_folded_into_one_where_all_take_more_than_their_room() -> None:
    one = summarized(*[f"[200] {n}" for n in range(6)])
    step = DAG.compaction(one.view, CROWDED)
    assert isinstance(step, CompactionStep)
    assert (step.first, step.depth) == (0, 1)
    folded = [s for s in one.view.summaries if s.id in step.replaces]
    assert folded == one.view.summaries[: len(folded)]
    assert 3 <= len(folded) <= 6
    assert FLOOR <= step.target_tokens < 0.8 * sum(s.tokens for s in folded)
    assert step.previous == ""


def test_it_gives_room_to_what_comes_and_takes_no_more_than_that_needs() -> None:
    one = summarized(*[f"[200] {n}" for n in range(12)], more=2)
    goal = CompactionGoal(available=4_500, force=True, floor=FLOOR)
    step = DAG.compaction(one.view, goal)
    assert isinstance(step, CompactionStep)
    assert 3 <= len(step.replaces) < 12
    taken = sum(s.tokens for s in one.view.summaries if s.id in step.replaces)
    left = one.view.fixed_tokens() - taken + step.target_tokens
    assert left <= settled_room(one.view, 4_500)


@pytest.mark.parametrize(("over", "coming"), [(100, 0), (100, 260), (400, 0)])
def test_a_fold_frees_what_the_compaction_needs_and_no_more(over: int, coming: int) -> None:
    one = summarized(*[f"[200] {n}" for n in range(12)])
    taken = sum(s.tokens for s in one.view.summaries)
    shares = Shares(taken, 12 * 600, taken + 10, 24, 0, 1.0, over)
    step = next_fold(one.view, shares, coming, DAG.options, FLOOR)
    assert step is not None
    freed = sum(s.tokens for s in one.view.summaries if s.id in step.replaces) - step.target_tokens
    needed = max(over, coming - 10)
    assert needed <= freed <= needed + 200, "by whole summaries"


@pytest.mark.parametrize(("new", "first"), [(2, 20), (1, 0)])
def test_depths_are_mixed_only_where_summaries_of_one_depth_give_no_room(
    new: int, first: int
) -> None:
    one = trial_of(said(*[("assistant", 300)] * 26))
    one.compact(0, 19, "[1500] old", [], depth=1)
    for number in range(new):
        one.compact(20 + 2 * number, 21 + 2 * number, "[200] new")
    taken = sum(s.tokens for s in one.view.summaries)
    shares = Shares(taken, 24 * 300, taken - 300, 24, 0, 1.0, 1)
    step = next_fold(one.view, shares, 0, DagOptions(condensed_min_fanout=4), FLOOR)
    assert step is not None
    assert step.first == first


def test_summaries_that_have_room_are_left_alone() -> None:
    one = summarized(*[f"[200] {n}" for n in range(6)])
    assert fold(one, ROOMY) == "already compacted"
    assert not DAG.due(one.view, 100_000, None)


def test_one_summary_alone_is_not_folded() -> None:
    assert fold(summarized("[900] a", more=1), CROWDED) == "already compacted"


def test_what_would_not_gain_is_left_alone() -> None:
    goal = CompactionGoal(1_800, force=True, floor=800)
    assert fold(summarized("[200] a", "[200] b", "[200] c", "[200] d"), goal) == "already compacted"


def test_a_fold_covers_what_lies_between_and_stops_at_the_newest_user_message() -> None:
    one = trial_of(said(*[("assistant", 300)] * 4, ("user", 40), *[("assistant", 300)] * 10))
    for first in (0, 2, 5, 7, 9, 11):
        one.compact(first, first + 1, "[200] so far")
    step = DAG.compaction(one.view, CROWDED)
    assert isinstance(step, CompactionStep)
    assert (step.first, step.last) == (0, 3) or step.first == 5
    one.add(said(*[("system", 0)] * 15, ("user", 30))[15:])
    step = DAG.compaction(one.view, CROWDED)
    assert isinstance(step, CompactionStep)
    assert (step.first, step.last > 4) == (0, True), "an older message of the user's goes with it"


def test_a_parent_is_one_deeper_than_the_deepest_of_its_children() -> None:
    one = summarized(*[f"[200] {n}" for n in range(12)])
    depths = []
    for _ in range(20):
        if not one.compaction(DAG, 1_800, force=True):
            break
        depths.append(max(s.depth for s in one.view.summaries))
    assert depths
    assert depths == sorted(depths)


def test_the_summary_before_it_goes_with_it() -> None:
    one = summarized("[20] a", pinned=-1, more=2)
    one.add(said(*[("system", 0)] * 4, ("user", 300), *[("assistant", 300)] * 14)[4:])
    for first in range(5, 17, 2):
        one.compact(first, first + 1, f"[200] {first}")
    step = DAG.compaction(one.view, CROWDED)
    assert isinstance(step, CompactionStep)
    earlier = [s for s in one.view.summaries if s.last_step < step.first]
    assert step.previous == (earlier[-1].text if earlier else "")


def test_below_the_threshold_nothing_is_folded_that_has_room() -> None:
    one = summarized(*[f"[200] {n}" for n in range(8)])
    assert fold(one, CompactionGoal(100_000, floor=FLOOR)) == "below threshold"


def test_where_only_summaries_can_be_folded_a_compaction_is_due() -> None:
    one = summarized(*[f"[200] {n}" for n in range(6)])
    assert DAG.due(one.view, 1_800, None)
    assert not DAG.due(one.view, 100_000, None)


def test_folding_brings_back_nothing_that_was_evicted() -> None:
    """The summaries that are folded take with them what they knew of the view before them."""
    one = trial_of(said(*TALK, *[("assistant", 300)] * 14))
    room = 3_444
    for first in (0, 3, 6):
        one.compact(first, first + 2, "[100] leaf")
    evicted = DAG.plan(one.view, room).cut
    assert evicted >= one.view.raw_from
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
    assert again.stretches == one.view.stretches
