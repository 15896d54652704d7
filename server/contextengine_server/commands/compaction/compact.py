"""Compact: the stored view is compacted, handed to the host to compact, proposed, or put back."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import msgspec

from contextengine_server.commands.awaited_hosts import AwaitedHosts
from contextengine_server.compaction.compactor import Compactor
from contextengine_server.compaction.proposal import Proposal, Proposals
from contextengine_server.compaction.queue import CompactionQueue
from contextengine_server.compaction.remake import Remake
from contextengine_server.compaction.request import (
    DEFERRED,
    Compacted,
    CompactionRequest,
    answered,
    describe,
)
from contextengine_server.compaction.undo import Undo
from contextengine_server.context.budget import (
    ModelTokens,
    ReferenceTokens,
    cell,
    in_model,
)
from contextengine_server.context.scope import Scope
from contextengine_server.engines.contract import CompactionStep, Engine
from contextengine_server.engines.host_capabilities import COMPACTS
from contextengine_server.errors import EngineFailed
from contextengine_server.session.address import Address, Addresses, Ref
from contextengine_server.session.assembly.budget import (
    BudgetDefaults,
    BudgetSpec,
    available_of,
    counted_spec,
)
from contextengine_server.session.assembly.pressure import uncounted_in
from contextengine_server.session.receipt import Request, checked
from contextengine_server.session.selection import Selection
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.slices import in_slices
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import StoredReply
from contextengine_server.summarize.request import Steering
from contextengine_server.telemetry.tracing import Trace, under

from .edges import first_kept, id_at
from .live_list import LiveList, LiveLists, NewList, require_revision
from .next_request import NextList, NextRequest, list_of, next_request, reminders_for

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
    steering: Steering = Steering()
    live: LiveList | None = None
    """The harness's own list; None: the stored view."""
    propose_only: bool = False
    return_list: bool = False
    """With a proposal or a list: the list as it would be."""
    no_wait: bool = False
    undo_to_generation: int | None = None
    redo: bool = False
    """Compact nothing; make summaries again that stood in for better ones."""
    expected_revision: int | None = None
    request: Request | None = None


class Delegation(msgspec.Struct, frozen=True):
    """What the host is to summarize."""

    first_sequence: int
    last_sequence: int
    instructions: str
    target_tokens: ModelTokens
    ids: tuple[str, str] = ("", "")
    """The host ids of the first and the last message; empty: it has none."""


