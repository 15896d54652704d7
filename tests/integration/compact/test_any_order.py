"""Compactions, folds, undos, hosts' summaries, late results, rewinds and appends in any order:
every assembly is lawful, what memory shows is what the store shows, and no message is lost."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from contextengine import types as t
from contextengine_server.api.pipeline.contract import rpcs
from contextengine_server.testing.oracle.pairs import CoveredRange, listing
from tests.integration.assemble.asking import (
    ask,
    assign,
    calls,
    hashes,
    quiet,
    reply_with,
    result,
    say,
    store,
)
from tests.integration.assemble.judging import Judge
from tests.integration.harness import House, budget

pytestmark = pytest.mark.asyncio(loop_scope="module")
ENGINES: dict[str, dict[str, Any]] = {
    "dag": {
        "leafChunkTokens": 1_000,
        "leafTargetTokens": 150,
        "condensedMinFanout": 2,
        "condensedTargetTokens": 256,
    },
    "compressor": {"thresholdTokens": 1_500, "protectLastN": 0},
    "layered": {"compaction": {"maxTokens": 2_000}},
}


class Player:
    """Plays a session at random, and knows what was stored."""

    def __init__(self, house: House, session: t.SessionRef, seed: int) -> None:
        self.house, self.session, self.random = house, session, random.Random(seed)
        self.serial = 0
        self.open: list[str] = []
        self.rows = 0

    async def step(self) -> str:
        """One thing that happens."""
        names = (
            ["talk"] * 5
            + ["work"] * 3
            + ["late", "compact", "compact", "host", "undo", "rewind", "forget"]
        )
        name = self.random.choice(names)
        await getattr(self, name)()
        return name

    async def write(self, *messages: t.Message) -> None:
        await store(self.house, self.session, messages)
        self.rows += len(messages)

    def name(self) -> str:
        self.serial += 1
        return f"m{self.serial}"

    async def talk(self) -> None:
        for _ in range(self.random.randint(1, 6)):
            make = self.random.choice((say, reply_with))
            message = make(self.name(), self.random.choice((5, 60, 200)))
            if self.random.random() < 0.03:
                message.labels["pinned"] = "true"
            await self.write(message)

    async def work(self) -> None:
        ids = [f"c{self.serial}-{n}" for n in range(self.random.randint(1, 3))]
        await self.write(calls(self.name(), *ids))
        for each in ids:
            if self.random.random() < 0.75:
                await self.write(result(self.name(), each, self.random.choice((5, 120))))
            else:
                self.open.append(each)

    async def late(self) -> None:
        """Results for calls that were given up, at times for several steps in one message."""
        message = t.Message(id=self.name(), role=t.Role.ROLE_TOOL)
        for _ in range(self.random.choice((1, 1, 2))):
            if self.open:
                each = self.open.pop(self.random.randrange(len(self.open)))
                message.parts.extend(result("", each, self.random.choice((5, 120))).parts)
        if message.parts:
            await self.write(message)

    async def compact(self) -> None:
        size = budget(self.random.choice((600, 2_000, 6_000)))
        await self.house.client.compact(self.session, force=self.random.random() < 0.8, budget=size)

    async def undo(self) -> None:
        generation = (await self.house.client.get_status(self.session)).generation
        if generation:
            to = self.random.randint(max(0, generation - 3), generation)
            await self.house.client.compact(self.session, undo_to_generation=to)

    async def host(self) -> None:
        """A summary of the harness's own; it may hold no whole step, and then is refused."""
        if self.rows > 10:
            first = self.random.randint(1, self.rows - 5)
            change = t.RecordHostChangeRequest.HostCompaction(
                first_sequence=first,
                last_sequence=self.random.randint(first + 2, self.rows),
                summary=f"host {first}",
            )
            request = t.RecordHostChangeRequest(
                session=self.session, change_id=self.name(), compacted=change
            )
            answer = await self.house.raw(_RECORD, request.SerializeToString())
            assert answer.code in ("OK", "INVALID_ARGUMENT")

    async def rewind(self) -> None:
        if self.random.random() < 0.3 and self.rows > 20:
            after = self.rows - self.random.randint(1, 8)
            await self.house.client.record_host_change(
                self.session, rewind=t.RecordHostChangeRequest.Rewind(after_sequence=after)
            )

    async def forget(self) -> None:
        self.house.forget()


_RECORD = next(rpc for rpc in rpcs() if rpc.name == "RecordHostChange")


async def broken(
    house: House,
    session: t.SessionRef,
    reply: t.AssembleResponse,
    past: Sequence[CoveredRange] = (),
) -> list[tuple[int, str]]:
    """The laws that a reply breaks. A late result that came while a summary covered its call stays
    a note, also when that summary was taken back since. `past`: summaries of sessions that this one
    stands on, as they were when it began."""
    judge = Judge.of(await house.export(session, as_of_revision=reply.revision))
    judge.listing = listing(judge.rows, [*past, *await stretches(house, session)])
    return judge.verdict(reply)


async def stretches(house: House, session: t.SessionRef) -> list[CoveredRange]:
    """What the session's summaries cover and covered, from when until when."""
    ever = (await house.export(session, include_retired=True)).summaries
    return [
        CoveredRange(
            s.info.first_sequence,
            s.info.last_sequence,
            s.info.created_revision,
            s.info.retired_revision,
        )
        for s in ever
    ]


@pytest.mark.parametrize(
    ("engine", "seed"), [("dag", 1), ("dag", 3), ("compressor", 5), ("layered", 4)]
)
async def test_whatever_happens(
    shared: House, session: t.SessionRef, engine: str, seed: int
) -> None:
    await assign(shared, session, engine, **ENGINES[engine])
    player = Player(shared, session, seed)
    await player.talk()
    await quiet(shared, session)
    happened = []
    for _ in range(45):
        happened.append(await player.step())
        sizes = player.random.sample((300, 900, 2_500, 7_000, 50_000), 2)
        warm = [await ask(shared, session, budget=budget(size)) for size in sizes]
        for reply in warm:
            assert await broken(shared, session, reply) == [], happened
        shared.forget()
        cold = [await ask(shared, session, budget=budget(size)) for size in sizes]
        assert [hashes(reply) for reply in cold] == [hashes(reply) for reply in warm], happened
    rows = await shared.rows(session, include_retired=True)
    assert [row.sequence for row in rows] == list(range(1, player.rows + 1))
