"""Compact: the stored view is compacted, handed to the host to compact, proposed, or put back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from contextengine_server.compaction.compactor import Compactor
from contextengine_server.compaction.proposal import Proposal, Proposals
from contextengine_server.compaction.queue import CompactionQueue
from contextengine_server.compaction.remake import Remake
from contextengine_server.compaction.request import (
    DEFERRED,
    Compacted,
    CompactionRequest,
    describe,
)
from contextengine_server.compaction.undo import Undo
from contextengine_server.context.budget import (
    ModelTokens,
    ReferenceTokens,
    cell,
    in_model,
)
from contextengine_server.context.message import Slot
from contextengine_server.context.plan import segment_slots
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import View
from contextengine_server.engines.contract import CompactionStep, Engine
from contextengine_server.engines.host_capabilities import COMPACTS
from contextengine_server.errors import EngineFailed, FieldViolation, RevisionMismatch
from contextengine_server.session.address import Address, Addresses, Ref
from contextengine_server.session.assembly.addition import (
    addition_of,
)
from contextengine_server.session.assembly.budget import (
    BudgetDefaults,
    BudgetSpec,
    available_of,
    counted_spec,
)
from contextengine_server.session.assembly.plan import draft_of
from contextengine_server.session.assembly.pressure import uncounted_in
from contextengine_server.session.encoding import Encoding
from contextengine_server.session.receipt import Request, checked
from contextengine_server.session.rehydration.reads import bring
from contextengine_server.session.rehydration.reminders import Reminders, reminders_of
from contextengine_server.session.selection import Selection
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import SessionHead, StoredReply
from contextengine_server.telemetry.tracing import Trace, under

INSTRUCTIONS = (
    "Summarize the messages of the range for the agent that will go on with the task: goal,"
    " constraints and preferences, progress, key decisions, next steps, and exact identifiers"
    " (paths, ids, hashes, numbers) that it will need."
)
"""What a host that compacts by itself is told to do."""


class CompactCall(msgspec.Struct, frozen=True):
    """What is asked for."""

    budget: BudgetSpec = BudgetSpec()
    force: bool = False
    to_threshold: bool = False
    measured: ModelTokens | None = None
    """The whole prompt as the harness measured it."""
    focus: str = ""
    propose_only: bool = False
    return_list: bool = False
    """With a proposal: the list as it would be."""
    no_wait: bool = False
    undo_to_generation: int | None = None
    redo: bool = False
    """Compact nothing; make summaries again that stood in for better ones."""
    expected_revision: int | None = None
    request: Request | None = None


class NextRequest(msgspec.Struct, frozen=True):
    """What the next request comes to. Tokens in the reference encoding."""

    tokens: int
    """Of its items, and of the addition to the system prompt."""
    total: int
    """Of all messages of the view, shown or not."""

    def smaller_than(self, before: NextRequest) -> bool:
        """True where it is, apart from what was said meanwhile."""
        return self.tokens - max(0, self.total - before.total) < before.tokens


class Delegation(msgspec.Struct, frozen=True):
    """What the host is to summarize."""

    first_sequence: int
    last_sequence: int
    instructions: str
    target_tokens: ModelTokens


class CompactDone(msgspec.Struct, frozen=True):
    """What became of it. Tokens in the reference encoding, but for a delegation's."""

    done: Compacted
    factor: float
    """The model's tokens per token of the reference encoding."""
    generation: int
    revision: int
    first_kept_sequence: int = 0
    proposal: Proposal | None = None
    shown: Sequence[Slot] = ()
    delegation: Delegation | None = None
    elsewhere: bool = False
    """True where nothing ran here: it is not known what the view will come to."""


Encode = Callable[[CompactDone], bytes]
"""The reply as it is kept for the same request."""


