"""Compact: read, run or delegate, answer honestly (contract §5)."""

from __future__ import annotations

import structlog

from contextengine_proto.v1 import compaction_pb2 as pb
from contextengine_server.api import unserved
from contextengine_server.api.call import Call
from contextengine_server.api.reading import budget_spec, not_negative, ref_of, request_id, required
from contextengine_server.compaction.compactor import (
    Compacted,
    Wanted,
    compacted,
    next_step,
    reached,
)
from contextengine_server.compaction.compactor import compact as run
from contextengine_server.compaction.jobs import COMPACTS, available_of, queue_compaction
from contextengine_server.compaction.proposal import Answer, Proposal, decide, propose
from contextengine_server.compaction.undo import undo
from contextengine_server.context.budget import cell
from contextengine_server.context.plan import segment_slots
from contextengine_server.engines.contract import CompactionStep, Engine
from contextengine_server.errors import (
    ContradictoryFields,
    InvalidField,
    RevisionMismatch,
    Violation,
)
from contextengine_server.session.append import Request, checked, request_of
from contextengine_server.session.cache import Session
from contextengine_server.session.core import Address, SessionCore
from contextengine_server.store.rows import SessionHead, StoredReply
from contextengine_server.telemetry.tracing import under
from contextengine_server.wire.frames import item_of
from contextengine_server.wire.shaping import summary_info

INSTRUCTIONS = (
    "Summarize the messages of the range for the agent that will go on with the task: goal,"
    " constraints and preferences, progress, key decisions, next steps, and exact identifiers"
    " (paths, ids, hashes, numbers) that it will need."
)

log = structlog.get_logger("contextengine.compact")


async def compact(core: SessionCore, request: pb.CompactRequest, call: Call) -> pb.CompactResponse:
    """Compacts the stored view, delegates it, or says why not."""
    unserved.refuse_fields(request)
    if request.target not in pb.CompactionTarget.values():
        raise InvalidField(
            "target", f"is {request.target}: give one of {', '.join(pb.CompactionTarget.keys())}"
        )
    address = await core.address(call.caller.tenant, ref_of(request.session))
    asked = request_of(
        request_id(request.request_id), "Compact", (), request.SerializeToString(deterministic=True)
    )
    if asked is not None:
        known = await core.store.reply(address.scope, asked.id)
        if known is not None:
            return pb.CompactResponse.FromString(checked(known, asked).reply)
    if request.HasField("undo_to_generation"):
        reply = await _undo(core, request, address)
        await _remember(core, address, asked, reply)
        return reply
    if request.propose_only and request.no_wait:
        raise ContradictoryFields(
            ["propose_only", "no_wait"],
            "a proposal is worked out before it is answered: wait for it, or do not propose",
        )
    spec = await budget_spec(core, request.budget)
    measured = None
    if request.HasField("current_token_count"):
        measured = not_negative(request.current_token_count, "current_token_count")
    engine = (await core.select(address.scope)).engine
    async with core.session(address.scope) as session:
        _require_revision(request, core.require(session))
        available = available_of(core, session, spec)
        factor = session.state.model.factor
        wanted = Wanted(
            available=available,
            force=request.force,
            to_threshold=request.target == pb.COMPACTION_TARGET_THRESHOLD,
            measured=None if measured is None else round(measured / factor),
            focus=request.focus,
        )
        if not engine.owns_compaction and COMPACTS in session.state.capabilities:
            return await _delegated(core, address, engine, wanted, factor)
        if request.propose_only:
            reach = engine.reach(cell(available))
            async with session.compaction:
                with call.trace.span("compact") as span, under(span):
                    proposal = await propose(core, address, engine, wanted, reach)
                    compacted(span, proposal.done)
            reply = await _proposed(core, session, engine, request, wanted, proposal)
            await _remember(core, address, asked, reply)
            return reply
        if request.no_wait:
            await queue_compaction(
                core, address.scope, available, call.trace.traceparent(), asked=wanted
            )
            return _deferred(session, "deferred to background")
        joining = session.compaction.locked()
        generation, tokens = core.require(session).generation, session.view.view_tokens()
        async with session.compaction:
            if asked is not None and joining:
                known = await core.store.reply(address.scope, asked.id)
                if known is not None:
                    return pb.CompactResponse.FromString(checked(known, asked).reply)
            made = [
                summary for summary in session.live_summaries if summary.generation > generation
            ]
            if made and reached(core, engine, session.view, wanted):
                done = Compacted("", tokens, session.view.view_tokens())
            else:
                _require_revision(request, core.require(session))
                with call.trace.span("compact") as span, under(span):
                    done = await run(core, address, engine, wanted)
                    compacted(span, done)
            if made:
                done = Compacted("", tokens, done.after, [*made, *done.summaries])
            reply = await _reply(core, session, done, factor)
            await _remember(core, address, asked, reply)
        return reply


