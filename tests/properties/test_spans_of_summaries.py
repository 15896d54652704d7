"""Where summaries stand: what memory and rows say of it is what the messages say that they cover,
whatever came late, was taken back or was undone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextengine_server.context.view import Summary
from contextengine_server.session.load import load
from contextengine_server.session.session import Session
from contextengine_server.session.state import SessionState
from tests.properties.lives import ENGINES, Event, Happening, Player, Said
from tests.properties.test_rewinds import lives, rewinding
from tests.properties.test_warm_and_cold import OPTIONS, forgotten
from tests.unit.commands.house import Rows, Server

Spans = dict[str, tuple[int, int]]


def spans_of(summaries: Sequence[Summary]) -> Spans:
    return {one.id: (one.span_start, one.span_end) for one in summaries}


class Judge(Player):
    """Looks at each session after each event."""

    async def _event(self, number: int, event: Event) -> object:
        heard = await super()._event(number, event)
        for session in self.server.core.cache.all():
            await self.judge(session)
        return heard

    async def judge(self, session: Session) -> None:
        """Holds a session in memory, and its rows, to its messages folded anew."""
        store = self.server.store
        head = await store.head(session.scope)
        if head is None or session.revision != head.revision:
            return
        shaper, state = session.encoding.shaper, SessionState.decode(head.state)
        view, live = await load(store, head, state, shaper, None)
        for one in live:
            place = view.atoms[one.first_step].start, view.atoms[one.last_step].end
            assert (one.span_start, one.span_end) == place
        expected = spans_of(live)
        assert view.total == session.view.total == head.message_tokens
        assert spans_of(session.live_summaries) == expected
        assert spans_of(session.view.summaries) == spans_of(view.summaries)
        reaches = sorted((one.last, one.end, one.created) for one in view.covered)
        assert sorted((o.last, o.end, o.created) for o in session.view.covered) == reaches
        if not head.parent_session:
            rows = await store.summaries(session.scope)
            assert {row.id: (row.span_start, row.span_end) for row in rows} == expected


async def judged(engine: str, life: Sequence[Event], forgets: frozenset[int]) -> None:
    """Plays a life to a server that is looked at."""
    settings: dict[str, Any] = {"engine.default": engine, **OPTIONS}
    server = Server(Rows(), **settings)
    await server.open()
    try:
        await Judge(server, forgets).play(life)
    finally:
        await server.close()


def stands(
    engine: str, life: Sequence[Event], forgets: frozenset[int] = frozenset(), every: int = 2
) -> None:
    """Plays a life with rewinds from checkpoints and without."""
    for allowed in (True, False):
        with rewinding(allowed=allowed, every=every):
            asyncio.run(judged(engine, life, forgets))


@pytest.mark.parametrize("engine", sorted(ENGINES))
@settings(max_examples=60)
@given(life=lives, forgets=st.one_of(st.just(frozenset[int]()), forgotten))
def test_summaries_stand_where_what_they_cover_stands(
    engine: str, life: list[Event], forgets: frozenset[int]
) -> None:
    stands(engine, life, forgets)


USER, REPLY, CALL = Said(1, (("text", 0, 200),)), Said(2, (("text", 0, 200),)), ("call", 0, 20)
FOUND: dict[str, tuple[str, list[Event]]] = {
    "what came late before a summary is taken back": (
        "legacy",
        [
            Said(1, (("text", 0, 20),)),
            Said(5, (("signed", 0, 60), ("text", 2, 60), ("call", 1, 20))),
            Said(5, (("call", 1, 200),)),
            Said(5, (CALL,)),
            Said(5, (("result", 1, 20), ("text", 2, 20)), "excluded"),
            Said(1, (("text", 0, 60),)),
            Said(1, (("text", 0, 60),)),
            Said(4, (("call", 2, 20), ("thought", 2, 20), ("thought", 1, 6))),
            Said(1, (("text", 2, 60),)),
            Said(4, (("text", 1, 6), ("result", 2, 60), ("result", 1, 6))),
            Happening("compact", 2, 2),
            Happening("rewind", 7),
        ],
    ),
    "what stands between summaries is answered late": (
        "compressor",
        [
            Said(2, (("call", 1, 6), ("call", 1, 60))),
            Said(3, (("call", 0, 20),), "excluded"),
            Said(3, (("result", 1, 6_000),)),
            Said(2, (("call", 1, 20), ("call", 2, 6))),
            Said(3, (("result", 0, 60), ("result", 1, 60), ("thought", 2, 6)), "pinned"),
            Happening("compact", 5, 6),
            Said(2, (("thought", 2, 60),)),
            USER,
            USER,
            Happening("rewind", 6),
        ],
    ),
    "one message stands in two places that move apart": (
        "layered",
        [
            Said(2, (("text", 2, 6), ("call", 0, 60)), "pinned"),
            REPLY,
            Said(2, (("text", 2, 200), ("call", 0, 60))),
            Said(4, (("text", 2, 60),)),
            Said(2, (("call", 2, 200), ("call", 1, 20)), "pinned"),
            Said(3, (("result", 0, 200), ("result", 2, 6))),
            Said(1, (("thought", 0, 60), ("result", 0, 6))),
            Happening("compact", 3),
            Said(3, (("result", 1, 200),)),
            Happening("rewind", 1),
        ],
    ),
}
"""Lives after which a summary once stood elsewhere than what it covers."""


@pytest.mark.parametrize("found", FOUND)
def test_lives_after_which_one_stood_elsewhere(found: str) -> None:
    engine, life = FOUND[found]
    for forgets in (frozenset[int](), frozenset(range(len(life)))):
        stands(engine, life, forgets)
