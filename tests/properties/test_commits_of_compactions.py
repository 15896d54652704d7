"""A compaction commits over whatever became of its session while its summary was written.

Once in 26,000 calls of an attack the commit ended in an IndexError of `View.atom`: it looked for a
step that law 4 keeps and that the view, as it was by then, did not have. So here a session is
written to, taken back, compacted by its host and let go of while summaries are written; and at each
commit every step that the view is to show is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextengine_server.compaction import compactor
from contextengine_server.compaction.compactor import Compactor
from contextengine_server.context.eviction import CommitSnapshot
from contextengine_server.context.lawful import snapshot_of
from contextengine_server.context.view import View
from contextengine_server.summarize.request import SummaryResult
from tests.properties.lives import ENGINES, Event, Happening, Player, Said, lives, said
from tests.properties.test_warm_and_cold import OPTIONS
from tests.unit.commands.house import Rows, Server

MEANWHILE = ("rewind", "host", "reset", "ask", "model", "forget")
"""What may happen while a compaction waits for its summary, besides what is said: all that waits
for no compaction."""

_happens = st.builds(Happening, st.sampled_from(MEANWHILE), st.integers(0, 7), st.integers(0, 7))
meanwhiles = st.lists(
    st.one_of(said, _happens),
    min_size=10,
    max_size=40,
)


def whole(view: View) -> None:
    """Every step that the view says of itself is one of its steps, and those that are always shown
    are in memory."""
    named = [*view.must_stay(), *view.pinned, *range(view.leading), view.user_step]
    named += [summary.last_step for summary in view.summaries]
    assert max(named) < view.steps
    assert all(map(view.holds, view.must_stay()))


class Interrupted:
    """Plays something to a session whenever a summary of it is written."""

    def __init__(self, server: Server, life: list[Event], meanwhile: list[Event]) -> None:
        self._player, self.meanwhile = Player(server), list(meanwhile)
        self._server, self._life = server, life
        self.commits = 0

    async def _interrupt(self) -> None:
        """At most five events at a time; numbers that no other event has."""
        for _ in range(min(5, len(self.meanwhile))):
            event = self.meanwhile.pop()
            if isinstance(event, Happening) and event.what == "forget":
                self._player.forget()
                continue
            await self._player.heard(1_000 + len(self.meanwhile), event)

    async def play(self) -> None:
        written, counted = Compactor.summary_for, snapshot_of

        async def summary_for(one: Compactor, *args: Any, **more: Any) -> SummaryResult:
            await self._interrupt()
            return await written(one, *args, **more)

        def snapshot(view: View, saved: Mapping[int, int]) -> CommitSnapshot:
            whole(view)
            self.commits += 1
            return counted(view, saved)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Compactor, "summary_for", summary_for)
            patch.setattr(compactor, "snapshot_of", snapshot)
            player = self._player
            for number, event in enumerate(self._life):
                await player.heard(number, event)
                for session in self._server.core.cache.all():
                    whole(session.view)
            warm = await player.ask(3, 0)
            player.forget()
            assert await player.ask(3, 0) == warm


def interrupted(engine: str, life: list[Event], meanwhile: list[Event]) -> Interrupted:
    """What became of it."""

    async def play() -> Interrupted:
        server = Server(Rows(), **{"engine.default": engine, **OPTIONS})
        await server.open()
        try:
            one = Interrupted(server, life, meanwhile)
            await one.play()
            return one
        finally:
            await server.close()

    return asyncio.run(play())


@pytest.mark.parametrize("engine", sorted(ENGINES))
@settings(max_examples=25)
@given(life=lives, meanwhile=meanwhiles)
def test_a_commit_finds_every_step_that_it_looks_for(
    engine: str, life: list[Event], meanwhile: list[Event]
) -> None:
    interrupted(engine, life, meanwhile)


TALK: list[Event] = [Said(role, (("text", 0, 200),)) for _ in range(10) for role in (1, 2)]
BACK = [Happening("rewind", 7)] * 3


@pytest.mark.parametrize("engine", ["dag", "layered"])
@pytest.mark.parametrize(
    "meanwhile",
    [
        [Said(1, (("text", 0, 6),))],
        BACK,
        [Said(1, (("text", 0, 6),)), *BACK],
        [Happening("forget"), *BACK],
        [Happening("reset")],
        [Said(1, (("text", 0, 6),)), Happening("reset")],
        [Happening("host", 0, 7)],
    ],
)
def test_a_commit_over_what_was_taken_back_meanwhile(engine: str, meanwhile: list[Event]) -> None:
    one = interrupted(engine, [*TALK, Happening("compact", 1, 1), *TALK[:2]], meanwhile)
    assert not one.meanwhile, "all of it happened"
    assert one.commits > 0 or Happening("reset") in meanwhile
