"""How much of the budget summaries may take."""

from __future__ import annotations

from contextengine_server.context.view import View
from contextengine_server.engines.contract import CompactionGoal
from contextengine_server.engines.dag import DagOptions
from contextengine_server.engines.dag.sizes import MOST_TOLD, Shares, shares_of
from contextengine_server.testing.engine.trial import FLOOR, trial_of

from .test_dag_compaction import said

BUDGET = 4_000


def shares(view: View, budget: int = BUDGET) -> Shares:
    return shares_of(view, CompactionGoal(budget, floor=FLOOR), DagOptions())


def talk(times: int) -> View:
    """A user who says a tenth of what the assistant answers."""
    return trial_of(said(*[("user", 60), ("assistant", 540)] * times)).view


def test_users_words_have_room_in_summaries_where_an_answer_would_have_taken_it() -> None:
    short, long, longer = (shares(talk(times)).settled_room for times in (10, 40, 400))
    assert 0.5 * BUDGET < short < 0.56 * BUDGET, "by what they cover is worth"
    assert short < 0.95 * 40 * 60 < long, "nearly all that the user said"
    assert long <= longer < MOST_TOLD * BUDGET, "however much that is, answers are shown too"


def test_room_does_not_hang_on_who_spoke_just_outside_the_tail() -> None:
    one = trial_of(said(*[("user", 60), ("assistant", 540)] * 40))
    one.compact(0, 73, "[900] told")
    room = shares(one.view).settled_room
    one.compact(74, 75, "[60] told")
    assert abs(shares(one.view).settled_room - room) < 0.02 * BUDGET
