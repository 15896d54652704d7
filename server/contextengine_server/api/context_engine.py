"""Service ContextEngine: the context of each model call, and the life of a session. Each method
reads its request, runs the command of its name, and writes the reply."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import timedelta

import msgspec

from contextengine_proto.v1 import assemble_pb2, host_pb2, message_pb2
from contextengine_proto.v1 import lifecycle_pb2 as life
from contextengine_proto.v1.budget_pb2 import ToolDefinition
from contextengine_server.api import replies
from contextengine_server.api.compaction import CompactionCalls
from contextengine_server.api.lifecycle import LifecycleCalls
from contextengine_server.api.messages import (
    ReadLimits,
    incoming_one,
    read_in,
    read_many,
    ref_of,
    request_id,
    stored_message,
)
from contextengine_server.api.pipeline.call import Call
from contextengine_server.api.projection_options import bound_id
from contextengine_server.api.projector import Projector
from contextengine_server.api.requests import (
    budget_spec,
    host_facts,
    memory_in,
    not_negative,
    objective_in,
    optional_tokens,
    preamble_in,
    prompt_of,
    report_of,
    request_in,
    stop_reason_in,
    tell_host,
    whereabouts_in,
    workspace_in,
)
from contextengine_server.api.subagents import SubagentCalls
from contextengine_server.api.tools import ToolCalls
from contextengine_server.commands.context_engine import ContextEngineCommands
from contextengine_server.commands.turn.after_turn import Turn
from contextengine_server.commands.turn.assemble import ReplyFields
from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.commands.turn.update_model import Model
from contextengine_server.errors import ContradictoryFields, InvalidField
from contextengine_server.fairness.usage import Uses
from contextengine_server.memory.prompt import NO_MEMORY
from contextengine_server.session.assembly.assembly import AssembleCall, Assembly
from contextengine_server.session.assembly.whereabouts import NOTHING_SAID
from contextengine_server.session.receipt import Disposition, request_of
from contextengine_server.session.state import SessionState
from contextengine_server.slices import in_slices
from contextengine_server.telemetry.tracing import Trace


class ContextEngineService(LifecycleCalls, CompactionCalls, ToolCalls, SubagentCalls):
    """The calls of a turn, beside those that the other parts serve."""

    def __init__(
        self,
        commands: ContextEngineCommands,
        limits: ReadLimits,
        projector: Projector,
        uses: Uses,
    ) -> None:
        self.commands, self.limits, self.projector, self.uses = commands, limits, projector, uses

    async def bootstrap(self, request: life.BootstrapRequest, call: Call) -> life.BootstrapResponse:
        """Introduces a host and a session to each other."""
        token = request_id(request.spawn_token, "spawn_token")
        if token and request.HasField("continues"):
            raise ContradictoryFields(
                ["continues", "spawn_token"],
                "a child begins as it was prepared: give one of the two",
            )
        history = await read_many(call, self.limits, request.history, "history")
        said = Introduction(
            host=host_facts(request.host) if request.HasField("host") else None,
            model=request_id(request.model, "model"),
            provider=request_id(request.provider, "provider"),
            window=optional_tokens(request, "window"),
            continues=(
                ref_of(request.continues, "continues") if request.HasField("continues") else None
            ),
            spawned=bool(token),
            files=workspace_in(request.workspace_files),
        )
        asked = request_of(request_id(request.request_id), "Bootstrap", history)
        done = await self.commands.bootstrap.run(
            call.caller.tenant, ref_of(request.session), said, history, asked, token
        )
        return life.BootstrapResponse(
            engine=replies.engine_info(done.engine, done.capabilities),
            session_id=done.address.scope.session,
            revision=done.head.revision,
            created=done.created,
            rotated=done.address.rotated,
            stored=map(stored_message, done.stored),
            last_sequence=done.head.last_sequence if done.head.message_count else 0,
            last_message_id=SessionState.decode(done.head.state).view.last_id,
            encoding=done.encoding,
        )

    async def ingest(self, request: life.IngestRequest, call: Call) -> life.IngestResponse:
        """Stores one message."""
        if not request.HasField("message"):
            raise InvalidField("message", "is required: the message to store")
        ref, name = ref_of(request.session), request_id(request.request_id)
        message = await read_in(call, incoming_one, self.limits, request.message, "message")
        asked = request_of(name, "Ingest", [message]) if name else None
        done = await self.commands.ingest.run(call.caller.tenant, ref, [message], asked, "message")
        return life.IngestResponse(
            stored=stored_message(done.stored[0]),
            revision=done.revision,
            ingested=done.noticed,
        )

    async def ingest_batch(
        self, request: life.IngestBatchRequest, call: Call
    ) -> life.IngestBatchResponse:
        """Stores messages, all or none."""
        if not request.messages:
            raise InvalidField("messages", "is empty: give at least one message")
        messages = await read_many(call, self.limits, request.messages, "messages")
        asked = request_of(request_id(request.request_id), "IngestBatch", messages)
        done = await self.commands.ingest.run(
            call.caller.tenant, ref_of(request.session), messages, asked
        )
        return life.IngestBatchResponse(
            stored=map(stored_message, done.stored),
            revision=done.revision,
            ingested_count=len(done.stored) if done.noticed else 0,
        )

    async def assemble(self, request: assemble_pb2.AssembleRequest, call: Call) -> bytes:
        """Answers the context for one model call."""
        question = call.caller.tenant, call.raw
        known = await self.commands.assemble.again(question, call.trace)
        if known is not None:
            return known
        wanted = await self._assemble_call(request, call)
        projects = request.HasField("projection")
        writer = AssembleWriter(request, call.trace, self.projector, projects)
        return await self.commands.assemble.run(wanted, question, writer)

    async def _assemble_call(
        self, request: assemble_pb2.AssembleRequest, call: Call
    ) -> AssembleCall:
        live = request.HasField("live")
        if live and request.ingest:
            raise ContradictoryFields(
                ["ingest", "live"], "give the new messages or the whole list, not both"
            )
        if request.prompt and request.current_message_id:
            raise ContradictoryFields(
                ["prompt", "current_message_id"], "give this turn's prompt or name it, not both"
            )
        if request.HasField("projection"):
            self.projector.check_assemble(request)
        if not 0 <= request.cache_retention <= host_pb2.CACHE_RETENTION_LONG:
            raise InvalidField("cache_retention", "is none that is known: give none, short or long")
        if call.trace.sampled:
            tell_host(call.trace, request)
        limits, brought, listed = self.limits, request.ingest, request.live.messages
        tools: Sequence[ToolDefinition] = request.tools
        if tools and request.available_tools:
            available = set(request.available_tools)
            tools = [tool for tool in tools if tool.name in available]
        return AssembleCall(
            tenant=call.caller.tenant,
            ref=ref_of(request.session),
            whereabouts=(
                whereabouts_in(request)
                if request.channel_type or request.workspace_files
                else NOTHING_SAID
            ),
            objective=objective_in(request.objective) if request.objective else "",
            measured=optional_tokens(request, "current_token_count"),
            ingest=await read_many(call, limits, brought, "ingest") if brought else (),
            live=(await read_many(call, limits, listed, "live.messages") if live else None),
            store_new=request.live.store_new,
            takes_back=request.live.takes_back,
            request_id=request_id(request.request_id),
            budget=budget_spec(request.budget, tools),
            model=request_id(request.model, "model"),
            provider=request_id(request.provider, "provider"),
            prompt=prompt_of(request.prompt) if request.prompt else None,
            current_message_id=request.current_message_id,
            bound_id=(
                bound_id(request.projection, "projection") if request.HasField("projection") else ""
            ),
            at_least_revision=not_negative(request.at_least_revision, "at_least_revision"),
            whole=request.explain,
            tools=tools,
            preamble=preamble_in(request.preamble) if request.HasField("preamble") else "",
            memory=(
                memory_in(request)
                if request.memory_sections
                or request.available_tools
                or request.citations_mode
                or tools
                else NO_MEMORY
            ),
            cache_retention=request.cache_retention,
            cache_broke=request.prompt_cache.broke,
            trace=call.trace,
        )

    async def after_turn(
        self, request: life.AfterTurnRequest, call: Call
    ) -> life.AfterTurnResponse:
        """Says that a turn is over and hands over what it added."""
        before = not_negative(request.pre_prompt_message_count, "pre_prompt_message_count")
        if before > len(request.messages):
            raise InvalidField(
                "pre_prompt_message_count",
                f"is {before}, but `messages` has only {len(request.messages)}: give the whole"
                " list",
            )
        for message in request.messages[before:] if request.is_heartbeat else ():
            message.is_heartbeat = message.is_heartbeat or message.role == message_pb2.ROLE_USER
        new = await read_many(call, self.limits, request.messages, "messages", before)
        measured = optional_tokens(request, "current_token_count")
        report = None
        if request.HasField("usage"):
            report = report_of(
                request.usage,
                sent=replies.sent_in(request.assembly_id),
                other=optional_tokens(request, "other_tokens"),
                stop_reason=stop_reason_in(request.messages),
            )
        turn = Turn(
            messages=new,
            first_index=before,
            key=request_id(request.advancement_key, "advancement_key"),
            request=request_of(request_id(request.request_id), "AfterTurn", new),
            report=report,
            budget=budget_spec(request.budget) if request.HasField("budget") else None,
            measured=measured,
            cause=call.trace.traceparent(),
        )
        done = await self.commands.after_turn.run(call.caller.tenant, ref_of(request.session), turn)
        stored = done.written.stored
        duplicate = done.written.repeated or (
            bool(new) and not any(one.disposition == Disposition.STORED for one in stored)
        )
        return life.AfterTurnResponse(
            status=(
                life.AfterTurnResponse.STATUS_DUPLICATE
                if duplicate
                else life.AfterTurnResponse.STATUS_COMMITTED
            ),
            stored=map(stored_message, stored),
            revision=done.written.revision,
            compaction_queued=done.queued,
            job_wait=timedelta(milliseconds=done.job_wait_ms) if done.job_wait_ms else None,
        )

    async def report_usage(
        self, request: life.ReportUsageRequest, call: Call
    ) -> life.ReportUsageResponse:
        """Says what the provider billed, or refused."""
        if not request.HasField("usage") and not request.HasField("overflow"):
            raise InvalidField("usage", "is required, or overflow: say what was billed or refused")
        sent = replies.sent_in(request.assembly_id)
        if request.assembly_id and not sent.tokens:
            raise InvalidField(
                "assembly_id",
                "is not one of this service's: give AssembleResponse.assembly_id as it was",
            )
        report = report_of(
            request.usage if request.HasField("usage") else None,
            sent=sent,
            other=optional_tokens(request, "other_tokens"),
            ran=request.model,
            stop_reason=request.stop_reason,
            overflow=request.overflow if request.HasField("overflow") else None,
        )
        done = await self.commands.report_usage.run(
            call.caller.tenant, ref_of(request.session), report, request_in(request, "ReportUsage")
        )
        return life.ReportUsageResponse(
            estimated_tokens=sent.estimated(done.model.factor),
            learned_factor=done.model.learned,
            served_window=done.model.served_window,
            revision=done.revision,
        )

    async def update_model(
        self, request: life.UpdateModelRequest, call: Call
    ) -> life.UpdateModelResponse:
        """Sets the session's model."""
        wanted = Model(
            request_id(request.model, "model"),
            request_id(request.provider, "provider"),
            optional_tokens(request, "window"),
            optional_tokens(request, "max_output_tokens"),
        )
        done = await self.commands.update_model.run(
            call.caller.tenant, ref_of(request.session), wanted, request_in(request, "UpdateModel")
        )
        return life.UpdateModelResponse(
            model=done.head.model,
            provider=done.head.provider,
            window=done.model.window,
            model_factor=done.model.factor,
            revision=done.revision,
        )