class Compact(msgspec.Struct, frozen=True):
    """Compacts sessions when asked to."""

    addresses: Addresses
    sessions: Sessions
    store: Store
    selection: Selection
    budgets: BudgetDefaults
    compactor: Compactor
    proposals: Proposals
    undo: Undo
    remake: Remake
    queue: CompactionQueue

    async def run(
        self, tenant: str, ref: Ref, call: CompactCall, encode: Encode, trace: Trace
    ) -> bytes:
        """The reply, encoded: the same request again gets the same. Raises SessionNotFound,
        RevisionMismatch, EngineFailed and what is wrong with the budget."""
        address = await self.addresses.find(tenant, ref)
        known = await self._known(address.scope, call.request)
        if known is not None:
            return known
        if call.undo_to_generation is not None:
            done = await self._undo(address, call, call.undo_to_generation)
            return await self._remember(address.scope, call.request, encode(done))
        encoding = await self.sessions.encoding_of(address.scope)
        spec = await counted_spec(call.budget, encoding)
        engine = (await self.selection.engine_for(address.scope, address.key)).engine
        async with self.sessions.open(address.scope) as session:
            _require_revision(call, session.require())
            factor = session.state.model.factor
            available = available_of(session, self.budgets, spec)
            wanted = CompactionRequest(
                available=available,
                force=call.force,
                to_threshold=call.to_threshold,
                uncounted=uncounted_in(call.measured, session, engine, spec, available),
                focus=call.focus,
            )
            if call.redo and call.no_wait:
                await self.queue.add_remake(address.scope, trace.traceparent())
                return encode(_nothing(session, DEFERRED))
            if call.redo:
                return await self._redo(session, address, engine, call, wanted, encode, trace)
            if not engine.owns_compaction and COMPACTS in session.state.capabilities:
                return encode(await self._delegate(address, engine, wanted, factor))
            if call.propose_only:
                done = await self._propose(session, address, engine, call, wanted, trace)
                return await self._remember(address.scope, call.request, encode(done))
            if call.no_wait:
                await self.queue.add(
                    address.scope, wanted.available, trace.traceparent(), asked=wanted
                )
                return encode(_nothing(session, DEFERRED))
            return await self._compact(session, address, engine, call, wanted, encode, trace)

    async def _compact(
        self,
        session: Session,
        address: Address,
        engine: Engine,
        call: CompactCall,
        wanted: CompactionRequest,
        encode: Encode,
        trace: Trace,
    ) -> bytes:
        """Compacts here. A call that comes while another compacts takes what that made for its
        own."""
        joining, factor = session.compaction.locked(), session.state.model.factor
        before = await self._next_request(address.scope, engine, wanted)
        generation = session.require().generation
        tokens = ReferenceTokens(session.view.view_tokens())
        async with session.compaction:
            known = await self._known(address.scope, call.request) if joining else None
            if known is not None:
                return known
            made = [
                one
                for one in session.live_summaries
                if one.generation > generation and not one.remakes
            ]
            if made and self.compactor.reached(engine, session.encoding, session.view, wanted):
                done = Compacted("", tokens, ReferenceTokens(session.view.view_tokens()))
            else:
                _require_revision(call, session.require())
                with trace.span("compact") as span, under(span):
                    done = await self.compactor.compact(address, engine, wanted)
                    describe(span, done)
            if made:
                done = Compacted("", tokens, done.after, [*made, *done.summaries], done.error)
            if done.summaries:
                after = await self._next_request(address.scope, engine, wanted)
                done.helps = after.smaller_than(before)
            reply = encode(await self._done(session, done, factor))
            return await self._remember(address.scope, call.request, reply)

    async def _redo(
        self,
        session: Session,
        address: Address,
        engine: Engine,
        call: CompactCall,
        wanted: CompactionRequest,
        encode: Encode,
        trace: Trace,
    ) -> bytes:
        """Makes summaries again, in place."""
        factor = session.state.model.factor
        before = await self._next_request(address.scope, engine, wanted)
        async with session.compaction:
            known = await self._known(address.scope, call.request)
            if known is not None:
                return known
            _require_revision(call, session.require())
            with trace.span("compact") as span, under(span):
                done = await self.remake.run(address, engine, force=call.force)
                describe(span, done)
            if done.summaries:
                after = await self._next_request(address.scope, engine, wanted)
                done.helps = after.smaller_than(before)
            reply = encode(await self._done(session, done, factor))
            return await self._remember(address.scope, call.request, reply)

    async def _next_request(
        self, scope: Scope, engine: Engine, wanted: CompactionRequest
    ) -> NextRequest:
        """The assembly at the caller's budget, as it would be now. Raises EngineFailed."""
        try:
            with self.compactor.asking(scope, engine):
                async with self.sessions.open(scope, engine.reach(cell(wanted.available))) as held:
                    return await self._at(engine, held, wanted.available)
        except EngineFailed:
            if not self.selection.falls_back:
                raise
        async with self.sessions.open(scope, None) as held:
            engine = self.selection.fallback()
            return await self._at(engine, held, wanted.available)

    async def _at(self, engine: Engine, held: Session, available: ReferenceTokens) -> NextRequest:
        reminders = None
        if held.view.summaries and engine.declared.rehydrates is not None:
            await bring(self.store, held)
            reminders = reminders_of(held, held.objective or "")
        return next_request(engine, held.encoding, held.view, available, reminders)

    async def _propose(
        self,
        session: Session,
        address: Address,
        engine: Engine,
        call: CompactCall,
        wanted: CompactionRequest,
        trace: Trace,
    ) -> CompactDone:
        """What would be done, and by what name it can be taken."""
        with self.compactor.asking(session.scope, engine):
            reach = engine.reach(cell(wanted.available))
        async with session.compaction:
            with trace.span("compact") as span, under(span):
                proposal = await self.proposals.propose(address, engine, wanted, reach)
                describe(span, proposal.done)
        shown: Sequence[Slot] = ()
        if call.return_list:
            with self.compactor.asking(session.scope, engine):
                shown = _list(engine, session.encoding, proposal.view, wanted)
        done = await self._done(session, proposal.done, session.state.model.factor)
        return msgspec.structs.replace(done, proposal=proposal, shown=shown)

    async def _delegate(
        self, address: Address, engine: Engine, wanted: CompactionRequest, factor: float
    ) -> CompactDone:
        """The host compacts: which range, into what."""
        async with self.sessions.open(address.scope, None) as session:
            view = session.view
            step = self.compactor.next_step(
                engine, view, wanted, forced=wanted.force, session=session
            )
            if not isinstance(step, CompactionStep):
                return _nothing(session, step.reason)
            behind = view.atom(step.last + 1).first if step.last + 1 < view.steps else None
            focus = f" Keep in sight: {wanted.focus}" if wanted.focus else ""
            delegation = Delegation(
                view.atom(step.first).first,
                behind - 1 if behind is not None else view.last_sequence,
                INSTRUCTIONS + focus,
                in_model(ReferenceTokens(step.target_tokens), factor),
            )
            done = _nothing(session, "delegated")
            return msgspec.structs.replace(done, delegation=delegation)

    async def _undo(self, address: Address, call: CompactCall, generation: int) -> CompactDone:
        """Takes compactions back, and says what the view is without them."""
        async with self.sessions.open(address.scope, lock=True) as session:
            session.require()
            before = ReferenceTokens(session.view.view_tokens())
            factor = session.state.model.factor
            await self.undo.run(session, address, generation, call.expected_revision)
            after = ReferenceTokens(session.view.view_tokens())
            return await self._done(session, Compacted("undone", before, after), factor)

    async def _done(self, session: Session, done: Compacted, factor: float) -> CompactDone:
        """`factor`: the one that was in force when the call came."""
        head = session.require()
        first = await self._first_kept(session)
        return CompactDone(done, factor, head.generation, session.revision, first)

    async def _first_kept(self, session: Session) -> int:
        """The first sequence behind the summaries, or else behind what leads the session; 0 where
        nothing follows."""
        view = session.view
        if view.summaries:
            behind = view.summaries[-1].span_end
        elif view.steps <= view.leading:
            return 0
        elif view.holds(view.leading):
            return view.atom(view.leading).first
        else:
            behind = view.atom(view.leading - 1).end if view.leading else 0
        row = await self.store.atom_from(session.scope, behind)
        return row.sequence if row is not None else 0

    async def _known(self, scope: Scope, request: Request | None) -> bytes | None:
        """What the same request was answered. Raises RequestIdReused."""
        if request is None:
            return None
        known = await self.store.reply(scope, request.id)
        return checked(known, request).reply if known is not None else None

    async def _remember(self, scope: Scope, request: Request | None, reply: bytes) -> bytes:
        if request is not None:
            await self.store.remember(scope, StoredReply(request.id, request.digest, reply))
        return reply


