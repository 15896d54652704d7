"""Assembling the context of one model call (contract §3): store what is new, load, plan, check the
laws, join.

Nothing here waits for a summarizer, and nothing is written but `ingest`.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from contextengine_server.context.fold import NeedsHistory
from contextengine_server.context.prefix import Runs
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import View
from contextengine_server.engines.contract import Engine
from contextengine_server.session.alignment import align
from contextengine_server.session.append import Stored, append, request_of
from contextengine_server.session.assembly import AssembleCall, Assembly
from contextengine_server.session.budget import budget_of, target
from contextengine_server.session.cache import Session
from contextengine_server.session.core import Address, SessionCore
from contextengine_server.session.live_view import (
    NO_MARK,
    followed,
    listed,
    passed_through,
    take_known_tokens,
)
from contextengine_server.session.plan import blamed, fall_back, finish, reread
from contextengine_server.session.prompt import keeping, not_stored
from contextengine_server.session.selection import Selected
from contextengine_server.wire.reading import Incoming

log = structlog.get_logger("contextengine.assemble")


async def assemble(core: SessionCore, call: AssembleCall) -> Assembly:
    """The context for one model call. Stores `ingest`, or what is new in `live`, first."""
    if not call.ref.agent:
        return await _without_scope(core, call)
    address = await core.address(call.tenant, call.ref)
    selected = await core.select(address.scope)
    await core.reached(address.scope, call.at_least_revision)
    storing = bool(call.ingest) or (call.live is not None and call.store_new)
    if call.live is not None:
        take_known_tokens(core.warm.held(address.scope), call.live)
    await core.count(call.ingest if call.live is None else call.live)
    warm = core.warm.held(address.scope)
    # What a warm session must hold is asked of it below: with the room to spare it would be read
    # again for every larger budget.
    known = warm is not None and warm.head is not None
    reach = None if call.whole else 0 if known else _first_reach(core, call, selected.engine)
    async with core.session(address.scope, reach, lock=storing) as session:
        await _hold(core, call, session, selected.engine, locked=storing)
        if call.live is not None:
            return await _assemble_live(core, call, address, session, selected)
        stored = await _store(core, call, address, session, call.ingest) if storing else []
        view = await _whole_view(core, call, session)
        try:
            return finish(core, call, session, view, selected, session.runs, stored=stored)
        except Exception as error:
            return await fall_back(core, call, session, selected, stored, error, locked=storing)


def _first_reach(core: SessionCore, call: AssembleCall, engine: Engine) -> int | None:
    """How far back the window of a cold session should reach, by what the request alone says; with
    room to spare, so that a larger budget does not read it again."""
    spec = call.budget
    tokens = spec.message_tokens or spec.window or core.defaults.window
    try:
        wanted = engine.reach(max(tokens, 1))
    except Exception:
        return None  # it is asked again, and then blamed
    return None if wanted is None else wanted + wanted // 2


async def _hold(
    core: SessionCore, call: AssembleCall, session: Session, engine: Engine, *, locked: bool
) -> None:
    """Holds all that the plan may need: as far back as the budget reaches by the session's own
    model and factor, and the ids of older messages that the request names. Raises what is wrong
    with the budget or the prompt before anything is stored."""
    while True:
        call.aim = target(session, call.model, call.provider)
        call.granted = budget_of(call.budget, call.aim, core.defaults)
        try:
            reach = None if call.whole else engine.reach(max(call.granted.reference, 1))
        except Exception as error:
            reach, call.broken = None, blamed(engine, error)
        if session.holds(reach):
            break
        await reread(core, session, reach and reach + reach // 2, locked=locked)
    if session.view.base:
        named = [message.id for message in call.live or () if message.id and not message.own]
        named += [call.current_message_id] if call.current_message_id else []
        unknown = [name for name in named if name not in session.ids]
        if unknown:
            rows = await core.store.messages_by_host_id(session.scope, unknown)
            session.ids.update(
                {row.host_id: (row.sequence, row.content_hash, row.tokens) for row in rows}
            )
    prompt, brought = call.current_message_id, call.ingest if call.live is None else call.live
    if prompt and prompt not in session.ids and all(message.id != prompt for message in brought):
        raise not_stored(prompt)


async def _store(
    core: SessionCore,
    call: AssembleCall,
    address: Address,
    session: Session,
    carried: Sequence[Incoming],
    start: int = 0,
) -> list[Stored]:
    """Stores what is new, from `start` on. The request's identity is all that it carries, since
    what of a list is new depends on what is stored."""
    written = await append(
        core,
        session,
        address,
        carried[start:],
        field_name="ingest" if call.live is None else "live.messages",
        first_index=start,
        refuse_conflicts=False,
        request=request_of(call.request_id, "Assemble", carried),
    )
    if call.whole:
        await core.fresh(session, None)
    return written.stored


async def _whole_view(core: SessionCore, call: AssembleCall, session: Session) -> View:
    """The session's view, with this turn's prompt among what must stay."""
    while call.current_message_id:
        view = session.view
        kept = await keeping(core, session, view, call.current_message_id)
        if view is session.view:  # it may have been read again meanwhile
            return kept
    return session.view


async def _assemble_live(
    core: SessionCore, call: AssembleCall, address: Address, session: Session, selected: Selected
) -> Assembly:
    """The context for a harness's own list. Where it is to be stored the session is locked."""
    live, storing = call.live or (), call.store_new
    stored: list[Stored] = []
    while True:
        session.mark_own(live, listed=True)
        alignment = align(live, session.view, session.ids)
        reason = "" if alignment is not None else "UNALIGNED"
        if alignment is None:
            view, mark = listed(session.scope, session, live, {}, core.shaper)
            break
        if storing:
            stored = await _store(core, call, address, session, live, alignment.start)
        if not selected.engine.declared.evicts:
            matched = alignment.matched | {
                item.index: item.sequence for item in stored if item.sequence
            }
            view, mark = passed_through(session, live, matched, core.shaper)
            break
        try:
            view, mark = (
                (session.view, NO_MARK)
                if storing
                else followed(session, live, alignment, core.shaper)
            )
            break
        except NeedsHistory as need:
            await reread(core, session, None, need.sequence, locked=False)
    runs = Runs()
    if not mark.whole:
        view, runs = await _whole_view(core, call, session), session.runs
    elif call.current_message_id and not reason:
        kept = await keeping(core, session, view, call.current_message_id)
        view = kept if selected.engine.declared.evicts else view
    try:
        return finish(
            core, call, session, view, selected, runs, stored=stored, mark=mark, reason=reason
        )
    except Exception as error:
        whole = None if alignment is not None else view
        return await fall_back(
            core, call, session, selected, stored, error, locked=storing, view=whole, reason=reason
        )


async def _without_scope(core: SessionCore, call: AssembleCall) -> Assembly:
    """No agent, no scope: nothing is read or stored, and what the caller sent is assembled under
    the laws."""
    log.warning("assemble without an agent: nothing was read or stored", tenant=call.tenant)
    messages = call.ingest if call.live is None else call.live
    await core.count(messages)
    scope = Scope(call.tenant, "", "")
    selected = await core.select(scope)
    view, mark = listed(scope, None, messages, {}, core.shaper)
    nowhere, reason = Session(scope), "INCOMPLETE_SCOPE"
    try:
        return finish(core, call, nowhere, view, selected, Runs(), mark=mark, reason=reason)
    except Exception as error:
        return await fall_back(
            core, call, nowhere, selected, [], error, locked=True, view=view, reason=reason
        )
