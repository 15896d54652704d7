"""Every engine's plan, at every budget, over every view, breaks no law: by its segments, and by the
list as it is sent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.context.atom import Atom
from contextengine_server.context.budget import cell
from contextengine_server.engines.contract import Engine

from .build import sent_slots
from .engines import ENGINES, SHARES, Told, budgets, hold, told
from .strategies import Session, sessions

engines = st.sampled_from(ENGINES)
shares = st.lists(st.sampled_from(SHARES), min_size=1, max_size=6)


@given(sessions(), engines, shares)
def test_no_plan_breaks_a_law(session: Session, engine: Engine, chosen: list[int]) -> None:
    one = told(session.rows)
    listed = one.listing()
    for budget in budgets(one.view.total, chosen):
        hold(one, engine, budget, view_of=listed)


@given(sessions(), engines, shares, st.integers(0, 3_000))
def test_no_plan_breaks_a_law_beside_a_prompt(
    session: Session, engine: Engine, chosen: list[int], prompt: int
) -> None:
    one = told(session.rows)
    listed = one.listing()
    for budget in budgets(one.view.total, chosen):
        hold(one, engine, budget, min(prompt, cell(budget)), view_of=listed)


def unfinished(atom: Atom) -> bool:
    """True while messages may still join it: nothing may cover it then."""
    return not atom.closed and (atom.pending or atom.growing)


@st.composite
def compacted(draw: st.DrawFn) -> Told:
    """A session that was summarized here and there, over pinned messages and the newest user's too,
    and went on."""
    one = told(draw(sessions(max_events=30)).rows)
    step = one.view.leading
    for _ in range(draw(st.integers(1, 3))):
        first = step + draw(st.integers(0, 4))
        last = first + draw(st.integers(0, 8))
        if last >= one.view.steps or unfinished(one.view.atoms[last]):
            break
        one.compact(first, last, f"[{draw(st.sampled_from((5, 300, 1_500)))}] what was said")
        step = last + 1
    later = draw(sessions(max_events=20)).rows
    one.add([type(row)(row.sequence + 10_000, row.message, row.created + 20_000) for row in later])
    return one


@given(compacted(), engines, shares, st.sampled_from((0, 0, 700)))
def test_no_plan_over_a_compacted_view_breaks_a_law(
    one: Told, engine: Engine, chosen: list[int], prompt: int
) -> None:
    listed = one.listing()
    for budget in budgets(one.view.total, chosen):
        hold(one, engine, budget, min(prompt, cell(budget)), view_of=listed)


@given(compacted())
def test_view_tokens_are_what_showing_everything_costs(one: Told) -> None:
    plan = ENGINES[0].plan(one.view, 1 << 40)
    assert one.view.view_tokens() == sum(slot.tokens for slot in sent_slots(plan, one.view))
