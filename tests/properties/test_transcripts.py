"""The real transcripts: both engines at thirty budgets, at the end and on the way there, with and
without compactions."""

from __future__ import annotations

from itertools import pairwise

import pytest

from contextengine_server.context.budget import cell
from contextengine_server.context.laws.prefix import is_prefix
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.engines.legacy import LegacyEngine, LegacyOptions
from tests.oracle.assembly import shows
from tests.oracle.pairing import Row

from .build import empty, items, sent_slots
from .engines import FLOOR, SHARES, Told, budgets, hold, some, told
from .test_prefix import beginning, steps_shown
from .transcripts import REAL_SHAPER, airline, coding

DAG, LEGACY = DagEngine(DagOptions()), LegacyEngine(LegacyOptions())
AIRLINE = list(airline())
CODING = coding()
SESSIONS = [*AIRLINE, CODING]


def going_on(rows: list[Row], step: int = 10) -> Told:
    """An empty session, to which `rows` come."""
    return Told(empty(), [], REAL_SHAPER)


def test_a_real_session_looks_as_its_whole_list_must() -> None:
    for rows in SESSIONS:
        one = told(rows, REAL_SHAPER)
        groups = one.listing().groups
        by_sequence = {row.sequence: row for row in rows}
        assert len(groups) == one.view.steps
        for atom, group in zip(one.view.atoms, groups, strict=True):
            shown = items(atom.slots)
            assert len(shown) == len(group.shown)
            assert all(
                shows(wanted, item, by_sequence)
                for item, wanted in zip(shown, group.shown, strict=True)
            )


def test_the_three_abandoned_messages_of_the_coding_session_get_their_results() -> None:
    view = told(CODING, REAL_SHAPER).view
    made_up = [sum(slot.synthetic for slot in atom.slots) for atom in view.atoms]
    assert sorted(number for number in made_up if number) == [1, 1, 16]
    assert sum(len(atom.entries) for atom in view.atoms) == 914


def test_call_ids_that_an_airline_session_uses_again_answer_their_own_call() -> None:
    reused = 0
    for rows in AIRLINE:
        view = told(rows, REAL_SHAPER).view
        ids = [call.id for atom in view.atoms for call in atom.calls]
        reused += len(ids) - len(set(ids))
        for atom in view.atoms:
            assert not any(slot.synthetic for slot in atom.slots)
            assert len(atom.entries) == 1 + len(atom.calls)
    assert reused > 0


@pytest.mark.parametrize("engine", [DAG, LEGACY], ids=lambda engine: engine.id)
def test_at_its_end_a_session_is_lawful_at_thirty_budgets(engine: DagEngine | LegacyEngine) -> None:
    for rows in SESSIONS:
        one = told(rows, REAL_SHAPER)
        listed = one.listing()
        for budget in budgets(one.view.total, SHARES):
            plan = hold(one, engine, budget, view_of=listed)
            everything = plan.cut == 0 and not plan.over
            assert everything == (one.view.total <= cell(budget))


@pytest.mark.parametrize("engine", [DAG, LEGACY], ids=lambda engine: engine.id)
def test_on_its_way_a_session_is_lawful_at_some_budgets(engine: DagEngine | LegacyEngine) -> None:
    for number, rows in enumerate(SESSIONS):
        one = going_on(rows)
        total = told(rows, REAL_SHAPER).view.total
        for at in range(0, len(rows), 10):
            one.add(rows[at : at + 10])
            listed = one.listing()
            for budget in budgets(total, some(SHARES, 3, seed=1_000 * number + at)):
                hold(one, engine, budget, view_of=listed)


def compacting(rows: list[Row], budget: int) -> Told:
    """The session, compacted on its way as soon as it is due."""
    one = going_on(rows)
    for at in range(0, len(rows), 10):
        one.add(rows[at : at + 10])
        while DAG.due(one.view, budget, None) and one.compaction(DAG, budget):
            pass
        hold(one, DAG, budget)
    return one


@pytest.mark.parametrize("budget", [8_000, 16_000, 50_000])
def test_compacted_on_its_way_the_coding_session_stays_lawful_and_below_its_threshold(
    budget: int,
) -> None:
    one = compacting(CODING, budget)
    assert one.view.summaries
    for before, behind in pairwise(one.view.summaries):
        assert before.last_step < behind.first_step
    tail = one.view.span(one.view.tail_from(8), one.view.steps - 1)
    shown = sum(s.tokens for s in one.view.summaries)
    # What no summary covers and lies outside the tail is less than what a summary costs, at each
    # place.
    assert one.view.view_tokens() <= max(
        budget * DAG.threshold, tail + shown + FLOOR * (len(one.view.summaries) + 1)
    )
    listed = one.listing()
    for engine in (DAG, LEGACY):
        for share in budgets(one.view.view_tokens(), SHARES):
            hold(one, engine, share, view_of=listed)


@pytest.mark.parametrize("engine", [DAG, LEGACY], ids=lambda engine: engine.id)
def test_over_budget_then_compacted_then_it_fits(engine: DagEngine | LegacyEngine) -> None:
    """Unless what no law lets go exceeds the budget together (docs/semantics.md#outcomes)."""
    for rows in (*AIRLINE[::6], CODING):
        total = told(rows, REAL_SHAPER).view.total
        for budget in budgets(total, SHARES[::3]):
            one = told(rows, REAL_SHAPER)
            room = cell(budget)
            if not engine.plan(one.view, room).over:
                continue
            while one.compaction(engine, room, force=True) and engine.plan(one.view, room).over:
                pass
            plan = hold(one, engine, budget)
            stays = {*one.view.must_stay(), one.view.steps - 1}
            least = sum(one.view.atom(step).tokens for step in stays)
            assert not plan.over or least + FLOOR > room, (least, room, budget)


@pytest.mark.parametrize("budget", [10_000, 25_000, 50_000])
def test_of_the_coding_session_equal_epochs_begin_alike_and_nothing_evicted_returns(
    budget: int,
) -> None:
    one, room = going_on(CODING), cell(budget)
    seen: dict[tuple[object, ...], list[bytes]] = {}
    evicted: set[int] = set()
    for row in CODING:
        one.add([row])
        plan = DAG.plan(one.view, room)
        hashes = [slot.hash for slot in sent_slots(plan, one.view)]
        epoch = beginning(one.view, plan, room)
        assert is_prefix(seen.get(epoch, []), hashes)
        seen[epoch] = hashes
        shown = steps_shown(plan)
        assert not (evicted & shown) - set(one.view.must_stay())
        evicted |= set(range(one.view.steps)) - shown
    assert evicted
    # The cut moves in blocks: far fewer beginnings than calls.
    assert len(seen) < len(CODING) / 4
