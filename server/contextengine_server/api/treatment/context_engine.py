"""Service ContextEngine where operators named sessions that are ignored or stateless
(docs/semantics.md#sessions-kept-apart). What would write such a session answers as if nothing had
been said: an empty reply, so that a harness goes on as it is."""

from __future__ import annotations

from msgspec.structs import replace

from contextengine_proto.v1 import assemble_pb2, compaction_pb2, message_pb2, subagent_pb2
from contextengine_proto.v1 import lifecycle_pb2 as life
from contextengine_server.api import replies
from contextengine_server.api.context_engine import AssembleWriter, ContextEngineService
from contextengine_server.api.messages import ReadLimits, ref_of
from contextengine_server.api.pipeline.call import Call
from contextengine_server.api.projector import Projector
from contextengine_server.commands.context_engine import ContextEngineCommands
from contextengine_server.commands.turn.treatment import FindTreatment
from contextengine_server.errors import SessionNotFound
from contextengine_server.fairness.usage import Uses
from contextengine_server.session.assembly.treatment import Treatment


class ContextEngineWithTreatment(ContextEngineService):
    """The calls, each asking first how its session is handled."""

    def __init__(
        self,
        commands: ContextEngineCommands,
        limits: ReadLimits,
        projector: Projector,
        uses: Uses,
        treatment: FindTreatment,
    ) -> None:
        super().__init__(commands, limits, projector, uses)
        self._find = treatment

    async def _treatment(self, session: message_pb2.SessionRef, call: Call) -> Treatment:
        if not session.agent_id:
            return Treatment.KEPT  # refused, or without a scope, as ever
        return await self._find.run(call.caller.tenant, ref_of(session))

    async def bootstrap(self, request: life.BootstrapRequest, call: Call) -> life.BootstrapResponse:
        """Names the engine; nothing is created."""
        if not await self._treatment(request.session, call):
            return await super().bootstrap(request, call)
        engine = await self._find.engine(call.caller.tenant, ref_of(request.session))
        named = request.session.session_id or request.session.session_key
        capabilities = tuple(request.host.capabilities)
        return life.BootstrapResponse(
            engine=replies.engine_info(engine, capabilities), session_id=named
        )

    async def ingest(self, request: life.IngestRequest, call: Call) -> life.IngestResponse:
        """Stores nothing."""
        if await self._treatment(request.session, call):
            return life.IngestResponse()
        return await super().ingest(request, call)

    async def ingest_batch(
        self, request: life.IngestBatchRequest, call: Call
    ) -> life.IngestBatchResponse:
        """Stores nothing."""
        if await self._treatment(request.session, call):
            return life.IngestBatchResponse()
        return await super().ingest_batch(request, call)

    async def assemble(self, request: assemble_pb2.AssembleRequest, call: Call) -> bytes:
        """Answers what was sent, behind what is stored of a stateless session."""
        treatment = await self._treatment(request.session, call)
        if not treatment:
            return await super().assemble(request, call)
        wanted = replace(await self._assemble_call(request, call), treatment=treatment)
        projects = request.HasField("projection")
        writer = AssembleWriter(request, call.trace, self.projector, projects)
        question = call.caller.tenant, call.raw
        return await self.commands.assemble.run(wanted, question, writer)

    async def after_turn(
        self, request: life.AfterTurnRequest, call: Call
    ) -> life.AfterTurnResponse:
        """Stores nothing."""
        if await self._treatment(request.session, call):
            return life.AfterTurnResponse()
        return await super().after_turn(request, call)

    async def report_usage(
        self, request: life.ReportUsageRequest, call: Call
    ) -> life.ReportUsageResponse:
        """Notes nothing."""
        if await self._treatment(request.session, call):
            return life.ReportUsageResponse()
        return await super().report_usage(request, call)

    async def update_model(
        self, request: life.UpdateModelRequest, call: Call
    ) -> life.UpdateModelResponse:
        """Notes nothing."""
        if await self._treatment(request.session, call):
            return life.UpdateModelResponse()
        return await super().update_model(request, call)

    async def record_host_change(
        self, request: life.RecordHostChangeRequest, call: Call
    ) -> life.RecordHostChangeResponse:
        """Notes nothing."""
        if await self._treatment(request.session, call):
            return life.RecordHostChangeResponse()
        return await super().record_host_change(request, call)

    async def compact(self, request: compaction_pb2.CompactRequest, call: Call) -> bytes:
        """Makes nothing."""
        treatment = await self._treatment(request.session, call)
        if not treatment:
            return await super().compact(request, call)
        reason = f"nothing to compact: the session is {treatment}"
        return compaction_pb2.CompactResponse(reason=reason, ok=True).SerializeToString()

    async def should_compact(
        self, request: compaction_pb2.ShouldCompactRequest, call: Call
    ) -> compaction_pb2.ShouldCompactResponse:
        """Has nothing to compact."""
        treatment = await self._treatment(request.session, call)
        if not treatment:
            return await super().should_compact(request, call)
        reason = f"nothing to compact: the session is {treatment}"
        return compaction_pb2.ShouldCompactResponse(reason=reason)

    async def call_tool(self, request: life.CallToolRequest, call: Call) -> life.CallToolResponse:
        """Runs the tool, and notes nothing."""
        treatment = await self._treatment(request.session, call)
        return await self._call_tool(request, call, noted=not treatment)

    async def maintain(self, request: life.MaintainRequest, call: Call) -> life.MaintainResponse:
        """Wants nothing."""
        treatment = await self._treatment(request.session, call)
        if not treatment:
            return await super().maintain(request, call)
        return life.MaintainResponse(reason=f"the session is {treatment}")

    async def reset_session(
        self, request: life.ResetSessionRequest, call: Call
    ) -> life.ResetSessionResponse:
        """Changes nothing."""
        if await self._treatment(request.session, call):
            return life.ResetSessionResponse()
        return await super().reset_session(request, call)

    async def end_session(
        self, request: life.EndSessionRequest, call: Call
    ) -> life.EndSessionResponse:
        """Changes nothing."""
        if await self._treatment(request.session, call):
            return life.EndSessionResponse()
        return await super().end_session(request, call)

    async def prepare_subagent_spawn(
        self, request: subagent_pb2.PrepareSubagentSpawnRequest, call: Call
    ) -> subagent_pb2.PrepareSubagentSpawnResponse:
        """Prepares nothing, where the parent or the child is handled apart."""
        for session in (request.parent, request.child):
            if await self._treatment(session, call):
                return subagent_pb2.PrepareSubagentSpawnResponse()
        return await super().prepare_subagent_spawn(request, call)

    async def get_status(
        self, request: life.GetStatusRequest, call: Call
    ) -> life.GetStatusResponse:
        """Says how the session is handled, besides."""
        treatment = await self._treatment(request.session, call)
        named = request.session.session_id or request.session.session_key
        said = life.GetStatusResponse(session_id=named)
        if treatment is not Treatment.IGNORED:
            try:
                said = await super().get_status(request, call)
            except SessionNotFound:
                if not treatment:
                    raise
        said.treatment = treatment.value
        return said
