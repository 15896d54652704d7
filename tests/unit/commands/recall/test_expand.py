"""Expand: summaries and messages are brought back, page by page."""

from __future__ import annotations

import pytest

from contextengine_server.commands.recall import expand as expand_module
from contextengine_server.commands.subagents.prepare_subagent_spawn import Grant
from contextengine_server.errors import (
    BudgetSpent,
    InvalidField,
    PermissionDenied,
    RowNotFound,
    SessionNotFound,
)
from contextengine_server.recall.archive import Archive
from contextengine_server.recall.expansion import Expansion, Wanted, expand
from contextengine_server.store.rows import SessionHead
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import S1, TENANT, Rows, Server, long
from tests.unit.commands.sessions.test_damage import DAMAGE, damage, label
from tests.unit.commands.subagents.test_prepare_subagent_spawn import CHILD, prepare


async def test_messages_come_back_within_the_page(serve: Serve) -> None:
    server = await serve(**{"engine.dag.maxExpandTokens": 600})
    await server.talk(1, 3)
    everything = Wanted(sequences=(1, 2, 3, 4, 5, 6), max_tokens=0)
    page = await server.recall.expand.run(TENANT, S1, everything, "")
    assert page.next_page
    assert 0 < page.tokens <= 600
    large = Wanted(sequences=(1, 2, 3, 4, 5, 6), max_tokens=10_000)
    assert not (await server.recall.expand.run(TENANT, S1, large, "")).next_page


async def test_a_grant_bounds_and_pays(server: Server) -> None:
    await server.talk(1, 3)
    token = (await prepare(server, fork=False, grant=Grant(tokens=700))).token
    wanted = Wanted(sequences=(1, 2, 3, 4), max_tokens=10_000)
    page = await server.recall.expand.run(TENANT, CHILD, wanted, token)
    assert 0 < page.tokens <= 700
    spawn = await server.store.spawns.find(TENANT, token)
    assert spawn is not None
    assert spawn.used_tokens == page.tokens
    await server.store.spawns.spend(TENANT, token, 700 - page.tokens)
    with pytest.raises(BudgetSpent):
        await server.recall.expand.run(TENANT, CHILD, wanted, token)


async def test_a_token_opens_what_it_was_made_for(server: Server) -> None:
    await server.ingest("a")
    await server.ingest("b", ref=type(S1)(S1.agent, "s2"))
    none = (await prepare(server, fork=False)).token
    wanted = Wanted(sequences=(1,))
    with pytest.raises(PermissionDenied):
        await server.recall.expand.run(TENANT, CHILD, wanted, none)
    with pytest.raises(InvalidField):
        await server.recall.expand.run(TENANT, type(S1)(S1.agent, "s2"), wanted, none)
    timed = Grant(tokens=100, expire_ms=server.clock.ms + 1_000)
    child = type(S1)(S1.agent, "timed")
    token = (await prepare(server, child, fork=False, grant=timed)).token
    await server.recall.expand.run(TENANT, child, wanted, token)
    server.clock.advance(1)
    with pytest.raises(PermissionDenied):
        await server.recall.expand.run(TENANT, child, wanted, token)


@pytest.mark.parametrize("how", DAMAGE)
async def test_a_piece_of_a_bad_row_is_a_piece_of_what_stands_for_it(rows: Rows, how: str) -> None:
    server = await Server(rows).open()
    await server.ingest("m1 " + long("w", 10_000))
    damage(rows, 1, how)
    wanted = Wanted(sequences=(1,), max_tokens=100)
    (brought,) = (await server.recall.expand.run(TENANT, S1, wanted, "")).items
    assert brought.piece is not None
    assert brought.piece.text == label(1)
    await server.close()


async def test_what_is_not_there(server: Server) -> None:
    with pytest.raises(SessionNotFound):
        await server.recall.expand.run(TENANT, S1, Wanted(sequences=(1,)), "")
    await server.ingest("a")
    with pytest.raises(RowNotFound):
        await server.recall.expand.run(TENANT, S1, Wanted(sequences=(1,)), "none")


async def test_a_grant_opens_so_many_levels_and_nothing_that_left_the_view(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Wanted] = []

    async def seen(archive: Archive, head: SessionHead, wanted: Wanted) -> Expansion:
        asked.append(wanted)
        return await expand(archive, head, wanted)

    monkeypatch.setattr(expand_module, "expand", seen)
    await server.talk(1, 3)
    token = (await prepare(server, fork=False, grant=Grant(tokens=900, depth=2))).token
    for depth, opened in ((5, 2), (1, 1)):
        wanted = Wanted(sequences=(1,), max_tokens=50, depth=depth, retired=True)
        await server.recall.expand.run(TENANT, CHILD, wanted, token)
        assert (asked[-1].depth, asked[-1].retired, asked[-1].max_tokens) == (opened, False, 50)
    await server.recall.expand.run(
        TENANT, S1, Wanted(sequences=(1,), max_tokens=50, depth=5, retired=True), ""
    )
    assert (asked[-1].depth, asked[-1].retired) == (5, True)


async def test_a_forks_token_opens_what_its_own_view_holds(server: Server) -> None:
    """Its view begins with its parent's, so nothing is granted and nothing is spent."""
    await server.ingest("a", "b")
    token = (await prepare(server, grant=Grant(tokens=5))).token
    await server.ingest("mine", ref=CHILD)
    page = await server.recall.expand.run(TENANT, CHILD, Wanted(sequences=(1, 3)), token)
    assert page.tokens > 5
    spawn = await server.store.spawns.find(TENANT, token)
    assert spawn is not None
    assert spawn.used_tokens == 0
