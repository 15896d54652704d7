"""Service ContextEngine: the life of a session, and the context of each model call."""

from __future__ import annotations

from google.protobuf.message import Message

from contextengine_proto.v1 import assemble_pb2, compaction_pb2
from contextengine_proto.v1 import lifecycle_pb2 as life
from contextengine_server.api import replies, unserved
from contextengine_server.api.call import Call
from contextengine_server.api.compaction import commit_compaction, compact
from contextengine_server.api.projector import Projector
from contextengine_server.api.reading import (
    budget_spec,
    host_facts,
    incoming,
    incoming_one,
    not_negative,
    prompt_tokens,
    read_in,
    ref_of,
    report_of,
    request_id,
    required,
)
from contextengine_server.api.status import status_of
from contextengine_server.api.subagents import SubagentCalls
from contextengine_server.api.tools import ToolCalls
from contextengine_server.commands import after_turn, bootstrap
from contextengine_server.commands.assemble import assemble
from contextengine_server.commands.assembly_events import announce
from contextengine_server.commands.prepare_spawn import SpawnRules
from contextengine_server.commands.reply_cache import Answers
from contextengine_server.commands.spawns import start
from contextengine_server.compaction.host_summary import host_compaction
from contextengine_server.compaction.jobs import queue_compaction
from contextengine_server.errors import ContradictoryFields, InvalidField
from contextengine_server.recall.ground import Ground
from contextengine_server.session import lifecycle
from contextengine_server.session import model as model_commands
from contextengine_server.session.append import Request, append, request_of
from contextengine_server.session.assembly import AssembleCall
from contextengine_server.session.core import SessionCore


