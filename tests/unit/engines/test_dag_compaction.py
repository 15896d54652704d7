"""What `dag` summarizes next."""

from __future__ import annotations

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.engines.base import ADDITION_TOKENS, LEFT_OUT_TOKENS
from contextengine_server.engines.contract import CompactionGoal, CompactionStep, NothingToDo
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.testing.engine.random_sessions import text
from contextengine_server.testing.engine.trial import FLOOR, Trial, outline, trial_of
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


def test_it_takes_the_oldest_steps_in_leaves_of_one_size() -> None:
    one = trial_of(said(("system", 50), *TALK))
    assert chunk(one) == (1, 2)
    one.compact(1, 2, "[200] so far")
    assert chunk(one) == (3, 4)
    one.compact(3, 4, "[100] and then")
    assert chunk(one) == "already compacted"


def test_a_step_larger_than_a_leaf_is_a_leaf() -> None:
    assert chunk(trial_of(said(("assistant", 5_000), *TALK))) == (0, 0)


def test_a_scrap_before_a_step_larger_than_a_leaf_goes_with_it() -> None:
    assert chunk(trial_of(said(("assistant", 5), ("assistant", 5_000), *TALK))) == (0, 1)


def test_a_scrap_left_between_summaries_does_not_end_compaction() -> None:
    one = trial_of(said(("assistant", 300), ("assistant", 5), ("assistant", 300), *TALK))
    one.compact(0, 0, "[100] first")
    one.compact(2, 2, "[100] third")
    assert chunk(one) == (3, 4)


def test_what_was_done_for_the_newest_user_message_is_summarized_behind_it() -> None:
    one = trial_of(said(("system", 50), *TALK[:2], ("user", 20), *TALK))
    assert chunk(one) == (1, 2)
    one.compact(1, 2, "[200] before")
    assert chunk(one) == (4, 5)
    one.compact(4, 7, "[200] so far")
    plan = DAG.plan(one.view, 1_600)
    assert outline(plan).startswith("0-0 S1-2 3-3 S4-7 8-9 ")
    one.add(said(*[("system", 0)] * 10, ("user", 30), *TALK)[10:])
    assert chunk(one) == (8, 9), "that message stays where it is, as a scrap"


def test_a_scrap_before_the_newest_user_message_parts_nothing_and_stays() -> None:
    one = trial_of(said(("user", 5), ("assistant", 5), ("user", 20), *TALK))
    assert chunk(one) == (3, 5)
    one.compact(3, 6, "[200] so far")
    for budget in (1_100, 1_600, 5_000):
        assert outline(DAG.plan(one.view, budget)).startswith("0-2 S3-6 7-8 ")


def test_leading_and_pinned_messages_begin_and_end_no_chunk() -> None:
    one = trial_of(said(("system", 500), ("user!", 400), ("assistant", 300), ("user!", 400), *TALK))
    assert chunk(one) == (2, 2), "the second of the two is the newest of a user"
    one = trial_of(
        said(
            ("system", 500), ("assistant", 300), ("user!", 400), ("assistant", 9), ("assistant", 9)
        )
    )
    assert chunk(one) == (1, 1)
    one = trial_of(said(("system", 500), ("assistant", 300), ("developer!", 400), *TALK))
    assert chunk(one) == (1, 4), "a pinned one may lie within"


def test_the_tail_is_left_alone() -> None:
    assert chunk(trial_of(said(("assistant", 300), ("assistant", 300)))) == "nothing to compact"
    assert chunk(trial_of(said())) == "nothing to compact"


