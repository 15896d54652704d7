"""Service Projection."""

from __future__ import annotations

import asyncio

from contextengine_proto.v1 import projection_pb2 as pb
from contextengine_server.api.call import Call
from contextengine_server.api.projection_items import list_items, parts_in
from contextengine_server.api.projector import Projector
from contextengine_server.api.reading import (
    budget_spec,
    incoming,
    not_negative,
    prompt_tokens,
    ref_of,
    request_id,
)
from contextengine_server.api.recall import head_of
from contextengine_server.commands.assemble import assemble
from contextengine_server.errors import ContradictoryFields, InvalidField
from contextengine_server.projection.task import Task
from contextengine_server.session.assembly import AssembleCall
from contextengine_server.session.core import SessionCore


class ProjectionService:
    """Thin: reads the request, asks for the assembly, then the projection room."""

    def __init__(self, core: SessionCore, projector: Projector) -> None:
        self.core, self.projector = core, projector

    async def project(self, request: pb.ProjectRequest, call: Call) -> pb.ProjectResponse:
        """Projects a session, or a list as it is."""
        if request.HasField("session") and request.messages:
            raise ContradictoryFields(
                ["session", "messages"], "name the session or give the list to project, not both"
            )
        if not request.HasField("options"):
            raise InvalidField("options", "is required: say at least the target")
        self.projector.check(request.options, "options")
        if request.HasField("session"):
            context = await self._session(request, call)
        elif request.messages:
            context = await self._list(request)
        else:
            raise InvalidField("session", "is required, or messages: say what to project")
        with call.trace.span("project"):
            reply, large = await asyncio.to_thread(
                self.projector.project, context, request.options, "options"
            )
            reply.MergeFromString(large)
            return reply

    async def _session(self, request: pb.ProjectRequest, call: Call) -> Task:
        core, options = self.core, request.options
        for name in ("system_prompt_addition", "epoch"):
            if getattr(request, name):
                raise ContradictoryFields(
                    ["session", name], "a session's own comes from its assembly"
                )
        ref = ref_of(request.session)
        address = await core.address(call.caller.tenant, ref)
        at_least = not_negative(request.at_least_revision, "at_least_revision")
        await core.reached(address.scope, at_least)
        await head_of(core, address.scope)
        wanted = AssembleCall(
            tenant=call.caller.tenant,
            ref=ref,
            budget=await budget_spec(core, request.budget),
            model=options.model,
            provider=options.provider,
            prompt_tokens=await prompt_tokens(core, request.prompt),
            at_least_revision=at_least,
            trace=call.trace,
        )
        return self.projector.task_of(await assemble(core, wanted), request.prompt)

    async def _list(self, request: pb.ProjectRequest) -> Task:
        incoming(
            self.core, request.messages, "messages"
        )  # says what cannot be, as for every message
        await prompt_tokens(self.core, request.prompt)
        request_id(request.epoch, "epoch")
        spec = await budget_spec(self.core, request.budget)
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
