"""The suite of engines finds what is wrong: each defect fails the test that is there for it."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import Sequence
from dataclasses import replace as with_
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from msgspec.structs import replace

from contextengine_server.context.eviction import EvictionHistory
from contextengine_server.context.message import Form
from contextengine_server.context.plan import Keep, Plan, Reshaped, Segment, Summarized
from contextengine_server.context.view import Summary, View
from contextengine_server.engines import dag, legacy
from contextengine_server.engines.contract import CompactionGoal, CompactionStep, NothingToDo
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.engines.legacy import LegacyEngine
from contextengine_server.engines.options import Options
from contextengine_server.engines.registration import Finding, Registration
from contextengine_server.engines.rewrite import ChatMessage, RewriteRequest
from contextengine_server.testing.engine import EngineSuite


class Forgetful(DagEngine):
    """Shows the newest step, whatever must stay."""

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        return Plan((Keep(view.steps - 1, view.steps - 1, "as I like it"),) if view.steps else ())


class Greedy(DagEngine):
    """Takes the room of the prompt as well."""

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        return super().plan(view, budget)


class Belated(DagEngine):
    """Shows summaries behind everything else."""

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        plan = super().plan(view, budget, reserved)
        return replace(
            plan, segments=tuple(sorted(plan.segments, key=lambda s: isinstance(s, Summarized)))
        )


class Shifting(DagEngine):
    """Shows its first message in another form at every step, and does not say so."""

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        plan = super().plan(view, budget, reserved)
        return replace(plan, segments=tuple(self._shifted(plan.segments, view)))

    def _shifted(self, segments: Sequence[Segment], view: View) -> list[Segment]:
        first = next((one for one in segments if isinstance(one, Keep)), None)
        if first is None or not view.atom(first.first).slots:
            return list(segments)
        slot = view.atom(first.first).slots[0]
        mark = view.steps.to_bytes(16, "big")
        other = replace(slot, form=Form.HEAD_TAIL, hash=mark)
        shown: list[Segment] = [
            Reshaped(first.first, first.first, "x", {slot.sequence: other}),
        ]
        if first.last > first.first:
            shown.append(Keep(first.first + 1, first.last, "x"))
        at = segments.index(first)
        return [*segments[:at], *shown, *segments[at + 1 :]]


class Wavering(DagEngine):
    """Shows its tail alone at every second step."""

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        return super().plan(view, budget // (1 + view.steps % 2), reserved)


class Unmindful(DagEngine):
    """Does not look at what was evicted when summaries were committed."""

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        return super().plan(with_(view, evictions=EvictionHistory()), budget, reserved)


class Counting(DagEngine):
    """Remembers how often it was asked."""

    asked = 0

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        self.asked += 1
        return replace(super().plan(view, budget, reserved), rule=f"asked {self.asked} times")


class Shortsighted(DagEngine):
    """Needs more than it says."""

    def reach(self, cell: int) -> int | None:
        return cell // 4


class Tireless(DagEngine):
    """Compacts the same steps again and again."""

    def compaction(self, view: View, goal: CompactionGoal) -> CompactionStep | NothingToDo:
        if view.steps < view.leading + 2:
            return NothingToDo("nothing to compact")
        return CompactionStep(view.leading, view.leading, 10_000)


class Rash(DagEngine):
    """Compacts what leads."""

    def compaction(self, view: View, goal: CompactionGoal) -> CompactionStep | NothingToDo:
        return CompactionStep(0, view.steps - 1, 100) if view.steps else NothingToDo("nothing")


class Stubborn(LegacyEngine):
    """Neither evicts nor compacts."""

    def compaction(self, view: View, goal: CompactionGoal) -> CompactionStep | NothingToDo:
        return NothingToDo("no")


class Dropping(LegacyEngine):
    """Leaves its summaries out, although it says that it never evicts."""

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        plan = super().plan(view, budget, reserved)
        kept = tuple(one for one in plan.segments if not isinstance(one, Summarized))
        return replace(plan, segments=kept)


class Anonymous(DagEngine):
    id = "another"


class Uniform(DagEngine):
    """One fingerprint for all options."""

    def __init__(self, options: DagOptions) -> None:
        super().__init__(options)
        self.fingerprint = "same"


class Boundless(DagEngine):
    def __init__(self, options: DagOptions) -> None:
        super().__init__(options)
        self.threshold = 1.5


class Talkative(DagEngine):
    """Says more of fewer summaries."""

    def addition(self, summaries: Sequence[Summary]) -> str:
        return "x" * (10 - len(summaries))


class Mute(Options):
    number: int = 3


class Deaf(DagEngine):
    """Says that it has other options than it was made with."""

    def __init__(self, options: DagOptions) -> None:
        super().__init__(options)
        self.options = DagOptions(leaf_target_tokens=99)


_numbers = itertools.count()


class Changing(DagEngine):
    """Another version every time."""

    def __init__(self, options: DagOptions) -> None:
        super().__init__(options)
        self.version = f"1.{next(_numbers)}"


class Fickle(DagEngine):
    """Shows more or less, by how often it was asked."""

    asked = 0

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        self.asked += 1
        return super().plan(view, budget // (1 + self.asked % 7), reserved)


class Wide(DagEngine):
    """Wants to compact beyond the window."""

    def limit(self, view: View, available: int) -> int:
        return 10 * available


class Idle(LegacyEngine):
    """Leaves compaction to its host, and does not say so to the runtime."""

    def compaction(self, view: View, goal: CompactionGoal) -> CompactionStep | NothingToDo:
        return NothingToDo("not my affair")


class Careless(DagEngine):
    """Rewrites lists by dropping every other message."""

    def __init__(self, options: DagOptions) -> None:
        super().__init__(options)
        self.rewriter = self

    async def rewrite(self, request: RewriteRequest) -> list[ChatMessage] | None:
        return [m for m in request.messages if m["role"] != "tool"]


class Failing(DagEngine):
    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        raise ZeroDivisionError


class Clinging(DagEngine):
    async def dispose(self) -> None:
        raise RuntimeError("no")


def made(engine: type[Any]) -> Registration:
    """The registration of the dag, or of legacy, with another engine."""
    return replace(legacy.ENGINE if issubclass(engine, LegacyEngine) else dag.ENGINE, make=engine)


WITHOUT_SHRINKING = settings(EngineSuite.search, phases=[Phase.generate])
"""That there is an example is enough; the smallest one is looked for at length."""

MUTE = Registration("mute", Mute, dag.ENGINE.make)
MEDDLING = replace(dag.ENGINE, findings=lambda options, beside: [Finding("server.address", "x")])


@pytest.mark.parametrize(
    ("registration", "test"),
    [
        (made(Anonymous), "test_it_can_be_registered"),
        (MUTE, "test_its_options_can_be_read_and_are_described"),
        (made(Uniform), "test_its_fingerprint_names_its_options"),
        (made(Boundless), "test_what_it_says_of_itself_can_be"),
        (made(Talkative), "test_fewer_summaries_need_no_more_words"),
        (MEDDLING, "test_its_checks_name_settings_and_say_what_to_do"),
        (made(Forgetful), "test_no_plan_breaks_a_law"),
        (made(Greedy), "test_no_plan_beside_a_prompt_breaks_a_law"),
        (made(Belated), "test_no_plan_over_a_compacted_view_breaks_a_law"),
        (made(Shifting), "test_equal_epochs_begin_alike"),
        (made(Shifting), "test_equal_epochs_begin_alike_over_a_compacted_view"),
        (made(Wavering), "test_what_was_evicted_stays_evicted"),
        (made(Unmindful), "test_no_summary_brings_back_what_was_evicted"),
        (made(Counting), "test_equal_views_give_equal_plans"),
        (made(Shortsighted), "test_what_reaches_back_far_enough_is_enough"),
        (made(Tireless), "test_compactions_shrink_the_view_and_come_to_an_end"),
        (made(Rash), "test_a_compaction_covers_whole_steps_that_are_done"),
        (made(Forgetful), "test_real_sessions_are_lawful_at_their_end"),
        (made(Forgetful), "test_real_sessions_are_lawful_on_their_way"),
        (made(Shifting), "test_equal_epochs_of_real_sessions_begin_alike"),
        (made(Stubborn), "test_what_is_over_budget_fits_once_it_is_compacted"),
        (
            made(Dropping),
            "test_what_is_over_budget_fits_once_it_is_compacted_by_force",
        ),
        (made(Idle), "test_one_that_does_not_own_compaction_delegates_it"),
        (made(Fickle), "test_what_is_sent_twice_is_done_once"),
        (made(Wide), "test_the_facts_that_hosts_read_follow_the_session"),
        (made(Careless), "test_lists_that_it_rewrites_are_messages_that_a_provider_takes"),
        (made(Deaf), "test_it_is_listed_chosen_and_configured"),
        (made(Changing), "test_status_says_what_it_says_of_itself"),
        (made(Forgetful), "test_a_session_lives_with_it"),
        (made(Changing), "test_a_restart_changes_nothing"),
        (made(Failing), "test_its_failures_are_its_own"),
        (made(Clinging), "test_it_is_disposed_of_once"),
        (made(Forgetful), "test_sessions_change_to_it_and_back"),
        (made(Forgetful), "test_every_projection_of_what_it_shows_is_valid"),
    ],
)
def test_a_defect_fails_the_test_that_is_there_for_it(
    registration: Registration, test: str, tmp_path: Path
) -> None:
    few = {"fresh_tail_turns": 3, "leaf_chunk_tokens": 1_000, "leaf_target_tokens": 120}
    variants = ({}, few) if registration.options is DagOptions else ({},)
    told = {"registration": registration, "variants": variants, "search": WITHOUT_SHRINKING}
    suite = type("Suite", (EngineSuite,), told)()
    with pytest.raises(Exception) as caught:
        run(getattr(suite, test), tmp_path)
    assert not isinstance(caught.value, (TypeError, AttributeError)), caught.value


def run(test: Any, directory: Path) -> None:
    """One test of a suite, as pytest would."""
    if inspect.iscoroutinefunction(test):
        asyncio.run(test(directory))
    else:
        test()


def test_every_test_of_the_suite_has_a_defect_that_fails_it() -> None:
    mark = test_a_defect_fails_the_test_that_is_there_for_it.pytestmark[0]  # type: ignore[attr-defined]
    found = {test for _, test in mark.args[1]}
    assert found == {name for name in dir(EngineSuite) if name.startswith("test_")}
