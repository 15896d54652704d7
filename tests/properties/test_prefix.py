"""Law 10 and what makes it worth having: equal epochs mean equal beginnings, and what was evicted
stays evicted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.context.budget import cell
from contextengine_server.context.fold import apply, extend
from contextengine_server.context.laws.prefix import chained, is_prefix
from contextengine_server.context.plan import Keep, Plan, Summarized
from contextengine_server.context.view import View
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.dag import DagEngine, DagOptions

from .build import SHAPER, empty, entries_of, sent_slots
from .engines import ENGINES, SHARES, Told, told
from .strategies import Event, Session, messages_of, sessions
from .test_plans import compacted

engines = st.sampled_from(ENGINES)
shares = st.sampled_from(SHARES)


def beginning(view: View, plan: Plan, room: int) -> tuple[object, ...]:
    """All that decides how an assembly begins: every segment but the end of the last."""
    named = [
        s.summary.id if isinstance(s, Summarized) else (s.first, s.last) for s in plan.segments[:-1]
    ]
    last = plan.segments[-1] if plan.segments else None
    begins = (
        last.first
        if isinstance(last, Keep)
        else (last.summary.id if isinstance(last, Summarized) else None)
    )
    return room, view.late_mark, tuple(named), begins


def steps_shown(plan: Plan) -> set[int]:
    return {
        step
        for s in plan.segments
        if not isinstance(s, Summarized)
        for step in range(s.first, s.last + 1)
    }


@given(sessions(), engines, shares)
def test_equal_epochs_mean_that_the_earlier_list_begins_the_later(
    session: Session, engine: Engine, share: int
) -> None:
    entries = entries_of(session.rows)
    room = cell(max(1, sum(entry.tokens for entry in entries) * share // 100))
    view = empty()
    seen: dict[tuple[object, ...], list[bytes]] = {}
    for entry in entries:
        apply(view, extend(view, [entry], SHAPER))
        plan = engine.plan(view, room)
        hashes = [slot.hash for slot in sent_slots(plan, view)]
        epoch = beginning(view, plan, room)
        assert is_prefix(seen.get(epoch, []), hashes)
        assert chained(hashes)[: len(seen.get(epoch, [])) + 1] == chained(seen.get(epoch, []))
        seen[epoch] = hashes


@given(compacted(), sessions(max_events=20), engines, shares)
def test_so_they_do_over_a_compacted_view(
    one: Told, more: Session, engine: Engine, share: int
) -> None:
    room = cell(max(1, one.view.total * share // 100))
    seen: dict[tuple[object, ...], list[bytes]] = {}
    for number, row in enumerate(more.rows):
        one.add([type(row)(20_000 + number, row.message, 40_000 + number)])
        plan = engine.plan(one.view, room)
        hashes = [slot.hash for slot in sent_slots(plan, one.view)]
        epoch = beginning(one.view, plan, room)
        assert is_prefix(seen.get(epoch, []), hashes)
        seen[epoch] = hashes


talk = st.lists(
    st.builds(
        Event,
        kind=st.sampled_from(("assistant",) * 12 + ("user",)),
        choice=st.just(1),
        tokens=st.integers(1, 300),
        pinned=st.sampled_from((False,) * 30 + (True,)),
    ),
    min_size=30,
    max_size=90,
)


@given(talk, engines, st.sampled_from((2_600, 3_200, 4_500, 8_000)))
def test_what_was_evicted_stays_evicted(played: list[Event], engine: Engine, budget: int) -> None:
    """While no user's message takes more than the eighth of the cell that is kept free for the
    newest one, no result comes late (it may take less room than the one that was made up), and the
    tail fits (law 6 brings a step of it back once it fits)."""
    view, room = empty(), cell(budget)
    evicted: set[int] = set()
    for entry in entries_of(messages_of(played)):
        apply(view, extend(view, [entry], SHAPER))
        assert view.user_peak <= room // 8
        plan = engine.plan(view, room)
        if plan.rule == "law budget":
            return
        shown = steps_shown(plan)
        assert not (evicted & shown) - set(view.must_stay())
        evicted |= set(range(view.steps)) - shown


@given(
    talk, st.sampled_from((1, 3)), st.sampled_from((2_600, 3_200, 4_500, 8_000)), st.integers(1, 12)
)
def test_no_compaction_brings_back_what_was_evicted(
    played: list[Event], tail: int, budget: int, every: int
) -> None:
    """While the tail fits; compactions come late, as in the background, so that there is eviction
    before."""
    engine = DagEngine(
        DagOptions(fresh_tail_turns=tail, leaf_chunk_tokens=1_000, leaf_target_tokens=200)
    )
    one, room = told([]), cell(budget)
    evicted: set[int] = set()
    for number, row in enumerate(messages_of(played)):
        one.add([row])
        if number % every == 0 and engine.due(one.view, room, None):
            one.compaction(engine, room)
        plan = engine.plan(one.view, room)
        if plan.rule == "law budget":
            return
        shown = steps_shown(plan)
        assert not (evicted & shown) - set(one.view.must_stay())
        evicted |= set(range(one.view.steps)) - shown


def test_a_hash_chain_names_every_beginning() -> None:
    hashes = [bytes([n]) * 16 for n in range(5)]
    links = chained(hashes)
    assert len(set(links)) == 6
    assert chained(hashes[:3]) == links[:4]
    assert chained([*hashes[:2], hashes[3]])[3] not in links
    assert is_prefix([], hashes)
    assert is_prefix(hashes[:2], hashes)
    assert not is_prefix(hashes, hashes[:2])
    assert not is_prefix(hashes[1:2], hashes)
