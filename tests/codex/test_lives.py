"""The real Codex behind the proxy, in lives made up from seeds: turns that are steered,
interrupted, taken back, refused; threads that are forked, compacted, resumed; a service that is
away for a while. What the provider is asked can be answered, and in the end the session is Codex'
own list."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from contextengine import name_by_content
from contextengine.formats import from_responses
from contextengine_proxy.application import Proxy, Settings
from contextengine_proxy.windows import Windows
from tests.codex.app_server import Json
from tests.codex.life import Asked, Life
from tests.hosts.gate import Gate, Way, gate
from tests.hosts.stage import soon
from tests.hosts.upstream import Upstream, serving
from tests.integration.harness import House, house, ref

FIRST, _, LAST = os.environ.get("CONTEXTENGINE_LIVES", "0-1").partition("-")
LIVES = range(int(FIRST), int(LAST or FIRST) + 1)
"""Which are played."""
ROOMY, NARROW = 1_000_000, 20_000
"""Windows, in tokens: Codex' own instructions and tools take some 12,000."""
pytestmark = pytest.mark.timeout(180)


@asynccontextmanager
async def behind_the_proxy(
    home: House, path: Path, window: int, random: Random
) -> AsyncIterator[tuple[Life, Asked, Gate]]:
    """A life, what it asks the proxy, and the proxy's way to the service."""

    def answer(number: int, given: Json) -> object:
        return life.answer(number, given)

    upstream = Upstream(answer)  # type: ignore[arg-type]
    async with gate(home.app.address) as way, serving(upstream.application) as there:
        settings = Settings(
            address=way.address,
            openai=there,
            windows=Windows((("*", window),)),
            patience=0.5,
            state=path / "state",
        )
        asked = Asked(Proxy(settings).application)
        async with serving(asked) as base:
            life = Life(path / "codex", base, random)
            life.upstream = upstream
            yield life, asked, way


def without_answer(rows: Sequence[Json]) -> set[str]:
    """The calls of a list that nothing answers, and the answers to no call before them."""
    called: set[str] = set()
    wrong: set[str] = set()
    for row in rows:
        if row.get("type") == "function_call":
            called.add(row["call_id"])
        elif row.get("type") == "function_call_output":
            wrong ^= {row["call_id"]} - called
            called.discard(row["call_id"])
    return wrong | called


def newest_of(rows: Sequence[Json]) -> Json | None:
    """The newest message of the user's."""
    return next((row for row in reversed(rows) if row.get("role") == "user"), None)


def said_in(rows: Sequence[Json]) -> list[str]:
    """The names of the messages of a list, without what leads it."""
    leads = next((at for at, row in enumerate(rows) if row.get("role") != "developer"), 0)
    return name_by_content(from_responses(rows[leads:]))


@pytest.mark.parametrize("window", [ROOMY, NARROW])
@pytest.mark.parametrize("seed", LIVES)
async def test_what_codex_says_is_asked_and_kept(tmp_path: Path, window: int, seed: int) -> None:
    random = Random(f"{window} {seed}")
    async with (
        house(tmp_path) as home,
        behind_the_proxy(home, tmp_path, window, random) as (life, asked, way),
    ):
        await life.begin()
        for _ in range(random.randint(5, 12)):
            if random.random() < 0.2:
                way.turn(random.choice((Way.CLOSED, Way.HUNG, Way.OPEN)))
            await life.happens()
        way.turn(Way.OPEN)
        await life.turn()
        await life.end()

        sent = [one.json["input"] for one in life.upstream.seen if one.body]
        assert len(sent) == len(asked.lists)
        for own, rows in zip(asked.lists, sent, strict=True):
            assert not without_answer(rows)
            assert newest_of(own) in rows
            assert window < ROOMY or rows == own
        last = said_in(asked.lists[-1])

        async def kept() -> bool:
            listed = await home.client.sessions.list(agent_id="proxy")
            for one in listed.sessions:
                rows = await home.rows(ref(one.session_id, agent="proxy"))
                ids = [row.message.id for row in rows if not row.retired_revision]
                if ids[: len(last)] == last:
                    return len(ids) <= len(last) + 1
            return False

        await soon(kept)
