"""Projection to wire: the answer, with its large field apart."""

from __future__ import annotations

from collections.abc import Sequence

from contextengine_proto.v1 import projection_pb2 as pb
from contextengine_server.api.projection_options import state_of
from contextengine_server.projection.model import Loss
from contextengine_server.projection.projection import Projection, Stats
from contextengine_server.projection.target import Target
from contextengine_server.projection.thread import Binding
from contextengine_server.wire.slots import block

_PROMPT = pb.ProjectResponse.DESCRIPTOR.fields_by_name["prompt"].number
_MESSAGES = pb.ProjectResponse.DESCRIPTOR.fields_by_name["messages_json"].number

EncodedReply = tuple[pb.ProjectResponse, bytes]
"""An answer, and its one large field, encoded: it is copied into the reply once, and not into the
message before."""


def reply_of(target: Target, renderer: str, done: Projection) -> EncodedReply:
    """The answer for a projection."""
    reply = pb.ProjectResponse(
        target=target.number,  # type: ignore[arg-type]
        renderer=renderer,
        instructions=done.instructions,
        system_json=done.system_json,
        inject_items_json=done.inject_items_json,
        action=done.action.value,  # type: ignore[arg-type]
        action_reason=done.reason,
        binding=_binding(done.binding) if done.binding is not None else None,
        losses=_losses(done.losses),
        estimated_tokens=done.estimated_tokens,
        pre_prompt_message_count=done.message_count,
        warnings=done.warnings,
        stats=_stats(done.stats) if done.stats is not None else None,
        turn_input_json=done.turn_input_json,
        target_name="" if target.number else target.name,
    )
    if done.context_range is not None:
        reply.context_range.start, reply.context_range.end = done.context_range
    large = block(_PROMPT, done.prompt.encode()) if done.prompt else b""
    return reply, large + (block(_MESSAGES, done.messages_json) if done.messages_json else b"")


def _binding(binding: Binding) -> pb.ProjectionBinding:
    return pb.ProjectionBinding(
        schema_version=binding.schema,
        thread_id=binding.thread_id,
        engine_id=binding.engine_id,
        policy_fingerprint=binding.policy,
        epoch=binding.epoch,
        fingerprint=binding.fingerprint,
        dynamic_tools_fingerprint=binding.tools,
        last_sequence=binding.last_sequence,
        first_sequence=binding.first_sequence,
        state=state_of(binding),
    )


def _stats(stats: Stats) -> pb.ProjectResponse.Stats:
    return pb.ProjectResponse.Stats(
        records=stats.records,
        inlined=stats.inlined,
        stubbed=stats.stubbed,
        omitted=stats.omitted,
        context_chars=stats.context_chars,
        prompt_chars=stats.prompt_chars,
        prompt_utf16_units=stats.prompt_units,
        instructions_chars=stats.instructions_chars,
        redactions=stats.redactions,
    )


def _losses(losses: Sequence[Loss]) -> list[pb.ProjectResponse.Loss]:
    return [
        pb.ProjectResponse.Loss(item_index=loss.index, what=loss.what, rule=loss.rule)
        for loss in losses
    ]
