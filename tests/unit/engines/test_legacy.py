"""`legacy`: what is there is shown; its built-in compaction makes one summary of all but the newest
part."""

from __future__ import annotations

import pytest

from contextengine_server.context.plan import Keep
from contextengine_server.engines.contract import CompactionGoal, CompactionStep, NothingToDo
from contextengine_server.engines.legacy import LegacyEngine, LegacyOptions
from contextengine_server.testing.engine.trial import FLOOR, Trial, hold, outline, trial_of

from .test_dag_compaction import said

LEGACY = LegacyEngine(LegacyOptions(keep_recent_tokens=1_000))


def planned(one: Trial, budget: int) -> str:
    return outline(hold(one, LEGACY, budget))


def step(
    one: Trial, available: int, *, force: bool = True, measured: int | None = None
) -> CompactionStep | NothingToDo:
    return LEGACY.compaction(
        one.view, CompactionGoal(available, force=force, measured=measured, floor=FLOOR)
    )


def test_it_never_evicts_and_says_when_that_is_too_much() -> None:
    one = trial_of(said(("system", 50), *[("assistant", 300)] * 10))
    assert planned(one, 5_000) == "0-10 cut 0 "
    assert planned(one, 500) == "0-10 cut 0  over"
    assert LEGACY.reach(500) is None


def test_no_summary_ever_gives_way() -> None:
    """Over budget says so, and a compaction makes one small summary of them."""
    one = trial_of(said(("system", 50), *[("assistant", 300)] * 6))
    one.compact(1, 2, "[200] first")
    one.compact(3, 4, "[200] second")
    assert planned(one, 8_000) == "0-0 S1-2 S3-4 5-6 cut 0 "
    for budget in (1_024, 724, 400):
        assert planned(one, budget) == "0-0 S1-2 S3-4 5-6 cut 0  over"
    while one.compaction(LEGACY, 724, force=True):
        pass
    assert planned(one, 724) == "0-0 S1-5 6-6 cut 0 "


def test_where_the_newest_part_leaves_no_room_it_is_folded_too() -> None:
    one = trial_of(said(*[("assistant", 300)] * 12))
    assert one.compaction(LEGACY, 3_000, force=True)
    summary = one.view.summaries[0]
    assert summary.last_step < 10
    one.add(said(*[("system", 0)] * 12, *[("assistant", 300)] * 2)[12:])
    room = one.view.view_tokens() - 1
    while one.compaction(LEGACY, room, force=True):
        pass
    assert not planned(one, room).endswith("over")


def test_a_summary_that_is_too_large_is_made_smaller() -> None:
    one = trial_of(said(("system", 50), *[("assistant", 300)] * 8))
    one.compact(1, 7, "[900] of them")
    made = step(one, 724)
    assert isinstance(made, CompactionStep)
    assert (made.first, made.last, made.replaces) == (1, 7, (one.view.summaries[0].id,))
    assert made.target_tokens <= 724 - one.view.view_tokens() + one.view.summaries[0].tokens
    assert one.compaction(LEGACY, 724, force=True)
    assert planned(one, 724) == "0-0 S1-7 8-8 cut 0 "


def test_what_the_harness_measured_beyond_our_count_leaves_less_room() -> None:
    one = trial_of(said(*[("assistant", 300)] * 12))
    assert one.compaction(LEGACY, 3_000, force=True)
    assert step(one, 3_000) == NothingToDo("already compacted")
    assert isinstance(step(one, 3_000, measured=3_001), CompactionStep)


def test_one_summary_takes_the_place_of_all_before() -> None:
    one = trial_of(said(("system", 50), *[("assistant", 300)] * 10))
    made = step(one, 8_000)
    assert isinstance(made, CompactionStep)
    # The newest thousand tokens stay: three steps of some three hundred.
    assert (made.first, made.last, made.replaces, made.origin) == (1, 7, (), "runtime")
    assert FLOOR <= made.target_tokens <= 4_000
    assert one.compaction(LEGACY, 8_000, force=True)
    assert step(one, 8_000) == NothingToDo("already compacted")
    one.add(said(*[("system", 0)] * 11, *[("assistant", 300)] * 6)[11:])
    again = step(one, 8_000)
    assert isinstance(again, CompactionStep)
    assert (again.first, again.last) == (1, 13)
    assert again.replaces == (one.view.summaries[0].id,)
    assert again.previous == one.view.summaries[0].text
    assert one.compaction(LEGACY, 8_000, force=True)
    assert len(one.view.summaries) == 1


