"""Search: what was said is found, what is no longer shown included."""

from __future__ import annotations

import pytest

from contextengine_server.commands.subagents.prepare_subagent_spawn import Grant
from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.errors import BudgetSpent, PermissionDenied, SessionNotFound
from contextengine_server.recall.audit import stale_passages
from contextengine_server.recall.query import Query
from tests.unit.commands.house import S1, TENANT, Rows, Server, scope, spoken
from tests.unit.commands.sessions.test_damage import DAMAGE, again, damage, label
from tests.unit.commands.subagents.test_prepare_subagent_spawn import CHILD, prepare


@pytest.fixture
async def filled(server: Server) -> Server:
    server.indexer.start()
    await server.ingest("m1 the zebra eats", "m2 a horse sleeps")
    return server


async def found(
    server: Server, text: str, at: int = 1, token: str = "", retired: bool = False
) -> list[str]:
    ref = CHILD if token else S1
    done = await server.recall.search.run(TENANT, ref, Query(text, retired=retired), at, token)
    return [hit.host_id for hit in done.page.hits]


async def test_what_was_said_is_found(filled: Server) -> None:
    assert await found(filled, "zebra") == ["m1"]
    assert await found(filled, "camel") == []


async def test_a_revision_that_is_named_is_waited_for(filled: Server) -> None:
    revision = await filled.ingest("m3 another zebra")
    assert sorted(await found(filled, "zebra", revision)) == ["m1", "m3"]


async def test_what_left_the_view_is_found_when_asked_for(filled: Server) -> None:
    done = await filled.context.reset_session.run(TENANT, S1, None, None)
    assert await found(filled, "zebra", done.revision) == []
    assert await found(filled, "zebra", done.revision, retired=True) == ["m1"]


async def test_a_child_finds_what_its_grant_opens(filled: Server) -> None:
    token = (await prepare(filled, fork=False, grant=Grant(tokens=1_000))).token
    await filled.ingest("m3 a newer zebra")
    assert await found(filled, "zebra", 0, token) == ["m1"]
    spawn = await filled.store.spawns.find(TENANT, token)
    assert spawn is not None
    assert spawn.used_tokens > 0
    small = (await prepare(filled, CHILD_2, fork=False, grant=Grant(tokens=1))).token
    with pytest.raises(BudgetSpent):
        await filled.recall.search.run(TENANT, CHILD_2, Query("zebra"), 0, small)


async def test_what_has_left_the_view_is_not_opened_to_a_child(filled: Server) -> None:
    await filled.context.reset_session.run(TENANT, S1, None, None)
    revision = await filled.ingest("m4 one more")
    assert await found(filled, "zebra", revision, retired=True) == ["m1"]
    token = (await prepare(filled, fork=False, grant=Grant(tokens=900))).token
    for retired in (True, False):
        assert await found(filled, "zebra", 1, token, retired) == []


@pytest.mark.parametrize("how", DAMAGE)
async def test_a_bad_row_beside_a_hit_is_a_gap(rows: Rows, how: str) -> None:
    server = await Server(rows).open()
    server.indexer.start()
    await server.ingest("m1 a word of the zebra", "m2 a wild horse", "m3 word word word")
    assert await found(server, "zebra") == ["m1"]
    damage(rows, 2, how)
    server = await again(rows, server)
    for query in (Query("zebra"), Query("which zebra word", limit=1), Query("z.bra", regex=True)):
        done = await server.recall.search.run(TENANT, S1, query, 0, "")
        (hit,) = done.page.hits
        assert hit.host_id == "m1"
        assert hit.after is not None
        assert label(2) in hit.after.snippet
    await server.close()


@pytest.mark.parametrize("how", DAMAGE)
async def test_what_a_bad_row_holds_is_not_found_until_it_is_mended(rows: Rows, how: str) -> None:
    said = spoken("m1 the zebra", "m2 a white owl", "m3 a horse")
    server = await Server(rows).open()
    await server.context.ingest.run(TENANT, S1, said, None)
    damage(rows, 2, how)
    server = await again(rows, server)
    server.indexer.start()
    assert await found(server, "white owl") == []
    assert await found(server, "horse") == ["m3"]
    assert await stale_passages(server.store, scope()) == 0
    await server.sessions.import_.run(
        TENANT, S1, Introduction(), spoken("m1 the zebra", "m2 a white owl", "m3 a horse")
    )
    assert await found(server, "white owl") == ["m2"]
    await server.close()


@pytest.mark.parametrize("how", DAMAGE)
async def test_what_the_index_holds_of_a_row_that_went_bad_is_stale(rows: Rows, how: str) -> None:
    server = await Server(rows).open()
    server.indexer.start()
    await server.ingest("m1 the zebra", "m2 a white owl")
    assert await found(server, "white owl") == ["m2"]
    assert await stale_passages(server.store, scope()) == 0
    damage(rows, 2, how)
    assert await stale_passages(server.store, scope()) == 1
    await server.close()


async def test_a_session_that_is_not_there(server: Server) -> None:
    with pytest.raises(SessionNotFound):
        await server.recall.search.run(TENANT, S1, Query("a"), 0, "")
    assert await server.store.head(scope()) is None


async def test_all_sessions_of_the_agent_are_searched_where_they_are_asked_for(
    filled: Server,
) -> None:
    revision = await filled.ingest("m9 a zebra elsewhere", ref=CHILD_2)
    assert await found(filled, "zebra", revision) == ["m1"]
    for query in (Query("zebra", all_sessions=True), Query("z.bra", regex=True, all_sessions=True)):
        done = await filled.recall.search.run(TENANT, S1, query, 1, "")
        hits = [(hit.session, hit.host_id) for hit in done.page.hits]
        assert sorted(hits) == [(S1.session, "m1"), (CHILD_2.session, "m9")]
        assert done.page.total == 2


async def test_a_child_may_not_search_all_sessions(filled: Server) -> None:
    await prepare(filled, fork=False, grant=Grant(tokens=1_000))
    with pytest.raises(PermissionDenied, match="all_sessions"):
        await filled.recall.search.run(TENANT, CHILD, Query("zebra", all_sessions=True), 0, "")


CHILD_2 = type(CHILD)(CHILD.agent, "second")