async def commit_compaction(
    core: SessionCore, request: pb.CommitCompactionRequest, call: Call
) -> pb.CommitCompactionResponse:
    """Takes or refuses a proposal."""
    address = await core.address(call.caller.tenant, ref_of(request.session))
    proposal_id = required(request.proposal_id, "proposal_id", "Compact{propose_only} answered it")
    async with core.session(address.scope, lock=True) as session:
        core.require(session)
        answer = await decide(core, session, proposal_id, request.accept)
        if answer is Answer.REFUSED and request.refuse_reason:
            log.info(
                "proposal refused", session=session.scope.session, why=request.refuse_reason[:200]
            )
        return pb.CommitCompactionResponse(
            committed=answer is Answer.COMMITTED,
            reason=answer.value,
            generation=core.require(session).generation,
            revision=session.revision,
        )


async def _proposed(
    core: SessionCore,
    session: Session,
    engine: Engine,
    request: pb.CompactRequest,
    wanted: Wanted,
    proposal: Proposal,
) -> pb.CompactResponse:
    """What would be done, and by what name it can be taken."""
    reply = await _reply(core, session, proposal.done, session.state.model.factor)
    reply.compacted, reply.passes, reply.changed = False, 0, bool(proposal.id)
    reply.first_kept_sequence = 0
    if proposal.id:
        reply.proposal_id = proposal.id
        reply.proposal_expire_time.FromMilliseconds(proposal.expires_ms)
        reply.reason = "proposed"
    if request.return_list:
        view = proposal.view
        said = core.text_tokens(engine.addition(view.summaries))
        plan = engine.plan(view, cell(max(0, wanted.available - said)))
        slots = [slot for segment in plan.segments for slot in segment_slots(segment, view)]
        reply.items.extend(item_of(slot.frame) for slot in slots)
    return reply


async def _remember(
    core: SessionCore, address: Address, asked: Request | None, reply: pb.CompactResponse
) -> None:
    """The same request again gets the same answer."""
    if asked is not None:
        await core.store.remember(
            address.scope, StoredReply(asked.id, asked.digest, reply.SerializeToString())
        )


async def _undo(
    core: SessionCore, request: pb.CompactRequest, address: Address
) -> pb.CompactResponse:
    """Takes compactions back, and says what the view is without them."""
    for name in ("force", "propose_only", "no_wait"):
        if getattr(request, name):
            raise ContradictoryFields(
                ["undo_to_generation", name],
                "take compactions back in a call of its own, then compact",
            )
    expected = request.expected_revision if request.HasField("expected_revision") else None
    async with core.session(address.scope, lock=True) as session:
        core.require(session)
        before, factor = session.view.view_tokens(), session.state.model.factor
        await undo(core, session, address, request.undo_to_generation, expected)
        done = Compacted("undone", before, session.view.view_tokens())
        return await _reply(core, session, done, factor)


def _require_revision(request: pb.CompactRequest, head: SessionHead) -> None:
    if request.HasField("expected_revision") and request.expected_revision != head.revision:
        raise RevisionMismatch(
            f"expected_revision: {request.expected_revision} was expected, the session is at"
            f" {head.revision}: read it again",
            violations=[Violation("expected_revision", f"the session is at {head.revision}")],
            metadata={"expected": str(request.expected_revision), "actual": str(head.revision)},
        )


def _deferred(session: Session, reason: str) -> pb.CompactResponse:
    tokens = round(session.view.view_tokens() * session.state.model.factor)
    head = session.head
    return pb.CompactResponse(
        reason=reason,
        tokens_before=tokens,
        generation=head.generation if head is not None else 0,
        revision=session.revision,
        ok=True,
    )


async def _delegated(
    core: SessionCore, address: Address, engine: Engine, wanted: Wanted, factor: float
) -> pb.CompactResponse:
    """The host compacts: which range, into what."""
    async with core.session(address.scope, None) as session:
        step = next_step(core, engine, session.view, wanted, forced=wanted.force, session=session)
        if not isinstance(step, CompactionStep):
            return _deferred(session, step.reason)
        reply = _deferred(session, "delegated")
        behind = (
            session.view.atom(step.last + 1).first if step.last + 1 < session.view.steps else None
        )
        reply.delegation.first_sequence = session.view.atom(step.first).first
        reply.delegation.last_sequence = (
            behind - 1 if behind is not None else session.view.last_sequence
        )
        reply.delegation.instructions = INSTRUCTIONS + (
            f" Keep in sight: {wanted.focus}" if wanted.focus else ""
        )
        reply.delegation.target_tokens = round(step.target_tokens * factor)
        return reply


async def _first_kept(core: SessionCore, session: Session) -> int:
    """The first sequence behind the summaries; 0 where nothing follows them."""
    view = session.view
    if not view.summaries:
        return (
            view.atom(view.leading).first
            if view.steps > view.leading and view.holds(view.leading)
            else 0
        )
    row = await core.store.atom_from(session.scope, view.summaries[-1].span_end)
    return row.sequence if row is not None else 0


async def _reply(
    core: SessionCore, session: Session, done: Compacted, factor: float
) -> pb.CompactResponse:
    head = session.head
    return pb.CompactResponse(
        compacted=done.compacted,
        reason=done.reason,
        tokens_before=round(done.before * factor),
        tokens_after=round(done.after * factor),
        summaries=[summary_info(row) for row in done.summaries],
        generation=head.generation if head is not None else 0,
        revision=session.revision,
        first_kept_sequence=await _first_kept(core, session),
        passes=len(done.summaries),
        ok=True,
        summary_text=done.summaries[0].text if len(done.summaries) == 1 else "",
    )