def _nothing(session: Session, reason: str) -> CompactDone:
    tokens = ReferenceTokens(session.view.view_tokens())
    factor = session.state.model.factor
    generation = session.head.generation if session.head is not None else 0
    done = Compacted(reason, tokens, tokens)
    return CompactDone(done, factor, generation, session.revision, elsewhere=True)


def next_request(
    engine: Engine,
    encoding: Encoding,
    view: View,
    available: ReferenceTokens,
    reminders: Reminders | None = None,
) -> NextRequest:
    """What an assembly over a view would come to at a budget."""
    draft = draft_of(engine, encoding, view, available, reminders=reminders)
    shown = draft.plan.summaries
    said = encoding.text_tokens(addition_of(engine, shown, left_out=draft.left_out))
    return NextRequest(draft.tokens + said + draft.rehydrated.tokens, view.total)


def _list(
    engine: Engine, encoding: Encoding, view: View, wanted: CompactionRequest
) -> Sequence[Slot]:
    """What an assembly over a view would show."""
    draft = draft_of(engine, encoding, view, wanted.available)
    return [slot for segment in draft.plan.segments for slot in segment_slots(segment, draft.view)]


def _require_revision(call: CompactCall, head: SessionHead) -> None:
    if call.expected_revision is not None and call.expected_revision != head.revision:
        raise RevisionMismatch(
            f"expected_revision: {call.expected_revision} was expected, the session is at"
            f" {head.revision}: read it again",
            violations=[FieldViolation("expected_revision", f"the session is at {head.revision}")],
            metadata={"expected": str(call.expected_revision), "actual": str(head.revision)},
        )
