"""What was evicted stays evicted (docs/semantics.md#what-stays-and-what-goes),
over a running service: in memory and read again from the store."""

from __future__ import annotations

import random

import pytest

from contextengine import types as t
from contextengine.errors import InvalidField
from tests.integration.assemble.asking import ask, assign, hashes, quiet, reply_with, say, store
from tests.integration.harness import House, budget

pytestmark = pytest.mark.asyncio(loop_scope="module")
OPTIONS = {
    "freshTailTurns": 2,
    "leafChunkTokens": 1_000,
    "leafTargetTokens": 120,
    "condensedMinFanout": 20,
}


async def summarize(house: House, session: t.SessionRef, first: int, last: int) -> None:
    """A harness's own compaction."""
    await house.client.record_host_change(
        session,
        change_id=f"{first}-{last}",
        compacted=t.RecordHostChangeRequest.HostCompaction(
            first_sequence=first, last_sequence=last, summary=f"messages {first} to {last}"
        ),
    )


def shown(reply: t.AssembleResponse) -> set[int]:
    """The messages shown, by sequence."""
    return {
        item.origin.sequence for item in reply.items if item.origin.WhichOneof("kind") == "sequence"
    }


async def test_a_scrap_between_two_summaries_does_not_come_back(
    shared: House, session: t.SessionRef
) -> None:
    """Messages 21 and 22 are covered by neither summary and were evicted before the second made
    room."""
    await assign(shared, session, "dag", **OPTIONS)
    turns = [m for n in range(30) for m in (say(f"u{n}", 50), reply_with(f"a{n}", 50))]
    await store(shared, session, turns[:40])
    await summarize(shared, session, 1, 20)
    await store(shared, session, turns[40:])
    before = shown(await ask(shared, session, budget=budget(2_500)))
    assert not before & {21, 22}
    await summarize(shared, session, 23, 56)
    after = await ask(shared, session, budget=budget(2_500), explain=True)
    assert shown(after) == {57, 58, 59, 60}
    rules = {d.sequence: d.kind for d in after.decisions}
    assert rules[21] == rules[22] == t.Decision.Kind.KIND_EVICTED
    # A budget at which they were shown all along shows them still.
    roomy = await ask(shared, session, budget=budget(20_000))
    assert shown(roomy) == {21, 22, 57, 58, 59, 60}
    shared.forget()
    assert hashes(await ask(shared, session, budget=budget(2_500))) == hashes(after)
    shared.forget()
    assert hashes(await ask(shared, session, budget=budget(20_001))) == hashes(roomy)


@pytest.mark.parametrize("seed", range(2))
async def test_whatever_is_summarized(shared: House, session: t.SessionRef, seed: int) -> None:
    """Hosts' summaries over any range, the engine's own, and messages, at three budgets; while no
    user's message takes more than an eighth of one."""
    await assign(shared, session, "dag", **OPTIONS)
    chance = random.Random(seed)
    sizes = (2_500, 4_000, 9_000)
    evicted: dict[int, set[int]] = {size: set() for size in sizes}
    rows = 0
    for _ in range(30):
        said = [
            chance.choice((say, reply_with))(f"m{rows + n}", chance.choice((5, 30, 60)))
            for n in range(chance.randint(1, 12))
        ]
        rows += len(said)
        await store(shared, session, said)
        for happened in range(2):
            if happened and chance.random() < 0.3 and rows > 12:
                first = chance.randint(1, rows - 10)
                try:
                    await summarize(shared, session, first, chance.randint(first + 4, rows))
                except InvalidField:
                    continue  # no whole step lies in that range
            elif happened and chance.random() < 0.3:
                await shared.client.compact(session, force=True, budget=budget(2_500))
            await quiet(shared, session)
            for size in sizes:
                if chance.random() < 0.3:
                    shared.forget()
                reply = await ask(shared, session, budget=budget(size), explain=True)
                now = {
                    d.sequence for d in reply.decisions if d.kind == t.Decision.Kind.KIND_EVICTED
                }
                newest_user = max(
                    (d.sequence for d in reply.decisions if "newest user" in d.rule), default=0
                )
                assert not (evicted[size] & shown(reply)) - {newest_user}, (size, seed)
                evicted[size] |= now
