"""Service Projection."""

from __future__ import annotations

import asyncio

from contextengine_proto.v1 import projection_pb2 as pb
from contextengine_server.api.messages import ReadLimits, incoming, ref_of, request_id
from contextengine_server.api.pipeline.call import Call
from contextengine_server.api.projection_items import list_items, parts_in
from contextengine_server.api.projection_options import bound_id
from contextengine_server.api.projector import Projector
from contextengine_server.api.requests import budget_spec, not_negative, prompt_of
from contextengine_server.commands.project import Project
from contextengine_server.errors import ContradictoryFields, InvalidField
from contextengine_server.projection.task import Task
from contextengine_server.session.assembly.assembly import AssembleCall


class ProjectionService:
    """Reads the request, runs the command, and has the projector write the reply."""

    def __init__(self, project: Project, limits: ReadLimits, projector: Projector) -> None:
        self._project, self._limits, self._projector = project, limits, projector

    async def project(self, request: pb.ProjectRequest, call: Call) -> pb.ProjectResponse:
        """Projects a session, or a list as it is."""
        if request.HasField("session") and request.messages:
            raise ContradictoryFields(
                ["session", "messages"], "name the session or give the list to project, not both"
            )
        if not request.HasField("options"):
            raise InvalidField("options", "is required: say at least the target")
        self._projector.check(request.options, "options")
        if request.HasField("session"):
            context = await self._session(request, call)
        else:
            context = self._list(request)
        with call.trace.span("project"):
            reply, large = await asyncio.to_thread(
                self._projector.project, context, request.options, "options"
            )
            reply.MergeFromString(large)
            return reply

    async def _session(self, request: pb.ProjectRequest, call: Call) -> Task:
        options = request.options
        for name in ("system_prompt_addition", "epoch"):
            if getattr(request, name):
                raise ContradictoryFields(
                    ["session", name], "a session's own comes from its assembly"
                )
        wanted = AssembleCall(
            tenant=call.caller.tenant,
            ref=ref_of(request.session),
            budget=budget_spec(request.budget),
            model=options.model,
            provider=options.provider,
            prompt=prompt_of(request.prompt),
            at_least_revision=not_negative(request.at_least_revision, "at_least_revision"),
            trace=call.trace,
            bound_id=bound_id(options, "options"),
        )
        return self._projector.task_of(await self._project.run(wanted), request.prompt)

    def _list(self, request: pb.ProjectRequest) -> Task:
        # Says what cannot be, as for every message.
        incoming(self._limits, request.messages, "messages")
        prompt_of(request.prompt)
        request_id(request.epoch, "epoch")
        spec = budget_spec(request.budget)
        final = spec.message_tokens is not None
        return Task(
            items=list_items(request.messages),
            prompt=parts_in(request.prompt),
            addition=request.system_prompt_addition,
            epoch=request.epoch,
            budget=spec.message_tokens if final else spec.window,
            reserve=0 if final else None,
            message_count=len(request.messages),
        )