def test_no_more_than_half_of_the_budget_stays() -> None:
    one = trial_of(said(*[("assistant", 300)] * 10))
    made = step(one, 1_250)
    assert isinstance(made, CompactionStep)
    assert made.last == 7


def test_the_last_step_stays_however_large() -> None:
    one = trial_of(said(("assistant", 300), ("assistant", 9_000)))
    made = step(one, 1_000)
    assert isinstance(made, CompactionStep)
    assert made.last == 0


@pytest.mark.parametrize(("measured", "done"), [(None, False), (7_999, False), (8_001, True)])
def test_unless_forced_it_waits_for_the_budget(measured: int | None, done: bool) -> None:
    one = trial_of(said(*[("assistant", 300)] * 10))
    answer = step(one, 8_000, force=False, measured=measured)
    assert isinstance(answer, CompactionStep) == done
    assert done or answer == NothingToDo("already under target")


def test_there_may_be_nothing_to_compact() -> None:
    for script in (
        [],
        [("system", 500)],
        [("assistant", 300)],
        [("assistant", 100), ("assistant", 100)],
    ):
        assert step(trial_of(said(*script)), 100) == NothingToDo("nothing to compact")


def test_pinned_and_leading_messages_are_not_what_it_gains_by() -> None:
    one = trial_of(
        said(
            ("system", 500), ("user!", 500), ("user!", 500), ("assistant", 300), ("assistant", 300)
        )
    )
    assert isinstance(step(one, 700), CompactionStep)
    one = trial_of(said(("system", 500), ("user!", 500), ("user!", 500), ("assistant", 300)))
    assert step(one, 700) == NothingToDo("nothing to compact")


def test_it_adds_nothing_and_is_never_due() -> None:
    one = trial_of(said(*[("assistant", 300)] * 10))
    assert LEGACY.addition(one.view.summaries) == ""
    assert not LEGACY.due(one.view, 10, 10_000)


@pytest.mark.parametrize(
    ("turns", "limit", "shown"),
    [
        (5, 0, 5),
        (15, 10, 15),  # no more than one and a half times the limit
        (16, 10, 10),
        (17, 10, 11),
        (21, 10, 15),
        (22, 10, 10),
        (4, 3, 4),
        (5, 3, 5),
        (6, 3, 3),
        (2, 1, 2),
        (3, 1, 1),
    ],
)
def test_turns_beyond_the_limit_are_left_out_by_the_batch(
    turns: int, limit: int, shown: int
) -> None:
    """OpenClaw keeps limit + (turns - limit) mod batch of them, a batch being what lies between
    the limit and one and a half times it, and one."""
    engine = LegacyEngine(LegacyOptions(history_limit=limit))
    one = trial_of(said(("system", 5), *[("user", 10), ("assistant", 10)] * turns))
    plan = hold(one, engine, 100_000)
    raw = [s for s in plan.segments if isinstance(s, Keep)]
    steps = {step for segment in raw for step in range(segment.first, segment.last + 1)}
    assert steps == {0, *range(1 + 2 * (turns - shown), 1 + 2 * turns)}


def test_the_limit_goes_by_the_channel_and_leaves_summaries() -> None:
    options = LegacyOptions(history_limit=10, history_limit_overrides={"group": 2, "dm": 0})
    engine = LegacyEngine(options)
    one = trial_of(said(("system", 5), *[("user", 10), ("assistant", 10)] * 20))
    one.compact(1, 6, "[20] what was said")
    for channel, first in (("", 13), ("group", 37), ("dm", 7)):
        one.view.channel = channel
        assert outline(hold(one, engine, 100_000)).split(" cut")[0] == f"0-0 S1-6 {first}-40"


def test_what_the_limit_hid_stays_hidden() -> None:
    engine = LegacyEngine(LegacyOptions(history_limit=4))
    one, gone = trial_of([]), set[int]()
    rows = said(("system", 5), *[("user", 10), ("assistant", 10)] * 30)
    for row in rows:
        one.add([row])
        plan = hold(one, engine, 100_000)
        shown = {
            step
            for segment in plan.segments
            if isinstance(segment, Keep)
            for step in range(segment.first, segment.last + 1)
        }
        assert not gone & shown
        gone = set(range(one.view.steps)) - shown
    assert gone
