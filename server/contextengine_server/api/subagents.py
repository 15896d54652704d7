"""PrepareSubagentSpawn, RollbackSubagentSpawn and EndSubagent: children that inherit context."""

from __future__ import annotations

import orjson

from contextengine_proto.v1 import lifecycle_pb2 as life
from contextengine_proto.v1 import subagent_pb2 as pb
from contextengine_server.api.messages import place_in, ref_of, request_id
from contextengine_server.api.pipeline.call import Call
from contextengine_server.api.requests import not_negative, objective_in, required
from contextengine_server.commands.context_engine import ContextEngineCommands
from contextengine_server.commands.named_message import Named, Place
from contextengine_server.commands.subagents.prepare_subagent_spawn import (
    Grant,
    SpawnRequest,
)
from contextengine_server.errors import ContradictoryFields, InvalidField
from contextengine_server.recall.expansion import MAX_DEPTH
from contextengine_server.session.receipt import request_of
from contextengine_server.store.rows import Spawn

MAX_LOCATOR_BYTES = 4_096
MAX_TTL_S = 365 * 24 * 3600

_FORK = {
    pb.CONTEXT_MODE_UNSPECIFIED: False,
    pb.CONTEXT_MODE_ISOLATED: False,
    pb.CONTEXT_MODE_FORK: True,
}
_REASONS = {
    pb.SUBAGENT_END_REASON_UNSPECIFIED: "completed",
    pb.SUBAGENT_END_REASON_COMPLETED: "completed",
    pb.SUBAGENT_END_REASON_DELETED: "deleted",
    pb.SUBAGENT_END_REASON_RELEASED: "released",
    pb.SUBAGENT_END_REASON_SWEPT: "swept",
}


class SubagentCalls:
    """The part of service ContextEngine that prepares children and hears of their end."""

    commands: ContextEngineCommands

    async def prepare_subagent_spawn(
        self, request: pb.PrepareSubagentSpawnRequest, call: Call
    ) -> pb.PrepareSubagentSpawnResponse:
        """Prepares the context of a child before it starts."""
        spawn = await self.commands.prepare_subagent_spawn.run(call.caller.tenant, _wanted(request))
        said = pb.PrepareSubagentSpawnResponse(
            spawn_token=spawn.token,
            context_mode=_mode(spawn),
            note=spawn.note,
            parent_revision=spawn.parent_revision,
            depth=spawn.depth,
            inherited_tokens=spawn.inherited_tokens,
        )
        said.expire_time.FromMilliseconds(spawn.created_ms + spawn.ttl_ms)
        return said

    async def rollback_subagent_spawn(
        self, request: pb.RollbackSubagentSpawnRequest, call: Call
    ) -> pb.RollbackSubagentSpawnResponse:
        """Takes a preparation back."""
        token = required(
            request.spawn_token, "spawn_token", "it names the preparation to take back"
        )
        parent = ref_of(request.parent, "parent")
        return pb.RollbackSubagentSpawnResponse(
            rolled_back=await self.commands.rollback_subagent_spawn.run(
                call.caller.tenant, token, parent
            )
        )

    async def end_subagent(
        self, request: pb.EndSubagentRequest, call: Call
    ) -> pb.EndSubagentResponse:
        """Says that a child ended."""
        if request.reason not in _REASONS:
            raise InvalidField("reason", f"is {request.reason}, which this server does not know")
        token = request_id(request.spawn_token, "spawn_token")
        child = ref_of(request.child, "child")
        return pb.EndSubagentResponse(
            ended=await self.commands.end_subagent.run(
                call.caller.tenant, child, _REASONS[request.reason], token
            )
        )


