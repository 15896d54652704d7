"""PrepareSubagentSpawn: a child's session and its token, once for a request."""

from __future__ import annotations

from typing import Any

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.commands.subagents.prepare_subagent_spawn import Grant, SpawnRequest
from contextengine_server.context.work import at_once
from contextengine_server.errors import (
    InvalidField,
    RequestIdReused,
    SessionExists,
    SessionNotFound,
    SpawnLimit,
)
from contextengine_server.session.address import Ref
from contextengine_server.session.session import survey
from contextengine_server.session.state import facts_of
from contextengine_server.store.rows import Spawn
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import (
    AGENT,
    S1,
    TENANT,
    Server,
    incoming,
    request,
    scope,
    user,
)

CHILD = Ref(AGENT, "child")


async def prepare(server: Server, child: Ref = CHILD, parent: Ref = S1, **more: Any) -> Spawn:
    more = {"fork": True, **more}
    return await server.context.prepare_subagent_spawn.run(
        TENANT, SpawnRequest(parent, child, **more)
    )


async def test_a_fork_begins_where_its_parent_stands(server: Server) -> None:
    await server.ingest("a", "b")
    spawn = await prepare(server)
    await server.ingest("c")
    await server.ingest("d", ref=CHILD)
    assert (spawn.fork, spawn.depth, spawn.parent_revision) == (True, 1, 1)
    assert spawn.inherited_tokens == (await server.assemble(ref=CHILD)).tokens - 4
    assert await server.shown(ref=CHILD) == ["a", "b", "d"]
    assert await server.shown() == ["a", "b", "c"]
    assert await server.store.spawns.live_children(scope()) == 1


async def test_a_fork_may_begin_earlier(server: Server) -> None:
    await server.ingest("a", "b", "c")
    await prepare(server, fork_after=2)
    assert await server.shown(ref=CHILD) == ["a", "b"]
    with pytest.raises(InvalidField):
        await prepare(server, Ref(AGENT, "late"), fork_after=4)
    assert await server.store.head(scope(Ref(AGENT, "late"))) is None


async def test_what_is_known_of_a_forks_messages_is_what_its_own_view_says(server: Server) -> None:
    await server.ingest("a", "b")
    await server.assemble()
    await prepare(server)
    await server.ingest("c")
    child = server.core.cache.find(scope(CHILD))
    assert child is not None
    looked = at_once(survey(child.view))
    assert child.ids == looked.ids
    assert len(child.ids) == 2
    assert child.size == looked.size


async def test_a_fork_from_earlier_counts_what_it_begins_with(server: Server) -> None:
    await server.talk(1, 8)
    await server.compact(4_000)
    rows = await server.store.summaries(scope())
    last = max(row.last_sequence for row in rows)
    for after, kept in ((last, rows), (1, [])):
        child = Ref(AGENT, f"child{after}")
        spawn = await prepare(server, child, fork_after=after)
        head = await server.head(child)
        assert (head.summary_count, head.message_count) == (len(kept), after)
        assert (head.parent_sequence, head.last_sequence) == (after, after)
        assert spawn.parent_sequence == after
        assert spawn.inherited_tokens == (await server.assemble(ref=child)).tokens


async def test_an_isolated_child_begins_empty(server: Server) -> None:
    await server.ingest("a")
    spawn = await prepare(server, fork=False, grant=Grant(tokens=50), objective="look")
    assert (spawn.fork, spawn.grant_tokens, spawn.objective) == (False, 50, "look")
    assert spawn.grant_depth == server.core.rules.spawns.grant_depth
    assert await server.shown(ref=CHILD) == []


async def test_a_parent_that_is_too_large_is_not_forked(serve: Serve) -> None:
    server = await serve(**{"subagents.max_fork_tokens": 1_000})
    await server.talk(1, 4)
    spawn = await prepare(server)
    assert not spawn.fork
    tokens = (await server.assemble()).view.view_tokens()
    assert spawn.note == (
        f"Parent context is too large to fork ({tokens}/1000 tokens); starting with isolated"
        " context instead."
    )
    assert await server.shown(ref=CHILD) == []


async def test_the_same_request_again_is_the_same_child(server: Server) -> None:
    await server.ingest("a")
    first = await prepare(server, request=request())
    assert await prepare(server, request=request()) == first
    assert len(server.events("subagent:prepared")) == 1
    with pytest.raises(RequestIdReused):
        await prepare(server, request=request(digest=b"other"))
    assert await server.store.spawns.live_children(scope()) == 1


