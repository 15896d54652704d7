"""The table of bad requests for children, and for the tokens that they show elsewhere."""

from __future__ import annotations

from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from contextengine import types as t
from tests.integration.bad_input.cases import LONG_ID, MAX, Case, S, bad, contradictory, refs_of
from tests.integration.harness import ref

CHILD, NONE = ref("child"), ref("none")
FORK = t.CONTEXT_MODE_FORK


def prepare(**more: Any) -> t.PrepareSubagentSpawnRequest:
    return t.PrepareSubagentSpawnRequest(**{"parent": S, "child": CHILD, **more})


def unknown(request: Message) -> Case:
    """A token of nobody's."""
    return Case("a token of nobody's", [request], ["spawn_token"], "NOT_FOUND", "ROW_NOT_FOUND")


def tokens(make: Any) -> list[Case]:
    """What is wrong with a token is found wherever one is shown."""
    return [
        unknown(make("t")),
        bad("NUL in the token", make("\x00"), "spawn_token"),
        bad("a long token", make(LONG_ID), "spawn_token"),
    ]


BOOTSTRAP = [
    *tokens(lambda token: t.BootstrapRequest(session=NONE, spawn_token=token)),
    contradictory(
        "a child that continues another",
        t.BootstrapRequest(session=NONE, continues=S, spawn_token="t"),
        "continues",
        "spawn_token",
    ),
]
SEARCH = tokens(lambda token: t.SearchRequest(session=S, query="x", spawn_token=token))
INSPECT = tokens(lambda token: t.InspectRequest(session=S, summary_id="x", spawn_token=token))
EXPAND = tokens(lambda token: t.ExpandRequest(session=S, sequences=[1], spawn_token=token))
CALL_TOOL = tokens(lambda token: t.CallToolRequest(session=S, name="ctx_search", spawn_token=token))

CASES: dict[str, list[Case]] = {
    "ContextEngine/PrepareSubagentSpawn": [
        *refs_of("ContextEngine/PrepareSubagentSpawn", "parent"),
        *refs_of("ContextEngine/PrepareSubagentSpawn", "child"),
        bad("its own parent", prepare(child=S), "child"),
        bad(
            "a fork for another agent",
            prepare(child=ref("c", agent="b"), context_mode=FORK),
            "child.agent_id",
        ),
        bad("an unknown mode", prepare(context_mode=9), "context_mode"),
        bad("no time", prepare(ttl=Duration()), "ttl"),
        bad("less than no time", prepare(ttl=Duration(seconds=-1)), "ttl"),
        bad("for ever", prepare(ttl=Duration(seconds=MAX)), "ttl"),
        bad("no duration", prepare(ttl=Duration(seconds=1, nanos=1_000_000_000)), "ttl"),
        bad("a long objective", prepare(objective="x" * 16_385), "objective"),
        bad(
            "a long id",
            prepare(parent_transcript=t.TranscriptRef(id=LONG_ID)),
            "parent_transcript.id",
        ),
        bad(
            "a long locator",
            prepare(child_transcript=t.TranscriptRef(file="x" * 4_097)),
            "child_transcript.file",
        ),
        bad("less than no tokens", prepare(grant=t.RecallGrant(max_tokens=-1)), "grant.max_tokens"),
        bad("less than no depth", prepare(grant=t.RecallGrant(max_depth=-1)), "grant.max_depth"),
        bad(
            "a grant until no time",
            prepare(grant=t.RecallGrant(expire_time=Timestamp(seconds=MAX))),
            "grant.expire_time",
        ),
        bad(
            "a grant until long ago",
            prepare(grant=t.RecallGrant(expire_time=Timestamp(seconds=-1))),
            "grant.expire_time",
        ),
        bad("a long request id", prepare(request_id=LONG_ID), "request_id"),
        bad(
            "before all", prepare(context_mode=FORK, fork_after_sequence=-1), "fork_after_sequence"
        ),
        bad("behind all", prepare(context_mode=FORK, fork_after_sequence=4), "fork_after_sequence"),
        contradictory(
            "a fork that is none",
            prepare(fork_after_sequence=1),
            "context_mode",
            "fork_after_sequence",
        ),
        Case("no such parent", [prepare(parent=NONE)], (), "NOT_FOUND", "SESSION_NOT_FOUND"),
        Case(
            "a child that is there",
            [prepare(parent=S, child=ref("old"))],
            ["child"],
            "ALREADY_EXISTS",
            "SESSION_EXISTS",
            {"session_id": "old"},
        ),
    ],
    "ContextEngine/RollbackSubagentSpawn": [
        *refs_of("ContextEngine/RollbackSubagentSpawn", "parent"),
        bad("no token", t.RollbackSubagentSpawnRequest(parent=S), "spawn_token"),
        bad(
            "a long token",
            t.RollbackSubagentSpawnRequest(parent=S, spawn_token=LONG_ID),
            "spawn_token",
        ),
    ],
    "ContextEngine/EndSubagent": [
        *refs_of("ContextEngine/EndSubagent", "child"),
        bad("an unknown reason", t.EndSubagentRequest(child=CHILD, reason=9), "reason"),  # type: ignore[arg-type]
        bad("a long token", t.EndSubagentRequest(child=CHILD, spawn_token=LONG_ID), "spawn_token"),
    ],
}
"""By the rpc's name below the package."""

EMPTY = {
    "ContextEngine/PrepareSubagentSpawn": "parent.agent_id",
    "ContextEngine/RollbackSubagentSpawn": "spawn_token",
    "ContextEngine/EndSubagent": "child.agent_id",
}
"""What an empty request is told to give."""
