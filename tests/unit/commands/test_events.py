"""What watchers are told of each change: its name, the session and its revision, the numbers. What
changes nothing is not told."""

from __future__ import annotations

from typing import Any

from contextengine_server.commands.lifecycle.record_host_change import Rewound
from contextengine_server.commands.subagents.prepare_subagent_spawn import SpawnRequest
from contextengine_server.commands.turn.after_turn import Turn
from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.engines.registration import Registration
from contextengine_server.session.address import Ref
from contextengine_server.session.children import COMPLETED
from contextengine_server.telemetry.event_names import EVENTS
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import AGENT, S1, SMALL, TENANT, Server, request, scope, spoken

OPTIONS = {name.rpartition(".")[2]: value for name, value in SMALL.items()}
S2, CHILD = Ref(AGENT, "s2"), Ref(AGENT, "child")
PARENT = {"parent_agent": AGENT, "parent_session": "s1"}


class Watching:
    """What is told from now on."""

    def __init__(self, server: Server) -> None:
        self._server, self._seen = server, len(server.events())

    def told(self) -> list[tuple[Any, ...]]:
        """What was told since this was asked last: name, session, revision, counts, attributes."""
        events = self._server.events()
        new, self._seen = events[self._seen :], len(events)
        assert {event.tenant for event in new} <= {TENANT}
        assert {event.agent for event in new} <= {AGENT}
        assert all(event.name.replace(":dag_", ":ENGINE_") in EVENTS for event in new)
        return [
            (event.name, event.session, event.revision, event.counts, event.attributes)
            for event in new
        ]


async def test_messages(server: Server) -> None:
    watching = Watching(server)
    tokens = sum(message.fixed_tokens for message in spoken("a", "b")) + 2
    await server.ingest("a", "b")
    assert watching.told() == [
        ("session:created", "s1", 1, {}, {}),
        ("session:ingested", "s1", 1, {"messages": 2, "tokens": tokens}, {}),
    ]
    await server.ingest("b")
    assert watching.told() == []
    await server.context.after_turn.run(TENANT, S1, Turn(spoken("b", "c")))
    counts = {"messages": 1, "tokens": tokens // 2}
    assert watching.told() == [("session:ingested", "s1", 2, counts, {})]
    assert server.core.meters.messages.value == 3
    assert server.core.meters.tokens_in.value == tokens * 3 // 2


async def test_a_sessions_life(server: Server) -> None:
    watching = Watching(server)
    await server.context.bootstrap.run(TENANT, S1, Introduction(model="m"))
    assert watching.told() == [("session:created", "s1", 1, {}, {})]
    await server.ingest("a", "b", "c")
    watching.told()
    for _ in range(2):
        await server.context.record_host_change.run(TENANT, S1, Rewound(1), request("1"))
        await server.context.reset_session.run(TENANT, S1, request("2"), None)
        await server.context.end_session.run(TENANT, S1, request("3"), None)
    await server.context.end_session.run(TENANT, S1, None, None)
    assert watching.told() == [
        ("session:rewound", "s1", 3, {"retired": 2}, {}),
        ("session:reset", "s1", 4, {"retired": 1}, {}),
        ("session:ended", "s1", 5, {}, {}),
    ]
    await server.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)
    assert watching.told() == [("session:deleted", "s1", 0, {}, {})]


async def test_sessions_that_are_deleted_together(server: Server) -> None:
    await server.ingest("a")
    await server.context.bootstrap.run(TENANT, S2, Introduction(continues=S1))
    watching = Watching(server)
    await server.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=True)
    assert sorted(watching.told()) == [
        ("session:deleted", "s1", 0, {}, {}),
        ("session:deleted", "s2", 0, {}, {}),
    ]


