"""What becomes of the native thread, and why: every row of the table of decisions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contextengine_server.projection.model import ProjectionImpossible
from contextengine_server.projection.thread import Action, Binding, Mode, ThreadEvent
from tests.unit.projection.making import (
    assistant,
    bound,
    done,
    numbered,
    openclaw,
    records,
    turns,
    user,
)

FIRST = done(turns(2))
BOUND = bound(FIRST)


@pytest.mark.parametrize(
    ("fields", "action", "reason", "projected"),
    [
        ({"mode": Mode.PER_TURN}, Action.START, "per-turn-projection", True),
        ({}, Action.START, "missing-thread-binding", True),
        ({"binding": Binding(thread_id="t")}, Action.ROTATE, "missing-projection-binding", True),
        ({"binding": replace(BOUND, schema=2)}, Action.ROTATE, "context-engine-binding-mismatch",
        True),
        ({"binding": BOUND, "engine_id": "x"}, Action.ROTATE, "context-engine-binding-mismatch",
        True),
        ({"binding": BOUND, "inject": True}, Action.ROTATE, "context-engine-binding-mismatch",
        True),
        ({"binding": BOUND, "tools": "t2"}, Action.ROTATE, "dynamic-tools-mismatch", True),
        ({"binding": BOUND, "epoch": "e2"}, Action.ROTATE, "projection-mismatch", True),
        ({"binding": BOUND, "fingerprint": "f"}, Action.ROTATE, "projection-mismatch", True),
        ({"binding": BOUND}, Action.RESUME, "matching-thread-bootstrap-binding", False),
        ({"binding": BOUND, "mode": Mode.PER_TURN}, Action.ROTATE, "per-turn-projection", True),
        ({"binding": BOUND, "events": [ThreadEvent.THREAD_LOST]}, Action.START, "thread-lost",
        True),
        ({"binding": BOUND, "events": [ThreadEvent.MODEL_CHANGED]}, Action.RESUME,
        "matching-thread-bootstrap-binding", False),
    ],
)  # fmt: skip
def test_the_first_reason_that_holds(fields, action, reason, projected):
    answer = done(turns(2), **fields)
    assert (answer.action, answer.reason) == (action, reason)
    assert ("<context_records>" in answer.prompt) is (projected and not answer.items)
    kept = action in (Action.RESUME, Action.INJECT)
    assert answer.binding.thread_id == ("thread-1" if kept else "")


def test_an_overflow_starts_a_fresh_thread_with_less():
    items = turns(60)
    whole = done(items, budget=16_000)
    again = done(items, budget=16_000, binding=bound(whole), events=[ThreadEvent.OVERFLOW])
    assert (again.action, again.reason) == (Action.ROTATE, "context-window-exceeded")
    assert records(again), "the context goes along"
    assert len(again.prompt) < len(whole.prompt) * 0.7


def test_budgets_of_one_epoch_do_not_part_threads():
    assert done(turns(2), budget=79_000, binding=BOUND).action is Action.RESUME


def test_only_what_the_thread_has_not_seen_is_sent():
    items = turns(2)
    own = [
        replace(item, labels={"codex.thread": "thread-1"})
        for item in numbered([user("p"), assistant("a")], 9)
    ]
    outside = user("from elsewhere", 11)
    answer = done([*items, *own, outside], binding=BOUND)
    assert [record["text"] for record in records(answer)] == ["from elsewhere"]
    assert (answer.action, answer.binding.last_sequence) == (Action.RESUME, 11)
    injected = done(items, inject=True)
    answer = done([*items, *own, outside], inject=True, binding=bound(injected, last_sequence=10))
    assert (answer.action, len(answer.items)) == (Action.INJECT, 1)
    assert answer.reason == "matching-thread-bootstrap-binding"
    then = done([*items, *own, outside], inject=True, binding=answer.binding)
    assert (then.action, then.items) == (Action.RESUME, [])


def test_nothing_new_and_no_prompt_is_nothing_to_do():
    answer = done(turns(2), "", binding=BOUND)
    assert (answer.action, answer.prompt, answer.turn_input) == (Action.NOTHING, "", [])


def test_a_gap_between_thread_and_context_starts_a_fresh_one():
    later = turns(2, first=20)
    for items, binding in ((later, BOUND), (turns(2), replace(BOUND, last_sequence=99))):
        answer = done(items, binding=binding)
        assert (answer.action, answer.reason) == (Action.ROTATE, "coverage-gap")


def test_the_policy_of_a_thread_holds_what_was_asked_and_no_content():
    assert done(turns(3)).binding.policy == FIRST.binding.policy
    for other in (
        {"max_chars": 9_000},
        {"reserve": 5},
        {"engine_version": "2"},
        {"mode": Mode.PER_TURN},
    ):
        assert done(turns(2), **other).binding.policy != FIRST.binding.policy


def test_per_turn_goes_on_in_its_thread():
    first = openclaw([user("a")])
    again = openclaw([user("a")], binding=bound(first))
    assert (again.action, again.reason) == (Action.RESUME, "per-turn-projection")
    assert again.binding.thread_id == "thread-1"


def test_where_nothing_may_be_cut_nothing_is_sent():
    pinned = [replace(item, labels={"pinned": "true"}) for item in turns(20)]
    with pytest.raises(ProjectionImpossible, match="unpin"):
        done(pinned, budget=None, max_chars=4_000)


def test_a_bootstrap_leaves_codex_below_the_share_at_which_it_compacts():
    items = turns(645, size=300)  # some 988,000 characters
    whole = done(items, budget=272_000)
    assert whole.stats.omitted > 0
    assert len(whole.prompt) / 4 < 272_000 * 0.9
    assert done(items, budget=272_000, reserve=0).stats.omitted == 0, "a final budget is no window"


def test_a_prompt_above_the_budget_goes_to_a_thread_that_has_its_context():
    first = done(turns(1), budget=None, max_chars=4_000)
    again = done(turns(1), "x" * 5_000, budget=None, max_chars=4_000, binding=bound(first))
    assert (again.action, len(again.prompt)) == (Action.RESUME, 5_000)
    with pytest.raises(ProjectionImpossible, match="give at least"):
        done(turns(1), "x" * 5_000, budget=None, max_chars=4_000)
    with pytest.raises(ProjectionImpossible, match="give a budget"):
        done(turns(1), "x" * 40_000, budget=8_000)