@pytest.mark.parametrize(
    ("measured", "expected"),
    [(None, "below threshold"), (9_600, (0, 1)), (9_000, "below threshold")],
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


@pytest.mark.parametrize("tokens", [170, 200])
def test_a_summary_has_room_for_a_sentence_beside_what_frames_it(tokens: int) -> None:
    """Also where what it covers costs hardly more than the smallest summary."""
    step = DAG.compaction(trial_of(said(("assistant", tokens), *TALK[:2])).view, FORCED)
    assert isinstance(step, CompactionStep)
    assert (step.first, step.last) == (0, 0)
    assert FLOOR * 2 // 3 <= step.target_tokens < tokens


def test_a_summary_that_has_no_room_for_a_sentence_is_not_planned() -> None:
    one = trial_of(said(*TALK))
    least = 300 + ADDITION_TOKENS + LEFT_OUT_TOKENS
    planned = {
        free: not isinstance(
            DAG.compaction(one.view, CompactionGoal(least + free, floor=FLOOR)), NothingToDo
        )
        for free in (FLOOR // 2, FLOOR)
    }
    assert planned == {FLOOR // 2: False, FLOOR: True}


def test_a_compaction_goes_on_to_its_low_water_mark() -> None:
    """It stops neither once the view is below the threshold, nor in the middle of a bite."""
    dag = DagEngine(DagOptions(leaf_chunk_tokens=1_000))
    one, available = trial_of(said(*[("assistant", 300)] * 64)), 20_000
    assert dag.due(one.view, available, None)
    reached = False
    while not isinstance(
        step := dag.compaction(one.view, CompactionGoal(available, floor=FLOOR, reached=reached)),
        NothingToDo,
    ):
        one.compact(step.first, step.last, f"[{step.target_tokens // 2}] said")
        reached = not dag.due(one.view, available, None)
    assert reached
    assert 0.8 * available < one.view.view_tokens() < 0.89 * available
    assert len(one.view.summaries) > 1


def test_the_tail_takes_no_more_than_its_share_and_never_the_newest_step() -> None:
    dag = DagEngine(DagOptions())
    few = trial_of(said(*[("assistant", 300)] * 30))
    step = dag.compaction(few.view, CompactionGoal(4_000, force=True, floor=FLOOR))
    assert isinstance(step, CompactionStep)
    assert step.last == 30 - 1 - 1, "two would take more than 15 % of 4,000"
    step = dag.compaction(few.view, CompactionGoal(50_000, force=True, floor=FLOOR))
    assert isinstance(step, CompactionStep)
    assert step.last == 30 - 8 - 1, "as many as the option says"


def test_raw_history_that_is_evicted_is_summarized_whatever_the_threshold_says() -> None:
    """A host's summary made the view small, but not of what was evicted before."""
    one = trial_of(said(*[("assistant", 300)] * 40))
    one.compact(0, 9, "[100] a host's")
    dag, available = DagEngine(DagOptions()), 6_000
    cut = dag.plan(one.view, available).cut
    one.compact(cut + 2, 38, "[100] another")
    assert one.view.view_tokens() < 0.9 * available
    assert dag.due(one.view, available, None) == (cut > 10)


WORK = [("user", 40), *[("assistant", 900)] * 50]


@pytest.mark.parametrize("longest", [None, 600])
def test_a_leaf_may_quote_files_in_half_of_the_room_that_summaries_leave(
    longest: int | None,
) -> None:
    dag = DagEngine(DagOptions(fresh_tail_turns=2, leaf_target_tokens=longest))
    one = trial_of(said(*WORK))
    step = dag.compaction(one.view, CompactionGoal(available=40_000, floor=FLOOR))
    assert isinstance(step, CompactionStep)
    assert step.most_tokens == step.target_tokens + step.quoted_tokens
    assert step.most_tokens <= one.view.span(step.first, step.last)
    if longest:
        assert step.most_tokens <= longest
    else:
        assert 1_000 < step.quoted_tokens < 40_000 // 2


def test_one_summary_that_is_kept_up_to_date_has_no_room_beside() -> None:
    one = trial_of(said(*[("user", 60), ("assistant", 60)] * 40))
    step = DAG.compaction(one.view, CompactionGoal(available=2_000, floor=FLOOR))
    assert isinstance(step, CompactionStep)
    assert step.quoted_tokens == 0
