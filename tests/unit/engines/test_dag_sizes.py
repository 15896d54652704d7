"""A leaf is never larger than what the budget leaves for summaries, and history that came at once
is spread over that room."""

from __future__ import annotations

import pytest

from contextengine_server.context.budget import cell
from contextengine_server.engines.contract import CompactionGoal
from contextengine_server.engines.dag import DagOptions
from contextengine_server.engines.dag.engine import ADDITION
from contextengine_server.engines.dag.sizes import CLAUSE, WORDS, leaf_size
from contextengine_server.session.assembly.addition import FOUND, LEFT_OUT
from contextengine_server.testing.engine.trial import FLOOR, Trial, trial_of
from contextengine_server.tokens import MESSAGE_TOKENS, TokenCounter

from .test_dag_compaction import said


def history(messages: int, tokens: int = 100) -> Trial:
    """So many messages of about so many tokens each."""
    return trial_of(said(*[("user", tokens)] * messages))


def goal(available: int) -> CompactionGoal:
    return CompactionGoal(available=available, floor=FLOOR)


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_the_clause_costs_no_more_than_is_kept_for_it(encoding: str) -> None:
    assert MESSAGE_TOKENS + TokenCounter(encoding).count_text(ADDITION) <= CLAUSE


def test_where_there_is_room_the_options_hold() -> None:
    size = leaf_size(history(100).view, goal(100_000), DagOptions())
    assert (size.source, size.target) == (20_000, 1_200)


@pytest.mark.parametrize("available", [300, 400, 700, 1_000, 2_000, 4_000])
@pytest.mark.parametrize("tail", [1, 2, 8])
def test_a_leaf_fits_beside_the_tail(available: int, tail: int) -> None:
    view = history(60).view
    size = leaf_size(
        view, goal(available), DagOptions(fresh_tail_turns=tail, leaf_target_tokens=5_000)
    )
    room = cell(available - CLAUSE) - view.span(view.steps - tail, view.steps - 1)
    if room >= FLOOR // 2:
        assert FLOOR // 2 <= size.target <= room
    else:
        assert (
            size.target == 5_000
        )  # nothing worth a summary fits: it is made for a time when there is more room


def test_history_that_came_at_once_is_spread_over_as_many_leaves_as_fill_the_room() -> None:
    view = history(100).view
    options = DagOptions(fresh_tail_turns=1)
    one, more = (leaf_size(view, goal(available), options) for available in (2_000, 5_000))
    assert one.source > view.total * 9 // 10
    assert view.total // 4 < more.source < view.total * 4 // 10
    assert more.target == 1_200


def test_a_model_without_room_is_given_the_least() -> None:
    view = history(30).view
    for available in (500, 5_000):
        one = CompactionGoal(available=available, floor=FLOOR, capacity=0)
        assert leaf_size(view, one, DagOptions(fresh_tail_turns=1)).source == 1


def test_what_fits_the_budget_is_not_spread() -> None:
    view = history(30).view
    assert view.total < 5_000
    assert leaf_size(view, goal(5_000), DagOptions(fresh_tail_turns=1)).source == 20_000


def test_leaves_leave_room_for_saying_what_is_left_out() -> None:
    """A summary that takes it all would not be shown at all once the words are needed."""
    view, available = history(100).view, 2_000
    options = DagOptions(fresh_tail_turns=1, context_threshold=0.95, leaf_target_tokens=5_000)
    kept = view.span(view.tail_from(1), view.steps - 1)
    made = leaf_size(view, goal(available), options).target
    assert made == cell(available - CLAUSE) - WORDS - kept


def test_the_words_cost_no_more_than_is_kept_for_them() -> None:
    for name in ("o200k_base", "cl100k_base"):
        assert TokenCounter(name).count_text(f"\n{LEFT_OUT} {FOUND}") + 3 <= WORDS
