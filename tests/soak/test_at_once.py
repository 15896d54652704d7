"""Several who write to one session at once, while it is compacted, undone, forked, forgotten and
given other engines: what was acknowledged is there once, each writer's in its order, whatever is
answered is lawful, and memory shows in nothing."""

from __future__ import annotations

import asyncio
import random

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from tests.integration.assemble.asking import (
    ask,
    assign,
    calls,
    hashes,
    quiet,
    reply_with,
    result,
    say,
    session,
    settled,
    shared,
)
from tests.integration.assemble.judging import Judge
from tests.integration.compact.test_any_order import ENGINES, broken
from tests.integration.harness import House, budget, ref

__all__ = ["session", "shared"]

pytestmark = pytest.mark.asyncio(loop_scope="module")
SIZES = (600, 2_500, 7_000, 50_000)


class Writer:
    """One of those who write."""

    def __init__(self, house: House, session: t.SessionRef, label: str, seed: int) -> None:
        self.house, self.session, self.label = house, session, label
        self.random = random.Random(f"{seed}{label}")
        self.serial = 0
        self.said: list[t.Message] = []
        self.replies: list[t.AssembleResponse] = []

    def name(self) -> str:
        self.serial += 1
        return f"{self.label}{self.serial}"

    def some(self) -> list[t.Message]:
        words = self.random.choice((3, 60, 200))
        if self.random.random() < 0.4:
            call = f"{self.label}-{self.serial}"
            return [calls(self.name(), call), result(self.name(), call, words)]
        return [say(self.name(), words), reply_with(self.name(), words)]

    async def step(self) -> None:
        client, size = self.house.client, budget(self.random.choice(SIZES))
        names = ["batch", "one", "turn", "ingest", "ingest", "ask", "ask"]
        names += ["compact", "undo", "fork", "forget", "engine", "model", "end"]
        match self.random.choice(names):
            case "batch":
                some = self.some()
                await client.ingest_batch(self.session, some)
                if self.random.random() < 0.3:
                    await client.ingest_batch(self.session, some)
                self.said += some
            case "one":
                message = say(self.name(), 30)
                await client.ingest(self.session, message)
                self.said.append(message)
            case "turn":
                some = self.some()
                await client.after_turn(self.session, some, budget=size)
                self.said += some
            case "ingest":
                some = self.some()
                self.replies.append(await ask(self.house, self.session, ingest=some, budget=size))
                self.said += some
            case "ask":
                self.replies.append(await ask(self.house, self.session, budget=size))
            case "compact":
                await client.compact(self.session, force=True, budget=size)
            case "undo":
                generation = (await client.get_status(self.session)).generation
                to = max(0, generation - self.random.randint(0, 2))
                try:
                    await client.compact(self.session, undo_to_generation=to)
                except ContextEngineError as error:
                    if not error.violations:  # others took it back meanwhile
                        raise
            case "fork":
                child = ref(f"{self.session.session_id}-{self.name()}")
                try:
                    await client.prepare_subagent_spawn(
                        self.session, child, context_mode=t.CONTEXT_MODE_FORK
                    )
                except ContextEngineError as error:
                    if error.reason != "SPAWN_LIMIT":
                        raise
            case "forget":
                self.house.forget()
            case "engine":
                name = self.random.choice(sorted(ENGINES))
                await assign(self.house, self.session, name, **ENGINES[name])
            case "model":
                model = self.random.choice(("gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro"))
                await client.update_model(self.session, model=model)
            case "end":
                await client.end_session(self.session)


@pytest.mark.parametrize("seed", range(60))
async def test_nothing_is_lost_between_them(
    shared: House, session: t.SessionRef, seed: int
) -> None:
    await shared.client.ingest(session, say("first"))
    if seed % 2:
        await quiet(shared, session)
    writers = [Writer(shared, session, label, seed) for label in "abcd"]

    async def all_of(writer: Writer) -> None:
        for _ in range(15):
            await writer.step()

    await asyncio.gather(*map(all_of, writers))
    rows = await shared.rows(session)
    assert [row.sequence for row in rows] == list(range(1, len(rows) + 1))
    ids = [row.message.id for row in rows]
    assert len(ids) == len(set(ids)) == 1 + sum(len(one.said) for one in writers)
    for writer in writers:
        mine = [one for one in ids if one.startswith(writer.label)]
        assert mine == [one.id for one in writer.said]
    if not seed % 2:
        async with asyncio.timeout(30):
            await settled(shared, session)
        await quiet(shared, session)
    for size in SIZES:
        warm = await ask(shared, session, budget=budget(size))
        assert await broken(shared, session, warm) == []
        shared.forget()
        assert hashes(await ask(shared, session, budget=budget(size))) == hashes(warm)
    for reply in (reply for writer in writers for reply in writer.replies[::5]):
        judge = Judge.of(await shared.export(session, as_of_revision=reply.revision))
        found = [one for one in judge.verdict(reply) if one[0] not in (1, 2)]
        assert found == []