async def test_children_have_their_time(server: Server) -> None:
    await server.ingest("a")
    await prepare(server, ttl_ms=5_000)
    server.clock.advance(5)
    assert await server.core.children.expire() == 1
    assert await server.store.head(scope(CHILD)) is None
    assert await server.core.children.expire() == 0


@pytest.mark.parametrize("name", ["child", "second"])
async def test_a_child_whose_time_has_passed_makes_room(serve: Serve, name: str) -> None:
    server = await serve(**{"subagents.max_children": 1})
    await server.ingest("a")
    first = await prepare(server, ttl_ms=5_000)
    with pytest.raises((SessionExists, SpawnLimit)):
        await prepare(server, Ref(AGENT, name))
    server.clock.advance(5)
    assert (await prepare(server, Ref(AGENT, name))).token != first.token
    assert await server.store.spawns.live_children(scope()) == 1


async def test_what_was_answered_before_is_answered_though_it_would_be_refused_now(
    server: Server,
) -> None:
    await server.ingest("a", "b")
    first = await prepare(server, fork_after=2, request=request())
    with pytest.raises(RequestIdReused):
        await prepare(server, Ref(AGENT, "other"), request=request(digest=b"other"))
    with pytest.raises(RequestIdReused):
        await prepare(server, fork_after=9, request=request(digest=b"other"))
    await server.core.children.end(first, "rolled_back", take_back=True)
    again = await prepare(server, fork_after=9, request=request())
    assert (again.token, again.end_reason) == (first.token, "rolled_back")


async def test_so_many_children_and_so_deep(serve: Serve) -> None:
    server = await serve(**{"subagents.max_children": 1, "subagents.max_depth": 1})
    await server.ingest("a")
    await prepare(server)
    with pytest.raises(SpawnLimit) as many:
        await prepare(server, Ref(AGENT, "second"))
    assert many.value.metadata == {"which": "children", "limit": "1"}
    with pytest.raises(SpawnLimit) as deep:
        await prepare(server, Ref(AGENT, "grandchild"), CHILD)
    assert deep.value.metadata == {"which": "depth", "limit": "1"}
    for name in ("second", "grandchild"):
        assert await server.store.head(scope(Ref(AGENT, name))) is None


async def test_what_cannot_be_is_refused(server: Server) -> None:
    with pytest.raises(SessionNotFound):
        await prepare(server)
    await server.ingest("a")
    await server.ingest("b", ref=Ref(AGENT, "there"))
    with pytest.raises(InvalidField):
        await prepare(server, S1)
    with pytest.raises(InvalidField):
        await prepare(server, Ref("other", "child"))
    with pytest.raises(SessionExists):
        await prepare(server, Ref(AGENT, "there"))
    assert (await server.store.counts())["sessions"] == 2


async def test_a_child_that_another_server_makes_meanwhile(server: Server, other: Server) -> None:
    await server.ingest("a")
    server.store.before_read = []
    first = await prepare(other, request=request())
    assert await prepare(server, request=request()) == first


async def test_a_fork_from_earlier_knows_what_its_own_beginning_looks_like(
    server: Server, other: Server
) -> None:
    """Whoever reads it anew, and however little of it, reads by the facts of its state."""
    policy = pb.Message(role=pb.ROLE_SYSTEM, parts=[pb.Part(text=pb.TextPart(text="be kind"))])
    await server.context.ingest.run(TENANT, S1, incoming(policy), None)
    await server.talk(1, 3)
    await server.context.ingest.run(TENANT, S1, incoming(user("pin", labels={"pinned": "y"})), None)
    await server.talk(4, 3)
    await prepare(server, fork_after=4)
    state = await server.state(CHILD)
    async with other.core.sessions.open(scope(CHILD), None) as session:
        assert state.view == facts_of(session.view, state.view)
    assert (state.view.steps, state.view.user_step, state.view.leading) == (4, 3, 1)
    assert (state.view.reopened, state.depth) == (0, 1)
    assert (await server.head(CHILD)).message_tokens == session.view.total


@pytest.mark.parametrize("fork", [True, False])
async def test_a_childs_child_is_one_deeper(serve: Serve, fork: bool) -> None:
    server = await serve(**{"subagents.max_depth": 2, "tokens.encoding": "cl100k_base"})
    await server.ingest("a")
    await prepare(server, fork=fork)
    state = await server.state(CHILD)
    assert (state.depth, state.encoding) == (1, "cl100k_base")
    deeper = Ref(AGENT, "deeper")
    assert (await prepare(server, deeper, CHILD, fork=fork)).depth == 2
    assert (await server.state(deeper)).depth == 2
    with pytest.raises(SpawnLimit):
        await prepare(server, Ref(AGENT, "deepest"), deeper, fork=fork)