def spawn_status(said: life.GetStatusResponse, spawn: Spawn, parent_key: str) -> None:
    """How a session was spawned; `parent_key` is the key that its parent stands under."""
    status = said.spawn
    status.parent.agent_id, status.parent.session_id = spawn.parent_agent, spawn.parent_session
    status.parent.session_key = parent_key
    status.context_mode, status.depth = _mode(spawn), spawn.depth
    status.parent_revision, status.objective = spawn.parent_revision, spawn.objective
    status.used_tokens, status.ended = spawn.used_tokens, spawn.end_reason
    status.expire_time.FromMilliseconds(spawn.expire_ms)
    if spawn.grant_tokens:
        status.grant.max_tokens, status.grant.max_depth = spawn.grant_tokens, spawn.grant_depth
        if spawn.grant_expire_ms:
            status.grant.expire_time.FromMilliseconds(spawn.grant_expire_ms)
    transcripts = zip(
        (status.parent_transcript, status.child_transcript),
        orjson.loads(spawn.transcripts),
        strict=True,
    )
    for place, (name, locator) in transcripts:
        if name or locator:
            place.id, place.file = name, locator


def _mode(spawn: Spawn) -> pb.ContextMode:
    return pb.CONTEXT_MODE_FORK if spawn.fork else pb.CONTEXT_MODE_ISOLATED


def _wanted(request: pb.PrepareSubagentSpawnRequest) -> SpawnRequest:
    if request.context_mode not in _FORK:
        raise InvalidField(
            "context_mode", f"is {request.context_mode}, which this server does not know"
        )
    fork = _FORK[request.context_mode]
    after = _fork_after(request)
    if after is not None and not fork:
        raise ContradictoryFields(
            ["context_mode", after.field if isinstance(after, Named) else "fork_after_sequence"],
            "an isolated child begins with no messages",
        )
    # Without its id, so that the same request under another id is not another request.
    asked = pb.PrepareSubagentSpawnRequest()
    asked.CopyFrom(request)
    asked.ClearField("request_id")
    return SpawnRequest(
        parent=ref_of(request.parent, "parent"),
        child=ref_of(request.child, "child"),
        fork=fork,
        fork_after=after,
        ttl_ms=_ttl(request) if request.HasField("ttl") else None,
        objective=objective_in(request.objective),
        grant=_grant(request.grant) if request.HasField("grant") else None,
        transcripts=(
            _transcript(request.parent_transcript, "parent_transcript"),
            _transcript(request.child_transcript, "child_transcript"),
        ),
        request=request_of(
            request_id(request.request_id),
            "PrepareSubagentSpawn",
            (),
            asked.SerializeToString(deterministic=True),
        ),
    )


def _fork_after(request: pb.PrepareSubagentSpawnRequest) -> Place | None:
    """The message that a fork's beginning ends with. Raises ContradictoryFields."""
    after = place_in(request, "fork_after")
    return not_negative(after, "fork_after_sequence") if isinstance(after, int) else after


def _ttl(request: pb.PrepareSubagentSpawnRequest) -> int:
    ttl = request.ttl
    seconds = ttl.seconds + ttl.nanos / 1e9
    if not 0.001 <= seconds <= MAX_TTL_S or abs(ttl.nanos) >= 1_000_000_000:
        raise InvalidField(
            "ttl",
            f"is {seconds:g} s: give more than a millisecond and at most {MAX_TTL_S} s, or leave"
            " it out",
        )
    return round(seconds * 1000)


def _grant(grant: pb.RecallGrant) -> Grant:
    depth = not_negative(grant.max_depth, "grant.max_depth")
    expire = 0
    if grant.HasField("expire_time"):
        try:
            expire = grant.expire_time.ToMilliseconds()
        except ValueError as error:
            raise InvalidField(
                "grant.expire_time", "must be a time in the years 1 to 9999"
            ) from error
        if expire <= 0:
            raise InvalidField(
                "grant.expire_time", "is before 1970: leave it out for a grant without an end"
            )
    return Grant(not_negative(grant.max_tokens, "grant.max_tokens"), min(depth, MAX_DEPTH), expire)


def _transcript(transcript: pb.TranscriptRef, field: str) -> tuple[str, str]:
    size = len(transcript.file.encode())
    if size > MAX_LOCATOR_BYTES:
        raise InvalidField(
            f"{field}.file", f"has {size} bytes, at most {MAX_LOCATOR_BYTES} are taken"
        )
    return request_id(transcript.id, f"{field}.id"), transcript.file
