"""Where `dag` keeps one summary up to date in place of several."""

from __future__ import annotations

from msgspec.structs import replace

from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.plan import Summarized
from contextengine_server.engines.contract import CompactionGoal, CompactionStep
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.engines.dag.compaction import next_step
from contextengine_server.engines.dag.single import MOST_TOKENS, taken_in
from contextengine_server.testing.engine.trial import FLOOR, Trial, trial_of
from contextengine_server.testing.engine.views import FRAME

from .test_dag_compaction import said

OPTIONS = DagOptions(fresh_tail_turns=2)
DAG = DagEngine(OPTIONS)
GOAL = CompactionGoal(available=3_000, floor=FLOOR)


def talk(steps: int, *texts: str) -> Trial:
    """Steps of 150 tokens, of which each two are summarized with one of these texts."""
    one = trial_of(said(*[("assistant", 150)] * steps))
    for number, text in enumerate(texts):
        one.compact(2 * number, 2 * number + 1, text)
    return one


def asked(one: Trial, goal: CompactionGoal = GOAL, options: DagOptions = OPTIONS) -> CompactionStep:
    """What is summarized next."""
    step = next_step(one.view, goal, options)
    assert isinstance(step, CompactionStep), step
    return step


def test_what_there_is_is_made_anew_with_what_follows() -> None:
    one = talk(26, "[300] a", "[300] b", "[300] c")
    step = asked(one)
    assert (step.first, step.depth, step.update) == (0, 0, True)
    assert step.last > one.view.summaries[-1].last_step
    assert step.replaces == tuple(summary.id for summary in one.view.summaries)
    assert step.previous == ""


def test_one_says_more_the_more_it_covers_until_its_room_is_full() -> None:
    one, sizes = talk(16), []
    for number in range(17, 90):
        one.add(said(*[("assistant", 150)] * number)[-1:])
        if DAG.due(one.view, GOAL.available, None):
            assert one.compaction(DAG, GOAL.available, written=1.5, spare=FRAME)
            [summary] = one.view.summaries
            sizes.append(summary.tokens)
    assert len(sizes) > 5
    assert max(sizes) > 1.5 * sizes[0]
    assert min(sizes[5:]) > 0.9 * max(sizes), "it never says less for what was added"


def test_of_a_room_that_is_large_the_older_stay_as_they_are() -> None:
    one = talk(160, "[300] a", "[300] b")
    step = asked(one, replace(GOAL, available=20_000, force=True))
    assert step.replaces == ()
    assert step.first == 4


def test_a_model_that_writes_them_makes_more_of_them() -> None:
    one = talk(70, "[300] a", "[300] b")
    goal = replace(GOAL, available=8_000, force=True)
    assert asked(one, goal).update
    assert not asked(one, replace(goal, capacity=50_000)).update


def test_an_option_for_shorter_ones_is_minded() -> None:
    one = talk(26, "[300] a")
    assert asked(one).update
    assert not asked(one, options=DagOptions(fresh_tail_turns=2, leaf_target_tokens=500)).update


def test_what_is_behind_the_newest_user_message_is_told_apart() -> None:
    rows = said(*[("assistant", 150)] * 6, ("user", 40), *[("assistant", 150)] * 20)
    one = trial_of(rows)
    one.compact(0, 5, "[300] before it")
    step = asked(one)
    assert step.first == 7
    assert step.replaces == ()


def test_what_would_take_long_to_read_again_stays_as_it_is() -> None:
    one = talk(10, "[300] a", "[300] b")
    old, new = one.view.summaries
    assert taken_in(one.view, 4) == [old, new]
    one.view.summaries = [old, replace(new, span_end=new.span_start + MOST_TOKENS + 1)]
    assert taken_in(one.view, 4) == []
    one.view.summaries = [replace(old, span_end=old.span_start + MOST_TOKENS + 1), new]
    assert taken_in(one.view, 4) == [new]


def test_what_a_host_wrote_stays_as_it_is() -> None:
    one = talk(10, "[300] a", "[300] b")
    old, new = one.view.summaries
    one.view.summaries = [replace(old, origin="host"), new]
    assert taken_in(one.view, 4) == [new]
    one.view.summaries = [old, replace(new, origin="host")]
    assert taken_in(one.view, 4) == []


def test_a_step_larger_than_any_before_leaves_it_its_room() -> None:
    one = talk(16)
    for number in range(17, 60):
        one.add(said(*[("assistant", 150)] * number)[-1:])
        if DAG.due(one.view, GOAL.available, None):
            one.compaction(DAG, GOAL.available)
    [summary] = one.view.summaries
    one.add(said(*[("assistant", 150)] * 59, ("assistant", 300))[-1:])
    plan = DAG.plan(one.view, ReferenceTokens(GOAL.available))
    assert any(
        isinstance(piece, Summarized) and piece.summary.id == summary.id for piece in plan.segments
    )
