"""Random lives of a session of Hermes, whose service is away now and then: in the end the session
is what was said, and each list that Hermes is given can be sent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import pytest

from contextengine import Client, Message
from contextengine import types as t
from contextengine.messages import text_of
from contextengine_hermes.block import part
from contextengine_hermes.service import Service
from contextengine_hermes.tasks import without_tasks
from tests.hosts.hermes_life import Life, Moody, standing_in
from tests.hosts.hermes_list import SCREENSHOT, Row, text
from tests.integration.harness import House, budget, house, ref

with standing_in():
    from contextengine_hermes import engine, plugin

ROLES = {t.ROLE_USER: "user", t.ROLE_ASSISTANT: "assistant", t.ROLE_TOOL: "tool"}
Told = tuple[str, str, list[str], str]
"""A message: who said it, its words, the calls in it, and the call that it answers."""


def told_of(row: Row) -> Told:
    sent, content = row.get("api_content"), text(row["content"])
    if sent and not sent.startswith(content):
        content = sent
    words = without_tasks(part(content).words).replace(SCREENSHOT, "").strip()
    calls = [call["id"] for call in row.get("tool_calls") or []]
    return row["role"], words, calls, row.get("tool_call_id", "")


def stored_of(message: Message) -> Told:
    calls = [one.tool_call.call_id for one in message.parts if one.HasField("tool_call")]
    answers = [one.tool_result.call_id for one in message.parts if one.HasField("tool_result")]
    words = text_of(message).replace(SCREENSHOT, "").strip()
    return ROLES.get(message.role, "other"), words, calls, "".join(answers)


def joined(told: Sequence[Told]) -> list[Told]:
    """With what a user said without an answer as one message: Hermes joins it before a request."""
    made: list[Told] = []
    for role, some in groupby(told, lambda one: one[0]):
        if role == "user":
            made.append(("user", "\n\n".join(one[1] for one in some), [], ""))
        else:
            made += some
    return made


async def lived(home: House, random: Random, patched: pytest.MonkeyPatch) -> Life:
    """A life, to its end."""
    loop = asyncio.get_running_loop()

    async def forgets() -> None:
        home.forget()

    def lives(client: Client) -> Life:
        service = Service(Moody(client, random), "hermes")  # type: ignore[arg-type]
        patched.setattr(plugin, "service", lambda: service)
        life = Life(service, lambda: engine.ContextengineEngine(lambda: service), plugin, random)
        for module in (engine, plugin):
            patched.setattr(module, "reviews", lambda: life.reviewing)
        for _ in range(random.randint(5, 25)):
            if random.random() < 0.15:
                life.moody.away = random.choice([0.0, 0.1, 1.0])
            happens: list[tuple[float, Any]] = [
                (0.7, life.turn),
                (0.05, lambda: life.undo(random.randint(1, 2))),
                (0.05, life.retry),
                (0.06, life.restart),
                (0.07, lambda: life.compress(random.choice([None, "w1"]), force=True)),
                (0.03, life.compress_here),
                (0.04, lambda: asyncio.run_coroutine_threadsafe(forgets(), loop).result()),
            ]
            random.choices([one for _, one in happens], [often for often, _ in happens])[0]()
        life.moody.away = 0.0
        life.turn("the last words")
        life.end()
        return life

    with Client(home.app.address, retry_for=0) as client:
        return await asyncio.to_thread(lives, client)


@pytest.mark.parametrize("first", range(0, 12, 3))
async def test_the_session_is_what_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    async with house(tmp_path) as home:
        for seed in range(first, first + 3):
            life = await lived(home, Random(seed), monkeypatch)
            here = ref(life.session, agent="hermes")
            rows = [row for row in await home.rows(here) if not row.retired_revision]
            stored = joined([stored_of(row.message) for row in rows])
            said = joined([told_of(row) for _, row in sorted(life.said.items())])
            assert stored == said, seed
            shown = await home.client.assemble(here, budget=budget(1_000_000), explain=True)
            assert not shown.metrics.synthetic_results, seed
