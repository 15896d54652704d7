"""What a caller is told when a command refuses: the field, what is wrong with it, what to do, and
what a program can read of it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from contextengine_server.commands.lifecycle.record_host_change import Rewound
from contextengine_server.commands.subagents.prepare_subagent_spawn import Grant, SpawnRequest
from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.errors import DomainError
from contextengine_server.recall.expansion import Wanted
from contextengine_server.session.address import Ref
from tests.unit.commands.conftest import Serve
from tests.unit.commands.house import (
    AGENT,
    S1,
    TENANT,
    Server,
    incoming,
    request,
    scope,
    spoken,
    user,
)

S2, CHILD = Ref(AGENT, "s2"), Ref(AGENT, "child")


class Told:
    """What an error says."""

    def __init__(
        self,
        reason: str,
        text: str,
        violations: tuple[tuple[str, str], ...] = (),
        metadata: dict[str, str] | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        self.all = (reason, text, violations, metadata or {}, retry_after_ms)


async def refuses(call: Awaitable[object], told: Told) -> None:
    with pytest.raises(DomainError) as refused:
        await call
    error = refused.value
    violations = tuple((one.field, one.description) for one in error.violations)
    found = (error.reason, error.text, violations, error.metadata, error.retry_after_ms)
    assert found == told.all


def field(name: str, text: str) -> Told:
    """What is said of one field that is wrong."""
    return Told("INVALID_FIELD", f"{name}: {text}", ((name, text),))


REUSED = Told(
    "REQUEST_ID_REUSED",
    "request_id: was used for another request: every request needs an id of its own",
    (("request_id", "was used for another request"),),
)


def missing(session: str = "s1") -> Told:
    return Told(
        "SESSION_NOT_FOUND",
        f"there is no session '{session}' of agent 'agent': write to it first (Bootstrap or"
        " Ingest)",
        (),
        {"agent_id": "agent", "session_id": session},
    )


def revision(expected: int, actual: int) -> Told:
    return Told(
        "REVISION_MISMATCH",
        f"expected_revision: {expected} was expected, the session is at {actual}: read it again",
        (("expected_revision", f"the session is at {actual}"),),
        {"expected": str(expected), "actual": str(actual)},
    )


# Messages.


async def test_other_content_under_a_stored_id(server: Server) -> None:
    await server.ingest("a", "b")
    messages = incoming(user("c", "c"), user("other", "b"))
    stored, sent = spoken("b")[0].hash.hex(), messages[1].hash.hex()
    await refuses(
        server.context.ingest.run(TENANT, S1, messages, None),
        Told(
            "MESSAGE_CONFLICT",
            "messages[1]: id 'b' is stored with other content: send an edit under a new id",
            (("messages[1].id", "is stored with other content"),),
            {"index": "1", "id": "b", "stored_hash": stored, "sent_hash": sent},
        ),
    )


async def test_more_messages_than_a_session_may_have(serve: Serve) -> None:
    server = await serve(**{"sessions.max_session_messages": 3})
    await server.ingest("a", "b", "c")
    assert await server.ingest("a", "b", "c") == 1
    await refuses(
        server.ingest("d"),
        Told(
            "TOO_LARGE",
            "the session would have more than 3 messages, retired ones included: rotate to a new"
            " session (session_key with a new session_id)",
            (),
            {"limit": "3"},
        ),
    )


async def test_a_request_id_for_another_request(server: Server) -> None:
    await server.context.ingest.run(TENANT, S1, spoken("a"), request())
    await refuses(
        server.context.ingest.run(TENANT, S1, spoken("b"), request(digest=b"other")), REUSED
    )


# A session's life.


async def test_a_session_that_is_not_there(server: Server) -> None:
    context = server.context
    for call in (
        context.record_host_change.run(TENANT, S1, Rewound(0), request()),
        context.prepare_subagent_spawn.run(TENANT, SpawnRequest(S1, CHILD, fork=True)),
        context.commit_compaction.run(TENANT, S1, "p1", True),
        server.sessions.export.run(TENANT, S1),
        context.get_status.run(TENANT, S1, 0),
    ):
        await refuses(call, missing())


async def test_a_revision_that_was_not_expected(server: Server) -> None:
    await server.ingest("a")
    await refuses(server.context.reset_session.run(TENANT, S1, None, 3), revision(3, 1))
    await refuses(server.context.end_session.run(TENANT, S1, None, 3), revision(3, 1))
    await refuses(server.compact(expected_revision=3), revision(3, 1))
    await refuses(
        server.sessions.delete.run(TENANT, S1, expected_revision=3, cascade=False), revision(3, 1)
    )


@pytest.mark.parametrize("after", [-1, 3])
async def test_a_rewind_to_what_is_not_there(server: Server, after: int) -> None:
    await server.ingest("a", "b")
    await refuses(
        server.context.record_host_change.run(TENANT, S1, Rewound(after), request()),
        field("rewind.after_sequence", f"is {after}: give 0 to 2, the newest sequence"),
    )
    assert await server.stored() == ["a", "b"]


async def test_a_rewind_into_the_session_that_this_one_continues(server: Server) -> None:
    await server.ingest("a", "b")
    await server.context.bootstrap.run(TENANT, S2, Introduction(continues=S1))
    await server.ingest("c", ref=S2)
    await refuses(
        server.context.record_host_change.run(TENANT, S2, Rewound(1), request()),
        field(
            "rewind.after_sequence",
            "is 1, among the messages that this session continues from 's1' (up to 2): go back in"
            " that session",
        ),
    )
    await server.context.record_host_change.run(TENANT, S2, Rewound(2), request())
    assert await server.shown(ref=S2) == ["a", "b"]


async def test_what_a_session_cannot_continue(server: Server) -> None:
    await server.ingest("a")
    await server.ingest("b", ref=S2)

    def bootstrap(ref: Ref, continues: Ref) -> Awaitable[object]:
        return server.context.bootstrap.run(TENANT, ref, Introduction(continues=continues))

    s3 = Ref(AGENT, "s3")
    await refuses(
        bootstrap(s3, s3),
        field("continues", "names the session itself: name the one that came before"),
    )
    await refuses(
        bootstrap(s3, Ref("other", "s1")),
        field("continues.agent_id", "must be the session's own agent: memory never crosses agents"),
    )
    await refuses(bootstrap(s3, Ref("", "none")), missing("none"))
    text = "the session has messages of its own or continues another: only an empty session can"
    text += " continue one"
    await refuses(
        bootstrap(S2, S1),
        Told(
            "CONTRADICTORY_FIELDS",
            f"continues and session: {text}",
            (("continues", text), ("session", text)),
        ),
    )


async def test_a_session_that_others_stand_on(server: Server) -> None:
    await server.ingest("a")
    await server.context.bootstrap.run(TENANT, S2, Introduction(continues=S1))
    with pytest.raises(DomainError, match="delete them first, or set cascade") as refused:
        await server.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)
    assert refused.value.reason == "HAS_DEPENDENTS"
    assert refused.value.metadata == {"sessions": "s2"}


async def test_an_import_over_other_messages(server: Server) -> None:
    await server.ingest("a", "b")
    await refuses(
        server.sessions.import_.run(TENANT, S1, Introduction(), spoken("x")),
        Told(
            "SESSION_EXISTS",
            "session 's1' holds other messages: import under another id or delete it first",
            (),
            {"session_id": "s1", "messages": "2"},
        ),
    )


async def test_an_export_as_of_what_never_was(server: Server) -> None:
    await server.ingest("a")
    await refuses(
        server.sessions.export.run(TENANT, S1, as_of=-1),
        field("as_of_revision", "is -1: give 0 to 1"),
    )
    text = "the session has revisions 1 to 1, not 2"
    await refuses(
        server.sessions.export.run(TENANT, S1, as_of=2),
        Told("ROW_NOT_FOUND", f"as_of_revision: {text}", (("as_of_revision", text),)),
    )
    empty = await server.sessions.export.run(TENANT, S1, as_of=0)
    assert [row async for row in empty.messages()] == []


async def test_a_proposal_without_its_id(server: Server) -> None:
    await server.ingest("a")
    await refuses(
        server.context.commit_compaction.run(TENANT, S1, "", True),
        field("proposal_id", "is required: Compact{propose_only} answered it"),
    )


# Children.


def prepare(server: Server, child: Ref = CHILD, **more: Any) -> Awaitable[Any]:
    wanted = SpawnRequest(S1, child, **{"fork": True, **more})
    return server.context.prepare_subagent_spawn.run(TENANT, wanted)


async def test_children_that_cannot_be(serve: Serve) -> None:
    server = await serve(**{"subagents.max_children": 1, "subagents.max_depth": 1})
    await server.ingest("a")
    await server.ingest("b", ref=S2)
    await refuses(
        prepare(server, S1),
        field("child", "names the parent itself: a child has a session of its own"),
    )
    await refuses(
        prepare(server, Ref("other", "child")),
        field(
            "child.agent_id",
            "must be the parent's agent in a fork: give CONTEXT_MODE_ISOLATED, or that agent",
        ),
    )
    await refuses(
        prepare(server, fork_after=2),
        field("fork_after_sequence", "is 2: give 0 to 1, the parent's newest sequence"),
    )
    await refuses(
        prepare(server, S2),
        Told(
            "SESSION_EXISTS",
            "child: session 's2' is there already: prepare a child before it is first used, or give"
            " a new session_id",
            (("child", "is there already"),),
            {"session_id": "s2"},
        ),
    )
    await prepare(server, request=request())
    await refuses(prepare(server, request=request(digest=b"other")), REUSED)
    advice = "end children, or have the parent do the work"
    await refuses(
        prepare(server, Ref(AGENT, "second")),
        Told(
            "SPAWN_LIMIT",
            "parent: session 's1' has as many live children, at most 1 are allowed"
            f" (subagents.max_children): {advice}",
            (("parent", "session 's1' has as many live children"),),
            {"which": "children", "limit": "1"},
        ),
    )
    deep = SpawnRequest(CHILD, Ref(AGENT, "grandchild"), fork=True)
    await refuses(
        server.context.prepare_subagent_spawn.run(TENANT, deep),
        Told(
            "SPAWN_LIMIT",
            "parent: the child would be 2 deep, at most 1 are allowed (subagents.max_depth):"
            f" {advice}",
            (("parent", "the child would be 2 deep"),),
            {"which": "depth", "limit": "1"},
        ),
    )


async def test_a_child_of_another(server: Server) -> None:
    await server.ingest("a")
    await server.ingest("b", ref=S2)
    spawn = await prepare(server, fork=False)
    await refuses(
        server.context.rollback_subagent_spawn.run(TENANT, spawn.token, S2),
        field("parent", "is not the parent of this spawn: give the one that it was prepared for"),
    )
    await refuses(
        server.context.bootstrap.run(TENANT, S2, Introduction(), spawn_token=spawn.token),
        field(
            "spawn_token", "is another child's: give it with the session that it was prepared for"
        ),
    )
    assert (await server.store.spawns.find(TENANT, spawn.token)) == spawn


# Engines.


async def test_a_model_that_nobody_could_ask(server: Server) -> None:
    for name in ("model", "fallbacks"):
        given: Any = "dear:m" if name == "model" else ["dear:m"]
        await refuses(
            server.engines.assign.run(scope(), "dag", {"summarizer": {name: given}}, clear=False),
            field(
                "options_json",
                f"summarizer.{name}: names 'dear', which is not a configured endpoint: name one of"
                " cheap, or add it to summarizer.endpoints",
            ),
        )


async def test_a_policy_that_is_none(server: Server) -> None:
    await refuses(
        server.engines.assign.run(scope(), "dag", {"summarizer": [1]}, clear=False),
        field("options_json", "summarizer: must be a mapping of names to values"),
    )


async def test_a_grant_that_does_not_reach(server: Server) -> None:
    await server.ingest("a " + "word " * 50)
    token = (await prepare(server, fork=False)).token
    none = "grants no recall of the parent: prepare the child with a grant"
    wanted = Wanted(sequences=(1,))
    await refuses(
        server.recall.expand.run(TENANT, CHILD, wanted, token),
        Told("PERMISSION_DENIED", f"spawn_token: {none}", (("spawn_token", none),)),
    )
    timed, few = Ref(AGENT, "timed"), Ref(AGENT, "few")
    until = Grant(tokens=9, expire_ms=server.clock.ms)
    token = (await prepare(server, timed, fork=False, grant=until)).token
    over = "granted recall of the parent until a time that has passed"
    await refuses(
        server.recall.expand.run(TENANT, timed, wanted, token),
        Told("PERMISSION_DENIED", f"spawn_token: {over}", (("spawn_token", over),)),
    )
    token = (await prepare(server, few, fork=False, grant=Grant(tokens=20))).token
    assert await server.store.spawns.spend(TENANT, token, 20)
    await refuses(
        server.recall.expand.run(TENANT, few, wanted, token),
        Told(
            "BUDGET_SPENT",
            "spawn_token: 1 tokens more than the 20 that were read would exceed the grant of 20:"
            " ask for less, or go on without the parent",
            (("spawn_token", "has 0 tokens left"),),
            {"scope": "spawn", "used": "20", "cap": "20"},
        ),
    )


async def test_a_name_of_blanks(server: Server) -> None:
    await refuses(
        server.ingest("a", ref=Ref(AGENT, " ")),
        field("session.session_id", "is blank: nobody could tell it from none"),
    )
