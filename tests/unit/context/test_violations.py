"""A broken law says its number, its name, and what of the plan breaks it: whoever wrote the engine
has nothing else to go by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from contextengine_server.context.laws.case import Case
from contextengine_server.context.laws.check import violation
from contextengine_server.context.message import Form
from contextengine_server.context.plan import Plan, Reshaped, Segment, Summarized, plan_tokens
from contextengine_server.context.view import View
from contextengine_server.testing.engine.trial import trial_of
from tests.oracle.test_broken_plans import (
    BREAKS,
    DECLARED,
    PLENTY,
    case_of,
    formed,
    history,
    keep,
    set_up,
)

TOLD = {
    "a step is shown twice": "law 1 (pairs): step 2 is shown twice",
    "a summary stands behind what it covers": (
        "law 1 (pairs): summary s2 stands behind what it covers"
    ),
    "a summary stands before its place": (
        "law 1 (pairs): what begins at step 0 stands out of order"
    ),
    "summaries change places": "law 1 (pairs): what begins at step 1 stands out of order",
    "open calls are left out": (
        "law 2 (pending): open calls of the newest assistant message are not verbatim"
    ),
    "redacted reasoning is cut": (
        "law 3 (reasoning): message 9 has sealed reasoning in form HEAD_TAIL"
    ),
    "reasoning is left out where the provider wants it": (
        "law 3 (reasoning): message 3 would stand without its reasoning"
    ),
    "reasoning is left out inside the open loop": (
        "law 3 (reasoning): message 9 is inside the open tool loop"
    ),
    "the newest user message is masked": (
        "law 4 (intent): step 6 must be verbatim: it holds the newest user message"
    ),
    "the leading message is evicted": (
        "law 4 (intent): step 0 must be verbatim: it leads the session"
    ),
    "a pinned message is evicted": "law 4 (intent): step 3 must be verbatim: it is pinned",
    "too much by one token": (
        "law 5 (budget): 403 tokens exceed 402 and the plan does not say so"
    ),
    "over, with a step that could go": (
        "law 5 (budget): the list exceeds the budget and is not the smallest lawful one"
    ),
    "a step of the tail is evicted although it fits": (
        "law 6 (tail): step 8 is missing although an older step of the tail is shown"
    ),
    "the oldest step of the tail is evicted although it fits": (
        "law 6 (tail): step 7 is missing although it would fit"
    ),
    "the newest step is evicted": "law 6 (tail): the newest step is not shown",
    "a step of the tail is masked": (
        "law 6 (tail): step 7 of the tail is shown in a form for older messages"
    ),
    "a summary that the view has not": (
        "law 7 (honesty): summary gone is not a live top-level summary of the view"
    ),
    "a form that was not declared": "law 7 (honesty): form STRIPPED_TAGS was not declared",
    "stored rows without an agent": (
        "law 8 (scope): rows were read under an incomplete scope"
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", TOLD)
def test_a_broken_law_says_which_it_is_and_where(how: str) -> None:
    [broke] = [broke for broke in BREAKS if broke.how == how]
    assert str(violation(case_of(set_up(broke), broke))) == TOLD[how]


RANGES: list[tuple[str, Callable[[View], list[Segment]]]] = [
    ("law 1 (pairs): empty range 5 to 4", lambda view: [keep(0, 3), keep(5, 4), keep(5, 9)]),
    ("law 1 (pairs): step 10 does not exist", lambda view: [keep(0, 10)]),
    ("law 1 (pairs): step -1 does not exist", lambda view: [keep(-1, 9)]),
]


@pytest.mark.parametrize(("told", "segments"), RANGES, ids=[told for told, _ in RANGES])
def test_a_range_of_nothing_is_named(told: str, segments: Callable[[View], list[Segment]]) -> None:
    view = trial_of(history()).view
    assert str(violation(Case(Plan(tuple(segments(view))), view, PLENTY, 0, DECLARED))) == told


def test_steps_that_were_not_read_are_named() -> None:
    view = trial_of(history()).view
    anchors = {0: view.atoms[0], 3: view.atoms[3]}
    window = replace(view, atoms=view.atoms[5:], base=5, anchors=anchors)
    plan = Plan((keep(0, 0), keep(2, 3), keep(6, 9)))
    case = Case(plan, window, PLENTY, 0, DECLARED)
    assert str(violation(case)) == "law 1 (pairs): steps 2 to 3 were not read"
    sound = Plan((keep(0, 0), keep(3, 3), keep(6, 9)))
    assert violation(Case(sound, window, PLENTY, plan_tokens(sound, window), DECLARED)) is None


def test_what_no_law_lets_go_follows_the_summary_that_covers_it() -> None:
    """Also where a summary begins with it."""
    one = trial_of(history())
    one.compact(3, 4, "what was to be remembered")
    summary = Summarized(one.view.summaries[0])
    sound = Plan((keep(0, 0), summary, keep(3, 3), keep(6, 9)))
    case = Case(sound, one.view, PLENTY, plan_tokens(sound, one.view), DECLARED)
    assert violation(case) is None
    behind = Plan((keep(0, 0), keep(3, 3), summary, keep(6, 9)))
    assert str(violation(Case(behind, one.view, PLENTY, 0, DECLARED))) == (
        f"law 1 (pairs): summary {summary.summary.id} stands behind what it covers"
    )


def test_a_range_may_begin_and_end_with_what_stands_as_it_is() -> None:
    """Where other messages of it are shown in another form."""
    view = trial_of(history()).view
    noted = formed(view, 6, Form.PLACEHOLDER)
    thought = formed(view, 3, Form.WITHOUT_REASONING)
    for segments in (
        (keep(0, 2), Reshaped(3, 4, "masked", {6: noted}), keep(5, 9)),
        (keep(0, 1), Reshaped(2, 3, "masked", {3: thought}), keep(4, 9)),
    ):
        plan = Plan(segments)
        case = Case(plan, view, PLENTY, plan_tokens(plan, view), DECLARED, True)
        assert violation(case) is None
        gone = Case(replace_range(plan), view, PLENTY, 0, DECLARED, True)
        assert str(violation(gone)) == "law 4 (intent): step 3 must be verbatim: it is pinned"


def replace_range(plan: Plan) -> Plan:
    """The same without what is shown in other forms."""
    return Plan(tuple(one for one in plan.segments if not isinstance(one, Reshaped)))