class ContextEngineService(ToolCalls, SubagentCalls):
    """Thin: reads the request, asks the session core, writes the reply."""

    def __init__(
        self, core: SessionCore, ground: Ground, rules: SpawnRules, projector: Projector
    ) -> None:
        self.core, self.ground, self.rules, self.projector = core, ground, rules, projector
        self.answers = Answers(core)

    async def bootstrap(self, request: life.BootstrapRequest, call: Call) -> life.BootstrapResponse:
        """Introduces a host and a session to each other."""
        core = self.core
        token = request_id(request.spawn_token, "spawn_token")
        if token and request.HasField("continues"):
            raise ContradictoryFields(
                ["continues", "spawn_token"],
                "a child begins as it was prepared: give one of the two",
            )
        address = await core.address(call.caller.tenant, ref_of(request.session))
        history = await read_in(call, incoming, core, request.history, "history")
        host = host_facts(request.host) if request.HasField("host") else None
        model, provider = (
            request_id(request.model, "model"),
            request_id(request.provider, "provider"),
        )
        window = not_negative(request.window, "window") if request.HasField("window") else None
        asked = request_of(request_id(request.request_id), "Bootstrap", history)
        selected = await core.select(address.scope)
        if token:
            await start(core, address, token)
        done = await bootstrap.introduce(
            core,
            address,
            bootstrap.Introduction(
                host=host,
                model=model,
                provider=provider,
                window=window,
                continues=(
                    ref_of(request.continues, "continues")
                    if request.HasField("continues")
                    else None
                ),
                spawned=bool(token),
            ),
            history,
            asked,
        )
        return life.BootstrapResponse(
            engine=replies.engine_info(selected.engine),
            session_id=address.scope.session,
            revision=done.head.revision,
            created=done.created,
            rotated=address.rotated,
            stored=replies.stored_messages(done.stored),
            last_sequence=done.head.last_sequence if done.head.message_count else 0,
            encoding=done.encoding,
        )

    async def ingest(self, request: life.IngestRequest, call: Call) -> life.IngestResponse:
        """Stores one message."""
        if not request.HasField("message"):
            raise InvalidField("message", "is required: the message to store")
        message = await read_in(call, incoming_one, self.core, request.message, "message")
        address = await self.core.address(call.caller.tenant, ref_of(request.session))
        selected = await self.core.select(address.scope)
        asked = request_of(request_id(request.request_id), "Ingest", [message])
        await self.core.count([message])
        async with self.core.session(address.scope, lock=True) as session:
            written = await append(
                self.core,
                session,
                address,
                [message],
                field_name="message",
                refuse_conflicts=True,
                request=asked,
            )
        return life.IngestResponse(
            stored=replies.stored_messages(written.stored)[0],
            revision=written.revision,
            ingested=selected.engine.notices,
        )

    async def ingest_batch(
        self, request: life.IngestBatchRequest, call: Call
    ) -> life.IngestBatchResponse:
        """Stores messages, all or none."""
        if not request.messages:
            raise InvalidField("messages", "is empty: give at least one message")
        messages = await read_in(call, incoming, self.core, request.messages, "messages")
        address = await self.core.address(call.caller.tenant, ref_of(request.session))
        selected = await self.core.select(address.scope)
        asked = request_of(request_id(request.request_id), "IngestBatch", messages)
        await self.core.count(messages)
        async with self.core.session(address.scope, lock=True) as session:
            written = await append(
                self.core, session, address, messages, refuse_conflicts=True, request=asked
            )
        return life.IngestBatchResponse(
            stored=replies.stored_messages(written.stored),
            revision=written.revision,
            ingested_count=len(written.stored) if selected.engine.notices else 0,
        )

    async def assemble(self, request: assemble_pb2.AssembleRequest, call: Call) -> bytes:
        """Answers the context for one model call."""
        core = self.core
        question = call.caller.tenant, call.raw
        known = await self.answers.again(question)
        if known is not None:
            call.trace.set("contextengine.reply.repeated", True)
            core.meters.assembled[known.outcome].value += 1
            core.meters.tokens_sent.value += known.tokens
            core.meters.tokens_reused.value += known.reused
            return known.reply
        live = request.HasField("live")
        if live and request.ingest:
            raise ContradictoryFields(
                ["ingest", "live"], "give the new messages or the whole list, not both"
            )
        if request.prompt and request.current_message_id:
            raise ContradictoryFields(
                ["prompt", "current_message_id"], "give this turn's prompt or name it, not both"
            )
        unserved.refuse_fields(request)
        self.projector.check_assemble(request)
        if request.HasField("current_token_count"):
            not_negative(request.current_token_count, "current_token_count")
        wanted = AssembleCall(
            tenant=call.caller.tenant,
            ref=ref_of(request.session),
            ingest=await read_in(call, incoming, core, request.ingest, "ingest"),
            live=(
                await read_in(call, incoming, core, request.live.messages, "live.messages")
                if live
                else None
            ),
            store_new=request.live.store_new,
            request_id=request_id(request.request_id),
            budget=await budget_spec(core, request.budget, request.tools),
            model=request_id(request.model, "model"),
            provider=request_id(request.provider, "provider"),
            prompt_tokens=await prompt_tokens(core, request.prompt),
            current_message_id=request.current_message_id,
            measured=(
                request.current_token_count if request.HasField("current_token_count") else None
            ),
            at_least_revision=not_negative(request.at_least_revision, "at_least_revision"),
            whole=request.explain,
            trace=call.trace,
        )
        assembly = await assemble(core, wanted)
        # Written before anything is waited for: a commit of the session would change the view under
        # the reply.
        with call.trace.span("reply") as span:
            reply, reused = replies.encode(
                assembly,
                request.known_context_hash,
                request.known_epoch,
                explained=request.explain,
                tools=request.tools,
            )
            outcome = assemble_pb2.AssembleResponse.Outcome.Name(assembly.outcome)
            span.set("contextengine.outcome", outcome)
            span.set("contextengine.reply.bytes", len(reply))
            span.set("contextengine.reply.items", assembly.joined.total)
            span.set("contextengine.reply.tokens", assembly.tokens)
            span.set("contextengine.reply.reused_tokens", reused)
        announce(core, assembly)
        stands_on = assembly.view.incarnation, assembly.view.revision
        if request.HasField("projection"):
            with call.trace.span("project"):
                reply = await self.projector.beside(reply, assembly, request)
        # A session key may name another session the next time, without a change of this one.
        if not (
            assembly.stored
            or assembly.outcome_reason
            or request.explain
            or request.session.session_key
        ):
            self.answers.keep(question, assembly, stands_on, reply, reused)
        core.meters.tokens_sent.value += assembly.tokens
        core.meters.tokens_reused.value += reused
        if assembly.due and assembly.view.scope.complete:
            await queue_compaction(
                core,
                assembly.view.scope,
                assembly.available,
                call.trace.traceparent(),
                measured=(
                    None
                    if wanted.measured is None
                    else round(wanted.measured / assembly.budget.factor)
                ),
            )
        return reply

    async def compact(
        self, request: compaction_pb2.CompactRequest, call: Call
    ) -> compaction_pb2.CompactResponse:
        """Compacts the stored view."""
        return await compact(self.core, request, call)

    async def commit_compaction(
        self, request: compaction_pb2.CommitCompactionRequest, call: Call
    ) -> compaction_pb2.CommitCompactionResponse:
        """Takes or refuses a proposal."""
        return await commit_compaction(self.core, request, call)

    async def after_turn(
        self, request: life.AfterTurnRequest, call: Call
    ) -> life.AfterTurnResponse:
        """Says that a turn is over and hands over what it added."""
        core = self.core
        before = 0
        if request.HasField("pre_prompt_message_count"):
            before = not_negative(request.pre_prompt_message_count, "pre_prompt_message_count")
            if before > len(request.messages):
                raise InvalidField(
                    "pre_prompt_message_count",
                    f"is {before}, but `messages` has only {len(request.messages)}: give the whole"
                    " list",
                )
        new = await read_in(call, incoming, core, request.messages, "messages", before)
        if request.HasField("current_token_count"):
            not_negative(request.current_token_count, "current_token_count")
        turn = after_turn.Turn(
            messages=new,
            first_index=before,
            key=request_id(request.advancement_key, "advancement_key"),
            request=request_of(request_id(request.request_id), "AfterTurn", new),
            report=(
                report_of(request.usage, sent=replies.estimated_in(request.assembly_id))
                if request.HasField("usage")
                else None
            ),
            budget=await budget_spec(core, request.budget),
            measured=(
                request.current_token_count if request.HasField("current_token_count") else None
            ),
            cause=call.trace.traceparent(),
        )
        address = await core.address(call.caller.tenant, ref_of(request.session))
        done = await after_turn.after_turn(core, address, turn)
        duplicate = done.written.repeated or (
            bool(new) and not any(s.disposition == 1 for s in done.written.stored)
        )
        return life.AfterTurnResponse(
            status=(
                life.AfterTurnResponse.STATUS_DUPLICATE
                if duplicate
                else life.AfterTurnResponse.STATUS_COMMITTED
            ),
            stored=replies.stored_messages(done.written.stored),
            revision=done.written.revision,
            compaction_queued=done.queued,
        )

    async def record_host_change(
        self, request: life.RecordHostChangeRequest, call: Call
    ) -> life.RecordHostChangeResponse:
        """Says what the harness did to its own transcript."""
        core = self.core
        name = required(request.change_id, "change_id", "it makes the change safe to send twice")
        kind = request.WhichOneof("change")
        if kind is None:
            raise InvalidField("change", "is required: rewind, compacted or native_compacted")
        digest = getattr(request, kind).SerializeToString(deterministic=True)
        asked = request_of(name, "RecordHostChange", (), kind.encode() + digest, "change_id")
        assert asked is not None
        address = await core.address(call.caller.tenant, ref_of(request.session))
        async with core.session(address.scope, lock=True) as session:
            core.require(session)
            if kind == "compacted":
                change = request.compacted
                done, row = await host_compaction(
                    core,
                    session,
                    address,
                    asked,
                    change.first_sequence,
                    change.last_sequence,
                    change.summary,
                )
                summary = replies.summary(row) if row is not None else None
                return life.RecordHostChangeResponse(
                    recorded=not done.repeated, revision=done.revision, summary=summary
                )
            if kind == "rewind":
                done = await lifecycle.rewind(
                    core, session, address, asked, request.rewind.after_sequence
                )
            else:
                done = await lifecycle.native_compaction(core, session, address, asked)
        return life.RecordHostChangeResponse(
            recorded=not done.repeated,
            revision=done.revision,
            retired_count=(done.numbers or {}).get("retired", 0),
        )

    async def maintain(self, request: life.MaintainRequest, call: Call) -> life.MaintainResponse:
        """Answers the transcript rewrites that the engine would like; neither shipped engine wants
        any."""
        address = await self.core.address(call.caller.tenant, ref_of(request.session))
        async with self.core.session(address.scope) as session:
            self.core.require(session)
        selected = await self.core.select(address.scope)
        return life.MaintainResponse(
            changed=False, reason=f"{selected.engine.id} rewrites no transcripts"
        )

    async def report_usage(
        self, request: life.ReportUsageRequest, call: Call
    ) -> life.ReportUsageResponse:
        """Says what the provider billed, or refused."""
        core = self.core
        if not request.HasField("usage") and not request.HasField("overflow"):
            raise InvalidField("usage", "is required, or overflow: say what was billed or refused")
        estimated = replies.estimated_in(request.assembly_id)
        if request.assembly_id and not estimated:
            raise InvalidField(
                "assembly_id",
                "is not one of this service's: give AssembleResponse.assembly_id as it was",
            )
        report = report_of(
            request.usage if request.HasField("usage") else None,
            sent=estimated,
            overflow=request.overflow if request.HasField("overflow") else None,
        )
        address = await core.address(call.caller.tenant, ref_of(request.session))
        asked = _asked(request.request_id, "ReportUsage", request)
        async with core.session(address.scope, lock=True) as session:
            core.require(session)
            done = await model_commands.report_usage(core, session, address, report, asked)
            model = session.state.model
            return life.ReportUsageResponse(
                estimated_tokens=round(estimated * model.factor),
                learned_factor=model.learned,
                served_window=model.served_window,
                revision=done.revision,
            )

    async def update_model(
        self, request: life.UpdateModelRequest, call: Call
    ) -> life.UpdateModelResponse:
        """Sets the session's model."""
        core = self.core
        address = await core.address(call.caller.tenant, ref_of(request.session))
        window = not_negative(request.window, "window") if request.HasField("window") else None
        output = (
            not_negative(request.max_output_tokens, "max_output_tokens")
            if request.HasField("max_output_tokens")
            else None
        )
        for name in ("model", "provider"):
            request_id(getattr(request, name), name)
        asked = _asked(request.request_id, "UpdateModel", request)
        async with core.session(address.scope, lock=True) as session:
            done = await model_commands.update_model(
                core, session, address, request.model, request.provider, window, output, asked
            )
            head = core.require(session)
            return life.UpdateModelResponse(
                model=head.model,
                provider=head.provider,
                window=session.state.model.window,
                model_factor=session.state.model.factor,
                revision=done.revision,
            )

    async def get_status(
        self, request: life.GetStatusRequest, call: Call
    ) -> life.GetStatusResponse:
        """Answers how a session is."""
        address = await self.core.address(call.caller.tenant, ref_of(request.session))
        await self.core.reached(
            address.scope, not_negative(request.at_least_revision, "at_least_revision")
        )
        return await status_of(self.core, address.scope)

    async def reset_session(
        self, request: life.ResetSessionRequest, call: Call
    ) -> life.ResetSessionResponse:
        """Empties a session's view."""
        asked = _asked(request.request_id, "ResetSession", request)
        expected = request.expected_revision if request.HasField("expected_revision") else None
        address = await self.core.address(call.caller.tenant, ref_of(request.session))
        async with self.core.session(address.scope, lock=True) as session:
            self.core.require(session)
            done = await lifecycle.reset(self.core, session, address, asked, expected)
        return life.ResetSessionResponse(
            revision=done.revision, retired_count=(done.numbers or {}).get("retired", 0)
        )

    async def end_session(
        self, request: life.EndSessionRequest, call: Call
    ) -> life.EndSessionResponse:
        """Ends a conversation for now."""
        asked = _asked(request.request_id, "EndSession", request)
        expected = request.expected_revision if request.HasField("expected_revision") else None
        address = await self.core.address(call.caller.tenant, ref_of(request.session))
        async with self.core.session(address.scope, lock=True) as session:
            self.core.require(session)
            done = await lifecycle.end(self.core, session, address, asked, expected)
        return life.EndSessionResponse(
            revision=done.revision, ended=bool((done.numbers or {}).get("ended"))
        )

    async def dispose_session(
        self, request: life.DisposeSessionRequest, call: Call
    ) -> life.DisposeSessionResponse:
        """Frees what is held in memory."""
        address = await self.core.address(call.caller.tenant, ref_of(request.session))
        self.answers.forget(address.scope)
        return life.DisposeSessionResponse(disposed=self.core.warm.drop(address.scope))


def _asked(name: str, rpc: str, request: Message) -> Request | None:
    return request_of(request_id(name), rpc, (), request.SerializeToString(deterministic=True))
