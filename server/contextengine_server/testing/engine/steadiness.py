"""What was sent stays sent: equal epochs begin alike, what was evicted stays evicted, and an engine
remembers nothing that the view does not say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.context.budget import ReferenceTokens, cell
from contextengine_server.context.laws.prefix import is_prefix
from contextengine_server.context.plan import Plan, Summarized
from contextengine_server.context.settled import SCRAP
from contextengine_server.context.view import View
from contextengine_server.engines.contract import Engine
from contextengine_server.session.assembly.epoch import epoch_of
from contextengine_server.session.state import SessionState
from contextengine_server.testing.oracle.pairs import ViewRow

from .case import EngineCase
from .random_sessions import RandomEvent, RandomSession, messages_of, sessions
from .random_trials import Happening, compacted, happenings, summarize_as_host, talk
from .trial import SHARES, Trial, outline, trial_of
from .views import entries_of, folded, sent_slots

ROOMS = tuple(cell(budget) for budget in (1_800, 2_500, 3_200, 4_500, 8_000))
"""Budgets that are asked for side by side: each must hold by itself."""

short_or_long = st.one_of(sessions().map(lambda session: session.rows), talk.map(messages_of))

_STATE = SessionState()


def epoch(view: View, plan: Plan, engine: Engine, room: int) -> str:
    """The epoch of a plan, as the service works it out."""
    return epoch_of(_STATE, view, plan, engine, "", room, "")


def steps_shown(plan: Plan) -> set[int]:
    """The steps whose messages a plan shows."""
    return {
        step
        for segment in plan.segments
        if not isinstance(segment, Summarized)
        for step in range(segment.first, segment.last + 1)
    }


class Beginnings:
    """The lists of each epoch, as they grow."""

    def __init__(self) -> None:
        self._seen: dict[str, list[bytes]] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def look(self, one: Trial, engine: Engine, room: ReferenceTokens) -> None:
        """Fails where the list of an epoch does not begin as it did."""
        plan = engine.plan(one.view, room)
        hashes = [slot.hash for slot in sent_slots(plan, one.view)]
        name = epoch(one.view, plan, engine, room)
        before = self._seen.get(name, [])
        assert is_prefix(before, hashes), (
            f"the epoch is the same, the beginning is not: {outline(plan)} in {room} tokens"
        )
        self._seen[name] = hashes


def scraps(view: View) -> set[int | str]:
    """Steps of so few tokens that no summary is made of them."""
    return {atom.step for atom in view.atoms if atom.tokens <= SCRAP}


class Evictions:
    """What is evicted at each of some budgets, as a session goes on.

    Nothing that was evicted may come back while the tail fits, of which law 6 brings a step back
    once it fits: no step but a scrap, of which no summary is made, and no summary.
    """

    def __init__(self, rooms: Sequence[ReferenceTokens]) -> None:
        self._evicted: dict[ReferenceTokens, set[int | str]] = {room: set() for room in rooms}

    def look(self, one: Trial, engine: Engine) -> None:
        """Fails where something comes back."""
        view = one.view
        for room, evicted in list(self._evicted.items()):
            plan = engine.plan(view, room)
            shown = steps_shown(plan)
            tail = range(max(view.tail_from(engine.declared.tail_steps), view.raw_from), view.steps)
            if plan.over or not shown.issuperset(tail):
                del self._evicted[room]
                continue
            summaries = {s.summary.id for s in plan.segments if isinstance(s, Summarized)}
            back = (evicted & (shown | summaries)) - set(view.must_stay()) - scraps(view)
            assert not back, f"{sorted(map(str, back))} come back: {outline(plan)} in {room} tokens"
            evicted |= set(range(view.steps)) - shown
            evicted |= {summary.id for summary in view.summaries} - summaries


class SteadinessCases(EngineCase):
    """Law 10, and what makes it worth having."""

    def test_equal_epochs_begin_alike(self) -> None:
        """The earlier list begins the later one."""

        @self.search
        @given(sessions(), self.any_engine(), st.sampled_from(SHARES))
        def holds(session: RandomSession, engine: Engine, share: int) -> None:
            total = trial_of(session.rows).view.total
            one, seen = trial_of([]), Beginnings()
            for row in session.rows:
                one.add([row])
                seen.look(one, engine, cell(max(1, total * share // 100)))

        holds()

    def test_equal_epochs_begin_alike_over_a_compacted_view(self) -> None:
        """Also where summaries stand before."""

        @self.search
        @given(compacted(), sessions(max_events=20), self.any_engine(), st.sampled_from(SHARES))
        def holds(one: Trial, more: RandomSession, engine: Engine, share: int) -> None:
            room, seen = cell(max(1, one.view.total * share // 100)), Beginnings()
            for number, row in enumerate(more.rows):
                one.add([ViewRow(20_000 + number, row.message, 40_000 + number)])
                seen.look(one, engine, room)

        holds()

    def test_what_was_evicted_stays_evicted(self) -> None:
        """As a session goes on."""

        @self.search
        @given(talk, self.any_engine())
        def holds(played: list[RandomEvent], engine: Engine) -> None:
            one, evictions = trial_of([]), Evictions(ROOMS)
            for row in messages_of(played):
                one.add([row])
                evictions.look(one, engine)

        holds()

    def test_no_summary_brings_back_what_was_evicted(self) -> None:
        """Whoever makes it, when, and over which steps."""

        @self.search
        @given(happenings, self.any_engine())
        def holds(happened: list[Happening], engine: Engine) -> None:
            one, evictions = trial_of([]), Evictions(ROOMS)
            rows = iter(messages_of([event for each in happened for event in each.said]))
            for each in happened:
                for _ in each.said:
                    one.add([next(rows)])
                    evictions.look(one, engine)
                if each.made == "engine":
                    one.compaction(engine, ROOMS[1], force=True)
                elif each.made == "host":
                    summarize_as_host(one, each)
                evictions.look(one, engine)

        holds()

    def test_equal_views_give_equal_plans(self) -> None:
        """However they came to be, whatever was asked before, and whichever instance is asked."""

        @self.search
        @given(sessions(), sessions(max_events=20), st.integers(1, 7), st.sampled_from(SHARES))
        def holds(session: RandomSession, other: RandomSession, batch: int, share: int) -> None:
            entries = entries_of(session.rows)
            for engine, again in zip(self.engines(), self.engines(), strict=True):
                whole = folded(entries)
                room = cell(max(1, whole.total * share // 100))
                wanted = outline(engine.plan(whole, room))
                engine.plan(folded(entries_of(other.rows)), room)
                for asked in (engine, again):
                    assert outline(asked.plan(folded(entries, batch=batch), room)) == wanted

        holds()

    def test_what_reaches_back_far_enough_is_enough(self) -> None:
        """A session that is read again is read as far back as `reach` says, and no further."""

        @self.search
        @given(short_or_long, self.any_engine(), st.sampled_from(SHARES))
        def holds(rows: list[ViewRow], engine: Engine, share: int) -> None:
            view = trial_of(rows).view
            room = cell(max(1, view.total * share // 100))
            reach = engine.reach(room)
            if reach is None:
                return  # all of it is read
            part = _window(view, reach)
            assert outline(engine.plan(part, room)) == outline(engine.plan(view, room))

        holds()


def _window(view: View, reach: int) -> View:
    """The view as it is read again: the newest steps that have so many tokens, and before them what
    every assembly needs."""
    base = 0
    while base + 1 < view.steps and view.total - view.atom(base + 1).start >= reach:
        base += 1
    return replace(
        view,
        atoms=view.atoms[base:],
        base=base,
        anchors={step: view.atom(step) for step in view.must_stay() if step < base},
        large=[step for step in view.large if step >= base],
        answers=[step for step in view.answers if step >= base],
    )