class CompactDone(msgspec.Struct, frozen=True):
    """What became of it. Tokens in the reference encoding, but for a delegation's."""

    done: Compacted
    factor: float
    """The model's tokens per token of the reference encoding."""
    generation: int
    revision: int
    first_kept_sequence: int = 0
    first_kept_id: str = ""
    """The host id of that message; empty: it has none."""
    proposal: Proposal | None = None
    shown: NextList = NextList()
    changed: bool | None = None
    """True where the harness's own list is another now; None: it gave none."""
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
    lists: LiveLists
    visits: AwaitedHosts | None = None
    """Which hosts lend their models when they come by; None: none does."""

    async def run(
        self, tenant: str, ref: Ref, call: CompactCall, encode: Encode, trace: Trace
    ) -> bytes:
        """The reply, encoded: the same request again gets the same. Raises SessionNotFound,
        RevisionMismatch, EngineFailed and what is wrong with the budget."""
        address = await self.addresses.find(tenant, ref)
        known = await self._known(address.scope, call.request)
        if known is not None:
            return known
        if self.visits is not None:
            self.visits.seen(address.scope)
        encoding = await self.sessions.encoding_of(address.scope)
        spec = await counted_spec(call.budget, encoding)
        engine = (await self.selection.engine_for(address.scope, address.key)).engine
        if call.live is not None:
            await self.lists.take(address, call.live, call.expected_revision)
            if call.live.store_new:  # what was expected was there when it was stored
                call = msgspec.structs.replace(call, expected_revision=None)
        async with self.sessions.open(address.scope) as session:
            _require_revision(call, session)
            factor = session.state.model.factor
            available = available_of(session, self.budgets, spec)
            wanted = CompactionRequest(
                available=available,
                force=call.force,
                to_threshold=call.to_threshold,
                uncounted=uncounted_in(call.measured, session, engine, spec, available),
                steering=call.steering,
            )
            if call.undo_to_generation is not None:
                done = await self._undo(address, call, call.undo_to_generation)
                return await self._answered(address.scope, engine, call, wanted, done, encode)
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
        factor = session.state.model.factor
        before = await self._next_request(address.scope, engine, wanted)
        revision = session.require().revision
        tokens = ReferenceTokens(session.view.view_tokens())
        async with self.sessions.compacting(session) as joining:
            known = await self._known(address.scope, call.request) if joining else None
            if known is not None:
                return known
            made = [
                one for one in session.live_summaries if one.created > revision and not one.remakes
            ]
            made.sort(key=attrgetter("created"))
            if made and self.compactor.reached(engine, session.encoding, session.view, wanted):
                done = Compacted("", tokens, ReferenceTokens(session.view.view_tokens()))
            else:
                _require_revision(call, session)
                with trace.span("compact") as span, under(span):
                    done = await self.compactor.compact(address, engine, wanted)
                    describe(span, done)
            if made:
                done = Compacted("", tokens, done.after, [*made, *done.summaries], done.error)
            if done.summaries:
                after = await self._next_request(address.scope, engine, wanted)
                done.helps = after.smaller_than(before)
            answer = await self._done(session, done, factor)
            return await self._answered(address.scope, engine, call, wanted, answer, encode)

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
        async with self.sessions.compacting(session):
            known = await self._known(address.scope, call.request)
            if known is not None:
                return known
            _require_revision(call, session)
            with trace.span("compact") as span, under(span):
                done = await self.remake.run(address, engine, force=call.force)
                describe(span, done)
            if done.summaries:
                after = await self._next_request(address.scope, engine, wanted)
                done.helps = after.smaller_than(before)
            answer = await self._done(session, done, factor)
            return await self._answered(address.scope, engine, call, wanted, answer, encode)

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
        reminders = await reminders_for(self.store, engine, held)

        def ask() -> NextRequest:
            return next_request(engine, held.encoding, held.view, available, reminders)

        return await answered(engine, held.view.steps - held.view.base, ask, held.lock)

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
            # A list may hold what is far behind.
            reach = None if call.live is not None else engine.reach(cell(wanted.available))
        async with self.sessions.compacting(session):
            with trace.span("compact") as span, under(span):
                proposal = await self.proposals.propose(address, engine, wanted, reach)
                describe(span, proposal.done)
        new = NewList()
        with self.compactor.asking(session.scope, engine):
            ahead = await in_slices(proposal.ahead(session))
            if call.live is not None:
                new = await self.lists.shown(ahead, engine, call.live, wanted.available)
            elif call.return_list:
                back = await reminders_for(self.store, engine, ahead)
                new = NewList(
                    list_of(engine, session.encoding, proposal.view, wanted.available, back)
                )
        done = await self._done(session, proposal.done, session.state.model.factor)
        return _listing(msgspec.structs.replace(done, proposal=proposal), call, new)

    async def _answered(
        self,
        scope: Scope,
        engine: Engine,
        call: CompactCall,
        wanted: CompactionRequest,
        done: CompactDone,
        encode: Encode,
    ) -> bytes:
        """The reply, with the harness's own list as it is now. Raises EngineFailed."""
        if call.live is not None:
            with self.compactor.asking(scope, engine):
                reach = engine.reach(cell(wanted.available))
                async with self.sessions.open(scope, reach) as held:
                    new = await self.lists.shown(held, engine, call.live, wanted.available)
            done = _listing(done, call, new)
        return await self._remember(scope, call.request, encode(done))

    async def _delegate(
        self, address: Address, engine: Engine, wanted: CompactionRequest, factor: float
    ) -> CompactDone:
        """The host compacts: which range, into what."""
        async with self.sessions.open(address.scope, None) as session:
            view = session.view
            step = await self.compactor.next_step(
                engine, view, wanted, forced=wanted.force, session=session
            )
            if not isinstance(step, CompactionStep):
                return _nothing(session, step.reason)
            behind = view.atom(step.last + 1).first if step.last + 1 < view.steps else None
            focus = wanted.steering.focus and f" Keep in sight: {wanted.steering.focus}"
            first = view.atom(step.first).first
            last = behind - 1 if behind is not None else view.last_sequence
            delegation = Delegation(
                first,
                last,
                INSTRUCTIONS + focus,
                in_model(ReferenceTokens(step.target_tokens), factor),
                (id_at(view, first), id_at(view, last)),
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
        first = await first_kept(session, self.store)
        return CompactDone(done, factor, head.generation, session.revision, *first)

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


def _listing(done: CompactDone, call: CompactCall, new: NewList) -> CompactDone:
    """The answer with the new list, as far as it was asked for."""
    shown = new.shown if call.return_list else NextList()
    changed = None if call.live is None else new.changed
    return msgspec.structs.replace(done, shown=shown, changed=changed)


def _require_revision(call: CompactCall, session: Session) -> None:
    head = session.require()
    if call.expected_revision is not None:
        require_revision(call.expected_revision, head)
