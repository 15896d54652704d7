"""The real transcripts, and what the shipped engines make of them besides what every engine
promises."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from contextengine_server.context.budget import cell
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.engines.legacy import LegacyEngine, LegacyOptions
from contextengine_server.testing.engine.real_sessions import REAL_SHAPER, real_sessions
from contextengine_server.testing.engine.trial import (
    FLOOR,
    SHARES,
    Trial,
    budgets,
    hold,
    trial_of,
)
from contextengine_server.testing.engine.views import empty, items
from contextengine_server.testing.oracle.assembly import shows
from contextengine_server.testing.oracle.pairs import ViewRow

DAG, LEGACY = DagEngine(DagOptions()), LegacyEngine(LegacyOptions())
DATA = Path(__file__).parent.parent / "data"
AIRLINE = list(real_sessions(DATA / "airline_transcripts.jsonl"))
[CODING] = real_sessions(DATA / "coding_session.pi.jsonl")
SESSIONS = [*AIRLINE, CODING]


def going_on(rows: list[ViewRow], step: int = 10) -> Trial:
    """An empty session, to which `rows` come."""
    return Trial(empty(), [], REAL_SHAPER)


def test_a_real_session_looks_as_its_whole_list_must() -> None:
    for rows in SESSIONS:
        one = trial_of(rows, REAL_SHAPER)
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
    view = trial_of(CODING, REAL_SHAPER).view
    made_up = [sum(slot.synthetic for slot in atom.slots) for atom in view.atoms]
    assert sorted(number for number in made_up if number) == [1, 1, 16]
    assert sum(len(atom.entries) for atom in view.atoms) == 914


def test_call_ids_that_an_airline_session_uses_again_answer_their_own_call() -> None:
    reused = 0
    for rows in AIRLINE:
        view = trial_of(rows, REAL_SHAPER).view
        ids = [call.id for atom in view.atoms for call in atom.calls]
        reused += len(ids) - len(set(ids))
        for atom in view.atoms:
            assert not any(slot.synthetic for slot in atom.slots)
            assert len(atom.entries) == 1 + len(atom.calls)
    assert reused > 0


@pytest.mark.parametrize("engine", [DAG, LEGACY], ids=lambda engine: engine.id)
def test_a_session_is_shown_whole_where_it_fits(engine: DagEngine | LegacyEngine) -> None:
    for rows in SESSIONS:
        view = trial_of(rows, REAL_SHAPER).view
        for budget in budgets(view.total, SHARES):
            plan = engine.plan(view, cell(budget))
            everything = plan.cut == 0 and not plan.over
            assert everything == (view.total <= cell(budget))


def compacting(rows: list[ViewRow], budget: int) -> Trial:
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