async def test_children(server: Server) -> None:
    await server.ingest("a")
    watching = Watching(server)
    wanted = SpawnRequest(S1, CHILD, fork=True, request=request())
    for _ in range(2):
        spawn = await server.context.prepare_subagent_spawn.run(TENANT, wanted)
    head = await server.head(CHILD)
    assert watching.told() == [
        ("session:created", "child", head.revision, {}, {}),
        (
            "subagent:prepared",
            "child",
            head.revision,
            {"depth": 1, "inherited_tokens": spawn.inherited_tokens},
            {"mode": "fork", **PARENT},
        ),
    ]
    said = Introduction()
    for _ in range(2):
        await server.context.bootstrap.run(TENANT, CHILD, said, spawn_token=spawn.token)
    assert watching.told() == [("subagent:started", "child", 0, {}, PARENT)]
    for _ in range(2):
        await server.context.end_subagent.run(TENANT, CHILD, COMPLETED, spawn.token)
    assert watching.told() == [
        ("subagent:ended", "child", 0, {}, {**PARENT, "reason": "completed"}),
        ("session:ended", "child", head.revision + 1, {}, {}),
    ]
    values = {kind: meter.value for kind, meter in server.core.meters.subagents.items()}
    assert {kind: value for kind, value in values.items() if value} == {
        "forked": 1,
        "started": 1,
        "ended": 1,
    }


async def test_an_isolated_child(server: Server) -> None:
    await server.ingest("a")
    watching = Watching(server)
    wanted = SpawnRequest(S1, CHILD, fork=False)
    spawn = await server.context.prepare_subagent_spawn.run(TENANT, wanted)
    (_, prepared) = watching.told()
    assert prepared[3:] == ({"depth": 1, "inherited_tokens": 0}, {"mode": "isolated", **PARENT})
    assert server.core.meters.subagents["isolated"].value == 1
    for _ in range(2):
        await server.context.rollback_subagent_spawn.run(TENANT, spawn.token, S1)
    reason = {**PARENT, "reason": "rolled_back"}
    assert watching.told() == [
        ("subagent:rolled_back", "child", 0, {}, reason),
        ("session:deleted", "child", 0, {}, {}),
    ]


async def test_an_operators_choice(server: Server) -> None:
    watching = Watching(server)
    await server.engines.assign.run(scope(), "legacy", {}, clear=False)
    await server.engines.assign.run(scope(), "", {}, clear=True)
    assert watching.told() == [
        ("engine:assigned", "s1", 0, {}, {"engine": "legacy", "source": "session"}),
        ("engine:assigned", "s1", 0, {}, {"engine": "dag", "source": "configuration"}),
    ]


async def test_a_compaction_and_its_undoing(server: Server) -> None:
    await server.talk(1, 6)
    watching = Watching(server)
    await server.compact(4_000)
    told = watching.told()
    assert {one[:2] for one in told} == {("context:dag_compacted", "s1")}
    assert told[-1][2] == (await server.head()).revision
    await server.compact(undo_to_generation=0)
    (undone,) = watching.told()
    assert undone[:3] == ("context:compaction_undone", "s1", (await server.head()).revision)


async def test_a_tool(server: Server) -> None:
    await server.ingest("a")
    watching = Watching(server)
    await server.context.call_tool.run(TENANT, S1, "ctx_expand", b'{"sequences": [1]}', "")
    ((name, session, revision, counts, attributes),) = watching.told()
    assert (name, session, revision) == ("context:dag_expanded", "s1", 1)
    assert attributes == {"tool": "ctx_expand"}
    assert set(counts) == {"recovered", "duration_ms"}
    assert 0 <= counts["duration_ms"] < 60_000


class Elsewhere(DagEngine):
    """The dag as a third party might have it."""

    id = "else-where"


async def test_events_of_an_engine_have_its_name(serve: Serve) -> None:
    """Whoever wrote it."""
    registration = Registration("else-where", DagOptions, Elsewhere, "plugin:test")
    small = {f"engine.else-where.{name}": value for name, value in OPTIONS.items()}
    server = await serve(engines=[registration], **{"engine.default": "else-where"}, **small)
    await server.talk(1, 6)
    await server.compact(4_000)
    await server.context.call_tool.run(TENANT, S1, "ctx_expand", b'{"sequences": [1]}', "")
    told = {event.name for event in server.events("context:")}
    assert told == {"context:else-where_compacted", "context:else-where_expanded"}
