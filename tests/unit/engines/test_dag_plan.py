"""What `dag` shows, by example: the cut on its grid, what stands before it, summaries, and a tail
that does not fit."""

from __future__ import annotations

import pytest

from contextengine_server.context.budget import cell
from contextengine_server.context.plan import plan_tokens
from contextengine_server.engines.base import ADDITION
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.testing.engine.trial import Trial, hold, outline, trial_of

from .test_dag_compaction import said

DAG = DagEngine(DagOptions(fresh_tail_turns=2))


def planned(one: Trial, budget: int, reserved: int = 0) -> str:
    """The segments and the rule, after laws and oracles had nothing to say."""
    return outline(hold(one, DAG, budget, reserved))


def test_everything_is_shown_where_it_fits() -> None:
    one = trial_of(said(*[("assistant", 90)] * 10))
    frame = one.view.atoms[0].tokens - 90
    one.add(said(*[("system", 0)] * 10, ("assistant", 1_024 - one.view.total - frame))[10:])
    assert one.view.total == cell(one.view.total) == 1_024
    assert planned(one, 1_024) == "0-10 cut 0 "
    assert planned(one, 1_023) != "0-10 cut 0 "
    assert planned(one, 5_000) == "0-10 cut 0 "


def test_the_cut_goes_as_far_as_it_must_and_only_on() -> None:
    one = trial_of(said(("system", 5)))
    room = 4_096
    cuts = []
    for row in said(*[("assistant", 96)] * 160)[1:]:
        one.add([row])
        plan = hold(one, DAG, room)
        cuts.append(plan.cut)
        if plan.cut:
            assert one.view.atom(plan.cut - 1).tokens > room - plan_tokens(plan, one.view)
    assert cuts == sorted(cuts)
    assert len(set(cuts)) > 100


def test_a_budget_is_used_whole_and_not_by_its_cell() -> None:
    one = trial_of(said(*[("assistant", 96)] * 60))
    assert cell(one.view.total) < one.view.total
    assert outline(DAG.plan(one.view, one.view.total)) == "0-59 cut 0 "


def test_what_law_4_keeps_stands_before_the_cut() -> None:
    one = trial_of(
        said(
            ("system", 50),
            ("user!", 50),
            ("assistant", 900),
            ("user", 50),
            *[("assistant", 300)] * 12,
        )
    )
    plan = planned(one, 2_048)
    assert plan.startswith("0-1 3-3 ")
    assert "cut at step" in plan


def test_no_eviction_lifts_when_the_newest_user_message_moves_behind_the_cut() -> None:
    """However large the message was that leaves its place before the cut."""
    for steps in range(50, 90):
        one = trial_of(said(("user", 1_500), *[("assistant", 60)] * steps))
        before = DAG.plan(one.view, 4_096).cut
        assert before > 0 or one.view.total <= 4_096
        for number in range(20):
            one.add(
                said(*[("system", 0)] * (steps + 1 + number), ("user", 3))[steps + 1 + number :]
            )
            assert DAG.plan(one.view, 4_096).cut >= before


def test_raw_history_goes_before_summaries_and_the_oldest_summary_first() -> None:
    one = trial_of(said(("system", 50), *[("assistant", 300)] * 20))
    one.compact(1, 4, "[200] first")
    one.compact(5, 8, "[200] second")
    assert planned(one, 8_000) == "0-0 S1-4 S5-8 9-20 cut 0 "
    assert planned(one, 3_000) == "0-0 S1-4 S5-8 14-20 cut 14 cut at step 14"
    assert planned(one, 1_024) == "0-0 S1-4 S5-8 20-20 cut 20 cut at step 20"
    assert planned(one, 724) == "0-0 S5-8 20-20 cut 20 cut at step 20"
    assert planned(one, 500) == "0-0 20-20 cut 20 cut at step 20"


def test_the_newest_summary_is_shown_wherever_it_fits() -> None:
    one = trial_of(said(*[("assistant", 300)] * 20))
    one.compact(0, 8, "[200] first")
    room = one.view.atoms[19].tokens + one.view.summaries[0].tokens
    assert outline(DAG.plan(one.view, room)) == "S0-8 19-19 cut 19 cut at step 19"
    assert outline(DAG.plan(one.view, room - 1)) == "19-19 cut 19 cut at step 19"