class AssembleWriter(msgspec.Struct, frozen=True):
    """Writes an assembly as the reply of one Assemble."""

    request: assemble_pb2.AssembleRequest
    trace: Trace
    projector: Projector
    projects: bool

    def write(self, assembly: Assembly) -> ReplyFields:
        """The reply's fields."""
        request, trace = self.request, self.trace
        with trace.span("reply") if trace.sampled else nullcontext(trace) as span:
            written = replies.encode(assembly, request.known_context_hash, request.known_epoch)
            if span.sampled:
                outcome = assemble_pb2.AssembleResponse.Outcome.Name(assembly.outcome)
                span.set("contextengine.outcome", outcome)
                length = len(written.fields) + sum(map(len, assembly.joined.after(written.known)))
                span.set("contextengine.reply.bytes", length)
                span.set("contextengine.reply.items", assembly.joined.total)
                span.set("contextengine.reply.tokens", assembly.tokens)
                span.set("contextengine.reply.reused_tokens", written.known_tokens)
        return written

    async def explained(self, assembly: Assembly) -> list[bytes]:
        """The decisions about every message."""
        return await in_slices(replies.explained(assembly))

    async def beside(self, reply: bytes, assembly: Assembly) -> bytes:
        """The reply with its projection."""
        with self.trace.span("project"):
            return await self.projector.beside(reply, assembly, self.request)
