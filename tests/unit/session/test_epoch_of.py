"""An epoch is named by all that decides how an assembly begins, and by nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from contextengine_server.context.epoch import Cause, cause
from contextengine_server.context.message import Form, Slot
from contextengine_server.context.plan import Keep, Plan, Reshaped, Segment, Summarized
from contextengine_server.context.view import View
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.session.assembly.epoch import epoch_of
from contextengine_server.session.state import SessionState
from contextengine_server.testing.engine.trial import trial_of
from tests.unit.engines.test_dag_compaction import said


def view_of(steps: int = 10) -> View:
    one = trial_of(said(*[("user", 100), ("assistant", 100)] * (steps // 2)))
    one.compact(0, 1, "[20] first")
    one.compact(2, 3, "[20] second")
    return one.view


VIEW = view_of()
FIRST, SECOND = (Summarized(summary) for summary in VIEW.summaries)
SEGMENTS: tuple[Segment, ...] = (FIRST, SECOND, Keep(5, 5), Keep(7, 9))
ENGINE = DagEngine(DagOptions())


def named(**other: Any) -> str:
    """The epoch of one plan, but for what is said to be other."""
    asked = {
        "state": SessionState(),
        "view": VIEW,
        "plan": Plan(SEGMENTS, forms="forms"),
        "engine": ENGINE,
        "model": "m",
        "cell": 5_000,
        "mark": "",
        **other,
    }
    return epoch_of(*asked.values())


def shown(*segments: Segment) -> str:
    return named(plan=Plan(segments, forms="forms"))


class Newer(DagEngine):
    version = "2.0.0"


OTHERS: list[tuple[Cause, str, Callable[[], str]]] = [
    (Cause.RESET, "another life", lambda: named(view=replace(VIEW, incarnation="other"))),
    (Cause.RESET, "emptied", lambda: named(view=replace(VIEW, reset_mark=3))),
    (Cause.ENGINE, "a newer engine", lambda: named(engine=Newer(DagOptions()))),
    (Cause.CONFIG, "options", lambda: named(engine=DagEngine(DagOptions(fresh_tail_turns=3)))),
    (Cause.MODEL, "a model", lambda: named(model="n")),
    (Cause.REWOUND, "rewound", lambda: named(view=replace(VIEW, rewind_mark=3))),
    (Cause.COMPACTED, "a native thread", lambda: named(state=SessionState(native_compactions=1))),
    (Cause.COMPACTED, "a summary less", lambda: named(view=replace(VIEW, summaries=[]))),
    (Cause.CUT, "a summary that is not shown", lambda: shown(*SEGMENTS[1:])),
    (Cause.BUDGET, "a budget", lambda: named(cell=6_000)),
    (Cause.MASKED, "a form", lambda: named(plan=Plan(SEGMENTS, forms="other"))),
    (Cause.LATE_RESULT, "a late result", lambda: named(view=late())),
    (Cause.CUT, "a step less before", lambda: shown(FIRST, SECOND, Keep(7, 9))),
    (Cause.CUT, "another step before", lambda: shown(FIRST, SECOND, Keep(4, 4), Keep(7, 9))),
    (Cause.CUT, "a longer range before", lambda: shown(FIRST, SECOND, Keep(4, 5), Keep(7, 9))),
    (Cause.CUT, "an earlier cut", lambda: shown(FIRST, SECOND, Keep(5, 9))),
    (Cause.CUT, "a later cut", lambda: shown(FIRST, SECOND, Keep(5, 5), Keep(8, 9))),
    (Cause.CUT, "no newest step", lambda: shown(FIRST, SECOND, Keep(5, 5), Keep(7, 8))),
    (Cause.CUT, "a list of the harness", lambda: named(mark="mark")),
]


def late() -> View:
    return replace(VIEW, fold=msgspec.structs.replace(VIEW.fold, late_mark=3))


@pytest.mark.parametrize(("why", "how", "other"), OTHERS, ids=[how for _, how, _ in OTHERS])
def test_what_decides_is_told_apart(why: Cause, how: str, other: Callable[[], str]) -> None:
    assert cause(named(), other()) is why


def test_what_is_appended_goes_on_with_it() -> None:
    longer = view_of(14)
    plan = Plan((*SEGMENTS[:3], Keep(7, 13)), forms="forms")
    longer.summaries = VIEW.summaries
    assert named(view=longer, plan=plan) == named()


def test_a_form_parts_no_range() -> None:
    """Forms have their own part of the epoch."""
    slot = Slot(9, Form.PLACEHOLDER, 1, b"", b"")
    parted = Keep(7, 7), Reshaped(8, 8, "x", {9: slot}), Keep(9, 9)
    assert shown(*SEGMENTS[:3], *parted) == named()
    before = Reshaped(5, 5, "x", {6: slot})
    assert shown(FIRST, SECOND, before, Keep(7, 9)) == named()


def test_after_a_list_that_ends_before_the_newest_step_another_range_begins() -> None:
    ends = shown(FIRST, SECOND, Keep(5, 8))
    longer = view_of(12)
    longer.summaries = VIEW.summaries
    again = named(view=longer, plan=Plan((FIRST, SECOND, Keep(5, 8)), forms="forms"))
    assert cause(ends, again) is Cause.CUT
    assert cause(ends, shown(FIRST, SECOND, Keep(5, 8), Keep(9, 9))) is Cause.CUT
