"""What was evicted stays evicted, whatever is summarized when, by whom and over which steps
(docs/semantics.md#what-stays-and-what-goes)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.context.budget import cell
from contextengine_server.context.plan import Plan, Summarized
from contextengine_server.engines.dag import DagEngine, DagOptions

from .engines import Told, outline, told
from .strategies import Event, messages_of

ROOMS = tuple(cell(budget) for budget in (1_800, 2_500, 3_200, 4_500, 8_000))
"""Budgets that are asked for side by side: each must hold by itself."""


@dataclass(frozen=True)
class Happening:
    """A few messages, then perhaps a summary: of the engine's, or of a host's over a range in
    tenths of what there is."""

    said: list[Event]
    made: Literal["", "engine", "host"]
    first: int
    last: int
    words: int


happenings = st.lists(
    st.builds(
        Happening,
        said=st.lists(
            st.builds(
                Event,
                kind=st.sampled_from(("assistant",) * 6 + ("user",)),
                choice=st.just(1),
                tokens=st.integers(1, 200),
                pinned=st.sampled_from((False,) * 30 + (True,)),
            ),
            min_size=1,
            max_size=14,
        ),
        made=st.sampled_from(("", "", "engine", "host", "host")),
        first=st.integers(0, 9),
        last=st.integers(1, 10),
        words=st.integers(1, 150),
    ),
    min_size=3,
    max_size=12,
)


def steps_shown(plan: Plan) -> set[int]:
    return {
        step
        for s in plan.segments
        if not isinstance(s, Summarized)
        for step in range(s.first, s.last + 1)
    }


def host(one: Told, made: Happening) -> None:
    """A host's summary over whole steps: summaries within it are below it now, and none is
    parted."""
    view = one.view
    first, last = view.steps * made.first // 10, view.steps * made.last // 10 - 1
    for summary in view.summaries:
        if summary.first_step < first <= summary.last_step:
            first = summary.last_step + 1
        if summary.first_step <= last < summary.last_step:
            last = summary.first_step - 1
    first = max(first, view.leading)
    below = [s for s in view.summaries if first <= s.first_step <= last]
    gain = sum(s.tokens for s in below) + sum(
        view.atom(step).tokens
        for step in range(first, last + 1)
        if view.covering(step) is None and step not in view.must_stay()
    )
    if first <= last and gain > made.words + 40:
        one.compact(first, last, f"[{made.words}] of the host", [s.id for s in below])


@given(happenings, st.sampled_from((1, 3)))
def test_no_summary_brings_back_what_was_evicted(happened: list[Happening], tail: int) -> None:
    """While no user's message takes more than the eighth of the cell that is kept free for the
    newest one, and the tail fits (law 6 brings a step of it back once it fits)."""
    engine = DagEngine(
        DagOptions(
            fresh_tail_turns=tail,
            leaf_chunk_tokens=1_000,
            leaf_target_tokens=120,
            condensed_min_fanout=2,
        )
    )
    one = told([])
    evicted: dict[int, set[int]] = {room: set() for room in ROOMS}
    rows = iter(messages_of([event for each in happened for event in each.said]))
    for each in happened:
        for _ in each.said:
            one.add([next(rows)])
            look(one, engine, evicted)
        if each.made == "engine":
            one.compaction(engine, ROOMS[1], force=True)
        elif each.made == "host":
            host(one, each)
        look(one, engine, evicted)


def look(one: Told, engine: DagEngine, evicted: dict[int, set[int]]) -> None:
    """Asks at every budget that still promises something."""
    for room in list(evicted):
        plan = engine.plan(one.view, room)
        if plan.rule == "law budget" or one.view.user_peak > room // 8:
            del evicted[room]
            continue
        shown = steps_shown(plan)
        back = (evicted[room] & shown) - set(one.view.must_stay())
        assert not back, (room, back, outline(plan))
        evicted[room] |= set(range(one.view.steps)) - shown
