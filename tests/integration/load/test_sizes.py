"""What the cache counts for a warm session is what it takes, within three tenths: a server may be
trusted with `sessions.cache_bytes`."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc

import pytest

from contextengine import types as t
from tests.integration.harness import PATIENCE_S, House, budget, ref

from .test_loop_holds import said, written

NEAR = 0.3
SETTLED_S = 0.3
"""What is done behind an answer is done by then."""


def lengthy(number: int) -> t.Message:
    """10 KB of text."""
    text = f"page {number} of the report, which goes on. " * 250
    return t.Message(id=f"m{number}", role=t.ROLE_USER, parts=[t.Part(text=t.TextPart(text=text))])


async def talked(house: House, session: t.SessionRef, count: int, *budgets: int) -> None:
    await written(house, session, count)
    for tokens in budgets:
        await house.client.assemble(session, budget=budget(tokens), timeout=PATIENCE_S)


async def small(house: House, session: t.SessionRef) -> None:
    await talked(house, session, 1, 20_000)


async def usual(house: House, session: t.SessionRef) -> None:
    await talked(house, session, 20, 20_000)


async def unread(house: House, session: t.SessionRef) -> None:
    await talked(house, session, 800)


async def large(house: House, session: t.SessionRef) -> None:
    """For two models, or budgets, that take turns."""
    await talked(house, session, 800, 100_000, 200_000)


async def summarized(house: House, session: t.SessionRef) -> None:
    await written(house, session, 800)
    await house.client.compact(session, budget=budget(6_000), force=True, timeout=PATIENCE_S)
    await house.client.assemble(session, budget=budget(6_000), timeout=PATIENCE_S)


async def long_texts(house: House, session: t.SessionRef) -> None:
    messages = [lengthy(at) for at in range(20)]
    await house.client.ingest_batch(session, messages, timeout=PATIENCE_S)
    await house.client.assemble(session, budget=budget(200_000), timeout=PATIENCE_S)


async def late_results(house: House, session: t.SessionRef) -> None:
    """Each result comes when something else was said already."""
    messages = [said(at) for at in range(400)]
    late = [messages[first + at] for first in range(0, 400, 4) for at in (0, 1, 3, 2)]
    await house.client.ingest_batch(session, late, timeout=PATIENCE_S)


SESSIONS = [
    (small, 300),
    (usual, 60),
    (unread, 4),
    (large, 4),
    (summarized, 4),
    (long_texts, 8),
    (late_results, 6),
]


@pytest.mark.parametrize(("play", "count"), SESSIONS)
async def test_the_size_that_is_counted_is_what_a_session_takes(
    house: House, play: object, count: int
) -> None:
    assert callable(play)
    await play(house, ref("first"))  # what is made once is there
    house.forget()
    warm = house.app.core.cache
    tracemalloc.start()
    try:
        for number in range(count):
            await play(house, ref(f"s{number}"))
        held, counted = await settled(), warm.bytes
        house.forget()
        taken = held - await settled()
    finally:
        tracemalloc.stop()
    assert warm.bytes == 0
    assert counted == pytest.approx(taken, rel=NEAR), f"{counted / taken:.2f} of what it takes"


async def settled() -> int:
    """Bytes that are held once nothing more is done."""
    await asyncio.sleep(SETTLED_S)
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