def test_a_large_step_that_has_gone_by_brings_no_summary_back() -> None:
    """Room for a step as large is kept free from then on."""
    one = trial_of(said(*[("assistant", 100)] * 20))
    for first in range(0, 16, 4):
        one.compact(first, first + 3, "[150] so far")
    one.add(said(*[("assistant", 100)] * 20, ("assistant", 600))[20:])
    few = planned(one, 1_200)
    assert few.startswith("S8-11 S12-15 ")
    for number in range(21, 30):
        one.add(said(*[("assistant", 10)] * (number + 1))[number:])
        assert planned(one, 1_200).startswith("S8-11 S12-15 ")


def test_a_tail_that_does_not_fit_gives_up_its_old_end_and_the_last_step_never() -> None:
    one = trial_of(said(("system", 50), ("assistant", 300), ("assistant", 300), ("assistant", 300)))
    assert planned(one, 512) == "0-0 3-3 cut 3 cut at step 3"
    assert planned(one, 100) == "0-0 3-3 cut 3 law budget over"


def test_what_a_prompt_takes_is_not_for_items() -> None:
    one = trial_of(said(("system", 50), *[("assistant", 300)] * 10))
    assert planned(one, 4_096) == "0-10 cut 0 "
    assert planned(one, 4_096, reserved=2_000) != "0-10 cut 0 "


def test_a_scrap_between_two_summaries_that_was_evicted_is_not_shown_again() -> None:
    """The second summary makes room for it; so does a budget that had shown it all along."""
    one = trial_of(said(*[("assistant", 130)] * 40))
    one.compact(0, 19, "[20] first")
    one.add(said(*[("assistant", 130)] * 66)[40:])
    assert planned(one, 2_500) == "S0-19 49-65 cut 49 cut at step 49"
    one.compact(22, 55, "[20] second")
    assert one.view.view_tokens() < 2_500
    assert planned(one, 2_500) == "S0-19 S22-55 56-65 cut 56 cut at step 56"
    assert planned(one, 20_000) == "S0-19 20-21 S22-55 56-65 cut 0 "


def test_of_a_scrap_between_two_summaries_what_was_shown_stays() -> None:
    one = trial_of(said(*[("assistant", 130)] * 30))
    one.compact(0, 4, "[20] first")
    evicted = DAG.plan(one.view, cell(2_500)).cut
    assert 5 < evicted < 18
    one.compact(18, 25, "[20] second")
    assert planned(one, 2_500).startswith(f"S0-4 {evicted}-17 S18-25 26-29 ")


def test_where_a_summary_covers_all_and_does_not_fit_that_is_said() -> None:
    one = trial_of(said(("user", 300), ("assistant", 300)))
    one.compact(0, 1, "[200] all of it")
    assert planned(one, 700) == "S0-1 0-0 cut 0 "
    assert planned(one, 400) == "0-0 cut 2 cut at step 2"
    assert planned(one, 100) == "0-0 cut 2 law budget over"


def test_nothing_is_shown_of_nothing() -> None:
    assert planned(trial_of([]), 100) == " cut 0 "


def test_the_addition_goes_with_summaries() -> None:
    one = trial_of(said(("assistant", 300), ("assistant", 300), ("assistant", 300)))
    assert DAG.addition(one.view.summaries) == ""
    one.compact(0, 0, "[200] first")
    assert DAG.addition(one.view.summaries) == ADDITION


@pytest.mark.parametrize("budget", [100, 5_000, 128_000])
def test_a_window_of_a_cell_and_a_quarter_is_enough(budget: int) -> None:
    assert DAG.reach(cell(budget)) == cell(budget) + cell(budget) // 4


def test_options_have_a_fingerprint() -> None:
    assert DAG.fingerprint == DagEngine(DagOptions(fresh_tail_turns=2)).fingerprint
    assert DAG.fingerprint != DagEngine(DagOptions(fresh_tail_turns=3)).fingerprint
