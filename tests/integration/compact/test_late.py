"""Late results in a long session: what an assembly or a compaction reads is in proportion to what
it needs, wherever they lie."""

from __future__ import annotations

import pytest

from contextengine import types as t
from contextengine_server.compaction import request
from tests.integration.assemble.asking import (
    ask,
    assign,
    calls,
    hashes,
    quiet,
    result,
    say,
    store,
    talk,
)
from tests.integration.harness import House, budget

from .test_evicted import summarize
from .test_whole_history import Reads

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROWS, PART = 1_200, 100


async def given_up(house: House, session: t.SessionRef, *, together: bool) -> None:
    """Two calls at the beginning of a long session, given up, and answered at its end: each by
    itself, or in one message. What they stand in is covered by no summary and was never evicted;
    what follows was summarized as it came."""
    await assign(house, session, "dag", freshTailTurns=2, leafChunkTokens=1_000)
    await store(
        house, session, [say("u0"), calls("a0", "c0"), say("u1"), calls("a1", "c1"), say("u2")]
    )
    for first in range(6, ROWS, PART):
        await store(house, session, talk(PART // 2, 20, prefix=f"{first}-"))
        await summarize(house, session, first, first + PART - 1)
    late = [result("r0", "c0", 5), result("r1", "c1", 5)]
    if together:
        late = [t.Message(id="r", role=late[0].role, parts=[*late[0].parts, *late[1].parts])]
    await store(house, session, [*late, *talk(50, 20, prefix="n")])
    await quiet(house, session)


async def cold(house: House, session: t.SessionRef, size: int) -> tuple[int, list[str]]:
    """How many messages are read for an assembly, which shows the same as in memory; and the ids
    that it shows."""
    warm = await ask(house, session, budget=budget(size))
    house.forget()
    reads = Reads(house)
    reply = await ask(house, session, budget=budget(size))
    assert hashes(reply) == hashes(warm)
    return reads.rows, [item.message.id for item in reply.items]


async def test_results_that_came_each_by_itself(shared: House, session: t.SessionRef) -> None:
    await given_up(shared, session, together=False)
    rows, ids = await cold(shared, session, 12_000)
    assert ids[:7] == ["u0", "a0", "r0", "u1", "a1", "r1", "u2"]
    assert rows < ROWS // 2
    rows, ids = await cold(shared, session, 2_000)
    assert "r0" not in ids
    assert rows < ROWS // 2


async def test_results_for_several_steps_in_one_message(
    shared: House, session: t.SessionRef
) -> None:
    """Its row tells one place: those steps cannot be read by themselves, so the session is read
    whole where a budget may reach to them, and as long as the message itself is in the window."""
    await given_up(shared, session, together=True)
    rows, ids = await cold(shared, session, 12_000)
    assert ids[:7] == ["u0", "a0", "r", "u1", "a1", "r", "u2"]
    assert rows >= ROWS
    rows, ids = await cold(shared, session, 300)
    assert "r" not in ids
    assert rows < ROWS // 2


async def test_what_a_compaction_reads(
    shared: House, session: t.SessionRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request, "MOST_HELD", 0)  # of what is longer than that
    await given_up(shared, session, together=False)
    shared.forget()
    reads = Reads(shared)
    done = await shared.client.compact(session, force=True, budget=budget(8_000))
    assert done.summaries
    assert reads.rows < ROWS
