"""One way through the projection room, for Project and for the projection that Assemble answers
beside its items."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from contextengine_proto.v1 import assemble_pb2, host_pb2, message_pb2
from contextengine_proto.v1 import projection_pb2 as pb
from contextengine_server.api import projection_options as options_in
from contextengine_server.api.projection_cache import ProjectionCache
from contextengine_server.api.projection_items import parts_in
from contextengine_server.api.projection_reply import EncodedReply, reply_of
from contextengine_server.errors import FieldViolation, InvalidField, ProjectionTooLarge
from contextengine_server.projection.model import Item, ProjectionImpossible
from contextengine_server.projection.targets import Targets
from contextengine_server.projection.task import Task
from contextengine_server.session.assembly.assembly import Assembly
from contextengine_server.summarize.payload_redaction import redact_payload
from contextengine_server.wire.slots import varint

_FIELD = assemble_pb2.AssembleResponse.DESCRIPTOR.fields_by_name["projection"].number
THREADED_CHARS = 200_000
"""From this many bytes of frames on a projection is made in a thread: redaction alone takes
milliseconds a megabyte."""


class Projector:
    """Projects contexts into the targets of a table. What is made of an item of an assembly stays
    in `cache`."""

    def __init__(self, targets: Targets, cache: ProjectionCache) -> None:
        self.targets, self.cache = targets, cache

    def check(self, options: pb.ProjectionOptions, field: str) -> None:
        """Raises InvalidField for options that cannot be; `field` is where they stand in the
        request."""
        options_in.check_options(self.targets, options, field)

    def check_assemble(self, request: assemble_pb2.AssembleRequest) -> None:
        """Raises InvalidField for a projection that cannot be, before anything is stored."""
        self.check(request.projection, "projection")
        options_in.binding_of(request.projection, "projection")

    def task_of(
        self, assembly: Assembly, prompt: Sequence[message_pb2.Part], current_id: str = ""
    ) -> Task:
        """The context of an assembly. Called by the event loop alone."""
        budget = assembly.budget
        return Task(
            items=self.cache.of(assembly.joined.after(0)),
            prompt=parts_in(prompt),
            current_id=current_id,
            addition=assembly.addition,
            preamble=assembly.preamble,
            breakpoints=0 if assembly.cache_retention == host_pb2.CACHE_RETENTION_NONE else None,
            keep_long=assembly.cache_retention == host_pb2.CACHE_RETENTION_LONG,
            epoch=assembly.settled_epoch,
            fingerprint=assembly.engine.fingerprint,
            engine_id=assembly.engine.id,
            engine_version=assembly.engine.version,
            owns_compaction=assembly.engine.owns_compaction,
            bootstraps=assembly.bootstraps_threads,
            budget=budget.window or budget.available,
            # A final budget has nothing subtracted from it anywhere.
            reserve=None if budget.window else 0,
            model=assembly.target.model,
            provider=assembly.target.provider,
            message_count=assembly.view.message_count,
            bound=assembly.bound,
        )

    def project(self, context: Task, options: pb.ProjectionOptions, field: str) -> EncodedReply:
        """The context in the form that the checked options ask for. Raises ProjectionTooLarge and
        InvalidField."""
        target = options_in.target_of(self.targets, options, field)
        task = options_in.asked(context, options, field)
        try:
            done = target.project(replace(task, redact=redact_payload))
        except ProjectionImpossible as error:
            name = options_in.field_named(error.field, options, field)
            if error.limit:
                raise ProjectionTooLarge(
                    f"{name}: {error}", violations=[FieldViolation(name, str(error))]
                ) from None
            raise InvalidField(name, str(error)) from None
        return reply_of(target, options.renderer or target.renderer_names[0], done)

    async def beside(
        self, assembled: bytes, assembly: Assembly, request: assemble_pb2.AssembleRequest
    ) -> bytes:
        """An encoded AssembleResponse with the field `projection` added."""
        # All that belongs to the assembly is read before anything is waited for: a commit would
        # change its view.
        context = self.task_of(assembly, request.prompt, request.current_message_id)
        if request.HasField("live"):
            # The harness counts in its own list, which may hold more than is shown of it, or less.
            context = replace(
                context,
                items=_following(context.items, assembly),
                message_count=len(request.live.messages),
            )
        asked = context, request.projection, "projection"
        if sum(map(len, assembly.joined.after(0))) > THREADED_CHARS:
            reply, large = await asyncio.to_thread(self.project, *asked)
        else:
            reply, large = self.project(*asked)
        small = reply.SerializeToString()
        return b"".join(
            (assembled, varint(_FIELD << 3 | 2), varint(len(small) + len(large)), small, large)
        )


def _following(items: Sequence[Item], assembly: Assembly) -> list[Item]:
    """The items, those that are not stored with the sequences that they would get: a binding tells
    by these what its thread has seen."""
    atoms = assembly.view.atoms
    would = {entry.live_index: entry.sequence for atom in atoms for entry in atom.entries}
    return [
        (
            item
            if item.live_index < 0
            else replace(item, sequence=max(0, would.get(item.live_index, 0)), cache=None)
        )
        for item in items
    ]
