"""The part of service ContextEngine that compacts."""

from __future__ import annotations

from contextengine_proto.v1 import compaction_pb2 as pb
from contextengine_server.api.messages import ReadLimits, read_many, ref_of, request_id
from contextengine_server.api.pipeline.call import Call
from contextengine_server.api.requests import budget_spec, optional_tokens, request_in
from contextengine_server.commands.compaction.compact import CompactCall, CompactDone
from contextengine_server.commands.compaction.live_list import LiveList
from contextengine_server.commands.compaction.should_compact import ShouldCompactCall
from contextengine_server.commands.context_engine import ContextEngineCommands
from contextengine_server.compaction.proposal import ProposalOutcome
from contextengine_server.context.budget import in_model
from contextengine_server.errors import ContradictoryFields, InvalidField
from contextengine_server.summarize.request import Steering
from contextengine_server.wire.slots import item_of, summary_info


class CompactionCalls:
    """Compact, CommitCompaction and ShouldCompact."""

    commands: ContextEngineCommands
    limits: ReadLimits

    async def compact(self, request: pb.CompactRequest, call: Call) -> bytes:
        """Compacts the stored view, delegates it, proposes it, takes it back, or says why not."""
        wanted = _wanted(request, await self._live(request, call))
        return await self.commands.compact.run(
            call.caller.tenant, ref_of(request.session), wanted, _encoded, call.trace
        )

    async def commit_compaction(
        self, request: pb.CommitCompactionRequest, call: Call
    ) -> pb.CommitCompactionResponse:
        """Takes or refuses a proposal."""
        proposal_id = request_id(request.proposal_id, "proposal_id")
        done = await self.commands.commit_compaction.run(
            call.caller.tenant,
            ref_of(request.session),
            proposal_id,
            request.accept,
            request.refuse_reason,
        )
        return pb.CommitCompactionResponse(
            committed=done.decision is ProposalOutcome.COMMITTED,
            reason=done.decision.value,
            generation=done.generation,
            revision=done.revision,
        )

    async def should_compact(
        self, request: pb.ShouldCompactRequest, call: Call
    ) -> pb.ShouldCompactResponse:
        """Says whether a compaction is due, and why."""
        asked = ShouldCompactCall(
            budget_spec(request.budget),
            optional_tokens(request, "prompt_tokens"),
            request.preflight,
            await self._live(request, call),
        )
        found = await self.commands.should_compact.run(
            call.caller.tenant, ref_of(request.session), asked
        )
        return pb.ShouldCompactResponse(
            should_compact=found.due,
            reason=found.reason,
            tokens=found.tokens,
            threshold_tokens=found.threshold,
            has_content=found.has_content,
            awaiting_usage=found.awaiting,
        )

    async def _live(
        self, request: pb.CompactRequest | pb.ShouldCompactRequest, call: Call
    ) -> LiveList | None:
        """The harness's own list."""
        if not request.HasField("live"):
            return None
        listed = request.live.messages
        messages = await read_many(call, self.limits, listed, "live.messages")
        return LiveList(messages, request.live.store_new, request.live.takes_back)


def _wanted(request: pb.CompactRequest, live: LiveList | None) -> CompactCall:
    if request.target not in pb.CompactionTarget.values():
        raise InvalidField(
            "target", f"is {request.target}: give one of {', '.join(pb.CompactionTarget.keys())}"
        )
    undo = request.HasField("undo_to_generation")
    for name in ("force", "propose_only", "no_wait") if undo else ():
        if getattr(request, name):
            raise ContradictoryFields(
                ["undo_to_generation", name],
                "take compactions back in a call of its own, then compact",
            )
    for name in ("undo_to_generation", "propose_only") if request.redo else ():
        if request.HasField(name) if name == "undo_to_generation" else getattr(request, name):
            raise ContradictoryFields(
                ["redo", name], "make summaries again in a call of its own, then compact"
            )
    if request.propose_only and request.no_wait:
        raise ContradictoryFields(
            ["propose_only", "no_wait"],
            "a proposal is worked out before it is answered: wait for it, or do not propose",
        )
    return CompactCall(
        budget=budget_spec(request.budget),
        force=request.force,
        to_threshold=request.target == pb.COMPACTION_TARGET_THRESHOLD,
        measured=optional_tokens(request, "current_token_count"),
        steering=Steering(request.focus, request.memory_context),
        live=live,
        propose_only=request.propose_only,
        return_list=request.return_list,
        no_wait=request.no_wait,
        undo_to_generation=request.undo_to_generation if undo else None,
        redo=request.redo,
        expected_revision=(
            request.expected_revision if request.HasField("expected_revision") else None
        ),
        request=request_in(request, "Compact"),
    )


def _encoded(done: CompactDone) -> bytes:
    """The reply. Its tokens are the model's."""
    made, proposal, factor = done.done, done.proposal, done.factor
    reply = pb.CompactResponse(
        compacted=made.compacted,
        reason=made.why,
        tokens_before=in_model(made.before, factor),
        tokens_after=None if done.elsewhere else in_model(made.after, factor),
        summaries=[summary_info(row) for row in made.summaries],
        generation=done.generation,
        revision=done.revision,
        first_kept_sequence=done.first_kept_sequence,
        first_kept_message_id=done.first_kept_id,
        passes=len(made.summaries),
        ok=not made.error,
        summary_text=made.summaries[0].text if len(made.summaries) == 1 else "",
    )
    if proposal is not None:
        reply.compacted, reply.passes, reply.changed = False, 0, bool(proposal.id)
        reply.first_kept_sequence, reply.first_kept_message_id = 0, ""
        if proposal.id:
            reply.proposal_id, reply.reason = proposal.id, "proposed"
            reply.proposal_expire_time.FromMilliseconds(proposal.expires_ms)
    if done.changed is not None:
        reply.changed = done.changed
    reply.items.extend(item_of(slot.frame) for slot in done.shown.slots)
    reply.system_prompt_addition = done.shown.addition
    if done.delegation is not None:
        said = reply.delegation
        said.first_sequence = done.delegation.first_sequence
        said.last_sequence = done.delegation.last_sequence
        said.first_message_id, said.last_message_id = done.delegation.ids
        said.instructions = done.delegation.instructions
        said.target_tokens = done.delegation.target_tokens
    return reply.SerializeToString()
