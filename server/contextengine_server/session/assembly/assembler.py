"""Assembling the context of one model call (docs/semantics.md#assembling): store what is new, load,
plan, check the laws, join.

Nothing here waits for a summarizer, and nothing is written but `ingest`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.fold import NeedsHistory
from contextengine_server.context.prefix import PrefixCache
from contextengine_server.context.view import View
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.failure import EngineBroken
from contextengine_server.memory.prompt import NO_MEMORY
from contextengine_server.memory.shown import ShownMemory
from contextengine_server.session.address import Address
from contextengine_server.session.append import Appender
from contextengine_server.session.assembly.addition import remembering
from contextengine_server.session.assembly.alignment import Aligner, ListAlignment
from contextengine_server.session.assembly.assembly import Allowance, AssembleCall, Assembly
from contextengine_server.session.assembly.budget import (
    BudgetDefaults,
    budget_of,
    counted_spec,
    first_room,
    target,
)
from contextengine_server.session.assembly.live_store import LiveStore
from contextengine_server.session.assembly.live_view import (
    NO_MARK,
    Listed,
    followed,
    interleaved,
    listed,
    passed_through,
    take_known_tokens,
)
from contextengine_server.session.assembly.plan import PlanInput, Planner
from contextengine_server.session.assembly.ports import DefinitionFilter, Guard
from contextengine_server.session.assembly.prompt import (
    begins_turn,
    keeping,
    not_stored,
    thread_beyond,
)
from contextengine_server.session.assembly.unscoped import without_scope
from contextengine_server.session.assembly.whereabouts import NOTHING_SAID, note
from contextengine_server.session.encoding import Encoding
from contextengine_server.session.receipt import Stored, request_of
from contextengine_server.session.rehydration.reads import bring
from contextengine_server.session.selection import Selected, Selection
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions, count_messages
from contextengine_server.store.errors import RevisionConflict
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import SessionHead
from contextengine_server.wire.message import Incoming


class Assembler(msgspec.Struct, frozen=True):
    """Assembles the context of one model call."""

    sessions: Sessions
    store: Store
    selection: Selection
    appender: Appender
    aligner: Aligner
    lists: LiveStore
    planner: Planner
    budgets: BudgetDefaults
    guard: Guard
    tools: DefinitionFilter
    memory: ShownMemory

    async def assemble(self, call: AssembleCall, address: Address | None) -> Assembly:
        """The context for one model call. Stores `ingest`, or what is new in `live`, first. No
        address: nothing is read or stored."""
        if address is None:
            encoding = self.sessions.encodings.default
            return await without_scope(
                await counted(call, encoding),
                encoding,
                self.selection,
                self.budgets,
                self.planner,
                self.memory,
            )
        scope = address.scope
        selected = self.selection.unassigned.get(scope.tenant)
        if selected is None:
            begins = begins_turn(call)
            selected = await self.selection.engine_for(scope, address.key, next_turn=begins)
        if call.at_least_revision:
            await self.sessions.reached(scope, call.at_least_revision)
        storing = bool(call.ingest) or (call.live is not None and call.store_new)
        storing = storing and not call.treatment
        warm = self.sessions.cache.find(scope)
        known = warm is not None and warm.head is not None
        if call.whereabouts is not NOTHING_SAID and not (storing or call.treatment):
            names = selected.engine.declared.rehydrates
            told = call.whereabouts
            await note(self.sessions, self.appender, address, told, names, warm if known else None)
        encoding = warm.encoding if warm and known else await self.sessions.encoding_of(scope)
        if call.live is not None:
            take_known_tokens(warm, call.live)
        call = await counted(call, encoding)
        # What a warm session must hold is asked of it below.
        first = None if known or call.whole else await self.store.head(scope)
        reach = None if call.whole else 0 if known else self._reach(call, first, selected.engine)
        async with self.sessions.open(scope, reach, lock=storing) as session:
            if call.tools and selected.engine.id in self.tools.engines:
                call = await self.tools.apply(call, session)
            allowance = await self._hold(call, session, selected.engine, locked=storing)
            if call.treatment:
                return await self._assemble_unstored(call, session, selected, allowance)
            session.assembled_for = allowance.budget.reference
            if call.live is not None:
                return await self._assemble_live(call, address, session, selected, allowance)
            names = selected.engine.declared.rehydrates
            stored = await self._store(call, address, session, names) if storing else []
            view = session.view
            if call.current_message_id:
                view = await self._whole_view(call, session)
            if call.memory is not NO_MEMORY:
                call = await remembering(self.memory, call, session, selected.engine)
            subject = PlanInput(session, view, allowance, session.prefixes, stored)
            if view.summaries and selected.engine.declared.rehydrates is not None:
                await bring(self.store, session)
            try:
                return await self.planner.plan(call, subject, selected, locked=storing)
            except Exception as error:
                return await self.planner.fall_back(call, subject, selected, error, locked=storing)

    def _reach(self, call: AssembleCall, head: SessionHead | None, engine: Engine) -> int | None:
        """How far back the window of a cold session is to reach."""
        room = first_room(call.budget, head, call.model, call.provider, self.budgets)
        try:
            return engine.reach(room)
        except EngineBroken:
            return None  # it is asked again, and then blamed

    async def _hold(
        self, call: AssembleCall, session: Session, engine: Engine, *, locked: bool
    ) -> Allowance:
        """Holds all that the plan may need: as far back as the budget reaches by the session's own
        model and factor, and the ids of older messages that the request names. Raises what is wrong
        with the budget or the prompt before anything is stored."""
        while True:
            aim = target(session.head, session.state, call.model, call.provider)
            allowance = Allowance(aim, budget_of(call.budget, aim, self.budgets))
            try:
                room = ReferenceTokens(max(allowance.budget.reference, 1))
                reach = None if call.whole else engine.reach(room)
            except EngineBroken as error:
                reach, allowance = None, replace(allowance, broken=error)
            if session.view.base == 0 or session.holds(reach):
                break
            await self.sessions.reread(session, reach and reach + reach // 2, locked=locked)
        if session.view.base:
            await self._name(call, session)
        prompt, brought = call.current_message_id, call.ingest if call.live is None else call.live
        if (
            prompt
            and prompt not in session.ids
            and all(message.id != prompt for message in brought)
        ):
            raise not_stored(prompt)
        if call.bound_id:
            known_id = session.ids.get(call.bound_id)
            if known_id is None and all(message.id != call.bound_id for message in brought):
                raise thread_beyond(call.bound_id)
            allowance = replace(allowance, bound=known_id.sequence if known_id is not None else 0)
        if engine.id in self.guard.engines:
            await self.guard.admit(call, session, allowance, begins=begins_turn(call))
        return allowance

    async def _name(self, call: AssembleCall, session: Session) -> None:
        """Looks up the messages before the window that the request names."""
        named = [message.id for message in call.live or () if message.id and not message.own]
        named += [name for name in (call.current_message_id, call.bound_id) if name]
        unknown = [name for name in named if name not in session.ids]
        if unknown:
            rows = await self.store.messages_by_host_id(session.scope, unknown)
            session.note_rows(rows)

    async def _store(
        self,
        call: AssembleCall,
        address: Address,
        session: Session,
        names: Sequence[str] | None,
    ) -> list[Stored]:
        """Stores what the call brings."""
        said = call.whereabouts
        written = await self.appender.append(
            session,
            address,
            call.ingest,
            field_name="ingest",
            refuse_conflicts=False,
            request=request_of(call.request_id, "Assemble", call.ingest),
            edit=None if said is NOTHING_SAID else said.news(session.state, names),
        )
        if call.whole:
            await self.sessions.fresh(session, None)
        return written.stored

    async def _whole_view(self, call: AssembleCall, session: Session) -> View:
        """The session's view, with this turn's prompt among what must stay."""
        while call.current_message_id:
            view = session.view
            kept = await keeping(self.store, session, view, call.current_message_id)
            if view is session.view:  # it may have been read again meanwhile
                return kept
        return session.view

    async def _assemble_live(
        self,
        call: AssembleCall,
        address: Address,
        session: Session,
        selected: Selected,
        allowance: Allowance,
    ) -> Assembly:
        """The context for a harness's own list. Where it is to be stored the session is locked."""
        live, storing = call.live or (), call.store_new
        stored: list[Stored] = []
        tries = 0
        while True:
            alignment = await self.aligned(live, session, locked=storing)
            if not storing:
                break
            try:
                names = selected.engine.declared.rehydrates
                stored = await self._store_list(call, address, session, alignment, names)
                break
            except RevisionConflict:
                tries += 1
                await self.sessions.lost_race(session, tries)
        reason = "" if alignment is not None else "UNALIGNED"
        view, mark = await self.listed(live, session, selected.engine, alignment, stored, storing)
        prefixes = PrefixCache()
        if not mark.whole:
            view, prefixes = await self._whole_view(call, session), session.prefixes
        elif call.current_message_id and not reason:
            kept = await keeping(self.store, session, view, call.current_message_id)
            view = kept if selected.engine.declared.evicts else view
        if call.memory is not NO_MEMORY:
            call = await remembering(self.memory, call, session, selected.engine)
        subject = PlanInput(session, view, allowance, prefixes, stored, mark, reason)
        if view.summaries and selected.engine.declared.rehydrates is not None:
            await bring(self.store, session)
        try:
            return await self.planner.plan(call, subject, selected, locked=storing)
        except Exception as error:
            return await self.planner.fall_back(
                call, subject, selected, error, locked=storing, apart=alignment is None
            )

    async def _assemble_unstored(
        self, call: AssembleCall, session: Session, selected: Selected, allowance: Allowance
    ) -> Assembly:
        """The context of a stateless session: what is stored of it, and behind it what the call
        brings, for this call alone. `ingest` and `live` are what they are of other sessions."""
        engine, reason = selected.engine, ""
        if call.live is not None:
            found = await self.aligned(call.live, session, locked=False)
            reason = "UNALIGNED" if found is None else ""
            view, mark = await self.listed(call.live, session, engine, found, (), storing=False)
        else:
            new = [message for message in call.ingest if message.id not in session.ids]
            session.mark_own(new)
            view, mark = await self._behind(new, session)
        if call.ingest or (call.live is not None and call.store_new):
            reason = "SESSION_STATELESS"
        prefixes = PrefixCache() if mark.whole else session.prefixes
        if call.memory is not NO_MEMORY:
            call = await remembering(self.memory, call, session, engine)
        subject = PlanInput(session, view, allowance, prefixes, (), mark, reason)
        if view.summaries and engine.declared.rehydrates is not None:
            await bring(self.store, session)
        try:
            return await self.planner.plan(call, subject, selected, locked=False)
        except Exception as error:
            return await self.planner.fall_back(
                call, subject, selected, error, locked=False, apart=bool(mark.whole)
            )

    async def _behind(self, new: Sequence[Incoming], session: Session) -> Listed:
        """The stored view and what is not stored behind it."""
        alignment = ListAlignment(new, 0, {}, (), {}, {})
        while True:
            try:
                return followed(session, alignment, session.encoding.shaper)
            except NeedsHistory:
                await self.sessions.reread(session, None, locked=False)

    async def aligned(
        self, live: Sequence[Incoming], session: Session, *, locked: bool
    ) -> ListAlignment | None:
        """Where the list meets the session; all of it is read where the window does not tell."""
        while True:
            session.mark_own(live, listed=True)
            found = self.aligner.align(live, session.view, session.ids)
            if not session.view.base or (found is not None and found.decided):
                return found
            await self.sessions.reread(session, None, locked=locked)

    async def _store_list(
        self,
        call: AssembleCall,
        address: Address,
        session: Session,
        alignment: ListAlignment | None,
        names: Sequence[str] | None,
    ) -> list[Stored]:
        """Stores what the list has and the session does not. The request's identity is the whole
        list, since what of it is new depends on what is stored."""
        live, said = call.live or (), call.whereabouts
        stored = await self.lists.store(
            session,
            address,
            live,
            alignment,
            takes_back=call.takes_back,
            field_name="live.messages",
            request=request_of(call.request_id, "Assemble", live),
            edit=None if said is NOTHING_SAID else said.news(session.state, names),
        )
        if call.whole:
            await self.sessions.fresh(session, None)
        return stored

    async def listed(
        self,
        live: Sequence[Incoming],
        session: Session,
        engine: Engine,
        alignment: ListAlignment | None,
        stored: Sequence[Stored],
        storing: bool,
    ) -> Listed:
        """What is shown of a list: by an engine that evicts the session with what it lacks, else
        the list."""
        if not engine.declared.evicts and (alignment is not None or storing):
            there = {entry.sequence for entry in session.view.entries()}
            matched = {} if alignment is None else dict(alignment.matched)
            matched |= {item.index: item.sequence for item in stored if item.sequence}
            matched = {index: known for index, known in matched.items() if known in there}
            sent = live if alignment is None else alignment.live
            return passed_through(session, sent, matched, session.encoding.shaper)
        if storing:
            return session.view, NO_MARK
        if alignment is None:
            return listed(session.scope, session, live, {}, session.encoding.shaper)
        while True:
            shaper = session.encoding.shaper
            try:
                if not alignment.others:
                    return followed(session, alignment, shaper)
                covered = max((s.last_sequence for s in session.view.summaries), default=0)
                notes = {
                    index: alignment.note(index)
                    for index, behind in alignment.others.items()
                    if behind < covered
                }
                await count_messages(session.encoding, list(notes.values()))
                return interleaved(session, alignment, notes, shaper)
            except NeedsHistory:
                await self.sessions.reread(session, None, locked=False)


async def counted(call: AssembleCall, encoding: Encoding) -> AssembleCall:
    """The call with its texts counted in a session's encoding."""
    brought = call.ingest if call.live is None else call.live
    if brought:
        await count_messages(encoding, brought)
    budget = call.budget
    if budget.system_texts or budget.tool_texts:
        budget = await counted_spec(budget, encoding)
    if call.prompt is None and not call.preamble:
        return call if budget is call.budget else replace(call, budget=budget)
    tokens = preamble = 0
    if call.prompt is not None:
        tokens = call.prompt.fixed_tokens + await encoding.texts(call.prompt.texts)
    if call.preamble:
        preamble = await encoding.texts((call.preamble,))
    return replace(
        call,
        budget=budget,
        prompt_tokens=ReferenceTokens(tokens + preamble),
        preamble_tokens=ReferenceTokens(preamble),
    )
