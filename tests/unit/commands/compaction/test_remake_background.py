"""Summaries made again in the background. See docs/semantics.md#made-again."""

from __future__ import annotations

from contextengine_server.compaction.jobs import MAX_REMAKES, Background
from contextengine_server.compaction.queue import REMAKE
from contextengine_server.compaction.request import DEFERRED
from tests.unit.commands.compaction.test_remake import REFUSED, degraded, live
from tests.unit.commands.house import (
    Server,
    scope,
)

# In the background.


def background(server: Server) -> Background:
    core = server.core
    return Background(
        core.sessions,
        server.store,
        core.selection,
        core.compactor,
        core.queue,
        core.events,
        core.rules.budgets,
        "server",
    )


async def work(server: Server, ahead_ms: int = 0) -> bool:
    """One job in the background, so much later; False where none is due."""
    server.clock.ms += ahead_ms
    debt = await server.store.claim_debt("server", server.clock(), 60_000)
    if debt is None:
        return False
    await background(server)._job(debt)
    return True


async def test_it_is_made_again_in_the_background_once_somebody_is_back(server: Server) -> None:
    server.summarizer.name = "models"
    await degraded(server)
    (debt,) = await server.store.debts(scope())
    assert debt.kind == REMAKE
    assert not await work(server)
    server.summarizer.says = REFUSED
    assert await work(server, 60_000)
    assert all(row.fallback for row in await live(server))
    assert not await work(server, 59_000)
    server.summarizer.says = ""
    assert await work(server, 60_000)
    assert [row.remakes for row in await live(server) if not row.fallback]
    assert await server.store.debts(scope()) == []
    (event,) = server.events("context:summary_remade")[:1]
    assert event.attributes["written_before_by"] == "count-only"


async def test_extraction_alone_is_not_waited_for(server: Server) -> None:
    """It says the same again."""
    await degraded(server)
    assert await server.store.debts(scope()) == []


async def test_it_is_not_tried_for_ever(server: Server) -> None:
    server.summarizer.name = "models"
    await degraded(server)
    server.summarizer.says = REFUSED
    tries = 0
    while await server.store.debts(scope()):
        tries += await work(server, 3_600_000)
    assert tries == MAX_REMAKES


async def test_a_call_that_does_not_wait(server: Server) -> None:
    await degraded(server)
    await server.compact(redo=True, no_wait=True)
    assert await work(server)
    assert any(row.remakes for row in await live(server))


async def test_who_cannot_wait_has_them_made_again_in_the_background(server: Server) -> None:
    await degraded(server)
    done = await server.compact(redo=True, no_wait=True)
    assert (done.done.compacted, done.done.reason) == (False, DEFERRED)
    assert done.elsewhere
    kinds = {debt.kind for debt in await server.store.debts(scope())}
    assert any("remake" in kind for kind in kinds), kinds
