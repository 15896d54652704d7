"""The part of service ContextEngine that is about a session as a whole."""

from __future__ import annotations

from contextengine_proto.v1 import lifecycle_pb2 as life
from contextengine_server.api import replies
from contextengine_server.api.messages import place_in, ref_of, request_id
from contextengine_server.api.pipeline.auth import CallerRole
from contextengine_server.api.pipeline.call import Call
from contextengine_server.api.quotas import tenant_usage
from contextengine_server.api.requests import not_negative, request_in, required
from contextengine_server.api.runtime import (
    completion_of,
    harness_of,
    job_of,
    named,
    receipt_of,
)
from contextengine_server.api.status import status_reply
from contextengine_server.commands.context_engine import ContextEngineCommands
from contextengine_server.commands.lifecycle.record_host_change import (
    HostChange,
    HostCompacted,
    NativeCompacted,
    Rewound,
)
from contextengine_server.commands.named_message import Named
from contextengine_server.errors import ContradictoryFields, InvalidField
from contextengine_server.fairness.usage import Uses
from contextengine_server.runtime.errands import JobResult, Lent, Visit
from contextengine_server.session.receipt import request_of

MAX_WAIT_S = 60
"""The most seconds that Maintain waits for a job: as long as clients wait for most calls."""

MAX_COMPLETIONS = 100
"""Results that one Maintain takes."""


class LifecycleCalls:
    """How a session is, what its host did to it, and how it ends."""

    commands: ContextEngineCommands
    uses: Uses

    async def record_host_change(
        self, request: life.RecordHostChangeRequest, call: Call
    ) -> life.RecordHostChangeResponse:
        """Says what the harness did to its own transcript."""
        name = required(request.change_id, "change_id", "it makes the change safe to send twice")
        change, digest = _host_change(request)
        asked = request_of(name, "RecordHostChange", (), digest, "change_id")
        assert asked is not None
        done = await self.commands.record_host_change.run(
            call.caller.tenant, ref_of(request.session), change, asked
        )
        return life.RecordHostChangeResponse(
            recorded=not done.changed.repeated,
            revision=done.changed.revision,
            retired_count=(done.changed.numbers or {}).get("retired", 0),
            summary=replies.summary(done.summary) if done.summary is not None else None,
        )

    async def maintain(self, request: life.MaintainRequest, call: Call) -> life.MaintainResponse:
        """Answers the transcript rewrites that the engine would like; no shipped engine wants
        any. Hands out jobs for a model that is lent, and takes their results."""
        done = await self.commands.maintain.run(
            call.caller.tenant, ref_of(request.session), _lent(request)
        )
        visit: Visit = done.visit or Visit()
        return life.MaintainResponse(
            changed=False,
            reason=f"{done.engine.id} rewrites no transcripts",
            jobs=map(job_of, visit.jobs),
            receipts=map(receipt_of, visit.receipts),
            more_jobs=done.more,
        )

    async def get_status(
        self, request: life.GetStatusRequest, call: Call
    ) -> life.GetStatusResponse:
        """Answers how a session is."""
        at_least = not_negative(request.at_least_revision, "at_least_revision")
        status = await self.commands.get_status.run(
            call.caller.tenant,
            ref_of(request.session),
            at_least,
            sized=request.with_disk_bytes,
        )
        said = status_reply(status, call.caller)
        if call.caller.role is CallerRole.OPERATOR:
            said.tenant_usage.CopyFrom(tenant_usage(self.uses.of(call.caller.tenant)))
        return said

    async def reset_session(
        self, request: life.ResetSessionRequest, call: Call
    ) -> life.ResetSessionResponse:
        """Empties a session's view."""
        asked = request_in(request, "ResetSession")
        expected = request.expected_revision if request.HasField("expected_revision") else None
        done = await self.commands.reset_session.run(
            call.caller.tenant, ref_of(request.session), asked, expected
        )
        return life.ResetSessionResponse(
            revision=done.revision, retired_count=(done.numbers or {}).get("retired", 0)
        )

    async def end_session(
        self, request: life.EndSessionRequest, call: Call
    ) -> life.EndSessionResponse:
        """Ends a conversation for now."""
        asked = request_in(request, "EndSession")
        expected = request.expected_revision if request.HasField("expected_revision") else None
        done = await self.commands.end_session.run(
            call.caller.tenant, ref_of(request.session), asked, expected
        )
        return life.EndSessionResponse(
            revision=done.revision, ended=bool((done.numbers or {}).get("ended"))
        )

    async def dispose_session(
        self, request: life.DisposeSessionRequest, call: Call
    ) -> life.DisposeSessionResponse:
        """Frees what is held in memory."""
        disposed = await self.commands.dispose_session.run(
            call.caller.tenant, ref_of(request.session)
        )
        return life.DisposeSessionResponse(disposed=disposed)


def _lent(request: life.MaintainRequest) -> Lent | None:
    """What a harness brings, and what it would do; None: nothing."""
    lends = request.HasField("lend")
    wait_s = request.wait.seconds + request.wait.nanos / 1e9
    if not 0 <= wait_s <= MAX_WAIT_S:
        raise InvalidField("wait", f"is {wait_s:g} s: give 0 to {MAX_WAIT_S} s")
    if wait_s and not lends:
        raise InvalidField("wait", "is for a job: say in `lend` who takes it")
    if len(request.completions) > MAX_COMPLETIONS:
        raise InvalidField(
            "completions",
            f"has {len(request.completions)} results, at most {MAX_COMPLETIONS} are taken at once",
        )
    answers = [
        JobResult(*named(field, said.job_id, said.lease_id), completion_of(said, field))
        for field, said in (
            (f"completions[{at}]", said) for at, said in enumerate(request.completions)
        )
    ]
    if not lends and not answers:
        return None
    return Lent(harness_of(request.lend, "lend") if lends else None, answers, wait_s)


def _host_change(request: life.RecordHostChangeRequest) -> tuple[HostChange, bytes]:
    """What the host did, and its digest as part of the request's identity."""
    kind = request.WhichOneof("change")
    if kind is None:
        raise InvalidField("change", "is required: rewind, compacted or native_compacted")
    digest = kind.encode() + getattr(request, kind).SerializeToString(deterministic=True)
    if kind == "rewind":
        return Rewound(place_in(request.rewind, "after", within="rewind.") or 0), digest
    if kind == "native_compacted":
        return NativeCompacted(), digest
    change = request.compacted
    kept = change.first_kept_message_id
    for name in ("last_sequence", "last_message_id") if kept else ():
        if getattr(change, name):
            raise ContradictoryFields(
                [f"compacted.{name}", "compacted.first_kept_message_id"],
                "say what is covered last, or what is kept first, not both",
            )
    return HostCompacted(
        place_in(change, "first", within="compacted.", begins=True) or 0,
        0 if kept else place_in(change, "last", within="compacted.") or 0,
        change.summary,
        Named(
            request_id(kept, "compacted.first_kept_message_id"),
            "compacted.first_kept_message_id",
            begins=True,
        )
        if kept
        else None,
    ), digest
