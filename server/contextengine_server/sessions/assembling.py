"""Assembling the context of one model call (contract §3): store what is new, load, plan, check the laws, join.

Nothing here waits for a summarizer, and nothing is written but `ingest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from contextengine_server.context.budget import Budget, cell
from contextengine_server.context.fold import NeedsHistory
from contextengine_server.context.laws.case import Case
from contextengine_server.context.laws.check import violation
from contextengine_server.context.plan import Plan, Summarized, plan_tokens
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import View
from contextengine_server.engines.contract import Engine
from contextengine_server.errors import DomainError, EngineFailed
from contextengine_server.telemetry.tracing import NO_TRACE, Trace
from contextengine_server.wire.reading import Incoming

from .alignment import align
from .beginnings import epoch_of
from .budgeting import BudgetSpec, Target, budget_of, target
from .core import Address, Ref, SessionCore
from .listing import followed, listed, passed_through, take_known_tokens
from .prompting import keeping, not_stored
from .runs import Joined, Runs
from .selection import Selected
from .warm import Session
from .writing import Stored, append, request_of

FITS, OVER_BUDGET, DEGRADED = 1, 2, 3
"""Outcomes, by the wire's numbers."""

REASONING_OPTIONAL = frozenset({"openai", "google"})
"""Providers that accept an assistant message without its reasoning, outside the open tool loop."""

log = structlog.get_logger("contextengine.assemble")


class EngineBroken(Exception):
    """The engine threw, or its plan broke a law."""

    def __init__(self, engine_id: str, how: str) -> None:
        super().__init__(how)
        self.engine_id = engine_id
        self.how = how


def _blamed(engine: Engine, error: Exception) -> EngineBroken:
    """What an exception says of the engine that was asked. Raises it again where it is about the request."""
    if isinstance(error, DomainError):
        raise error
    if isinstance(error, EngineBroken):
        return error
    log.error("engine failed", engine=engine.id, operation="assemble", exc_info=error)
    return EngineBroken(engine.id, type(error).__name__)


@dataclass(slots=True)
class AssembleCall:
    """What an assembly is wanted for, read from the request. Prompt tokens are in the reference encoding."""

    tenant: str
    ref: Ref
    ingest: Sequence[Incoming] = ()
    live: Sequence[Incoming] | None = None
    store_new: bool = False
    request_id: str = ""
    budget: BudgetSpec = field(default_factory=BudgetSpec)
    model: str = ""
    provider: str = ""
    prompt_tokens: int = 0
    current_message_id: str = ""
    measured: int | None = None
    at_least_revision: int = 0
    whole: bool = False
    """Hold the whole view (explain)."""
    trace: Trace = NO_TRACE
    broken: EngineBroken | None = None
    """How the engine failed before it was asked for a plan."""


@dataclass(slots=True)
class Assembly:
    """An assembly, ready to be encoded. Tokens in the reference encoding unless said otherwise."""

    view: View
    plan: Plan
    joined: Joined
    tokens: int
    budget: Budget
    cell: int
    addition: str
    addition_tokens: int
    prompt_tokens: int
    epoch: str
    engine: Engine
    selected: Selected
    target: Target
    outcome: int
    outcome_reason: str
    stored: list[Stored]
    due: bool
    """True where the engine wants a compaction."""
    available: int
    """What the budget leaves for items, before it is rounded to its cell."""
    method: str
    """How tokens were estimated."""

    @property
    def estimated(self) -> int:
        """What is sent, in the model's tokens."""
        return round((self.tokens + self.addition_tokens) * self.budget.factor)


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
    reach = None if call.whole else _first_reach(core, call, selected.engine)
    async with core.session(address.scope, reach, lock=storing, trace=call.trace) as session:
        await _hold(core, call, session, selected.engine, locked=storing)
        if call.live is not None:
            return await _assemble_live(core, call, address, session, selected)
        stored = await _store(core, call, address, session, call.ingest) if storing else []
        view = await _whole_view(core, call, session)
        try:
            return _finish(core, call, session, view, selected, session.runs, stored=stored)
        except Exception as error:
            return await _fall_back(core, call, session, selected, stored, error, locked=storing)


def _first_reach(core: SessionCore, call: AssembleCall, engine: Engine) -> int | None:
    """How far back the window of a cold session should reach, by what the request alone says; with room to spare, so that a
    larger budget does not read it again."""
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
    """Holds all that the plan may need: as far back as the budget reaches by the session's own model and factor, and the ids
    of older messages that the request names. Raises what is wrong with the budget or the prompt before anything is stored."""
    while True:
        aim = target(session, call.model, call.provider)
        budget = budget_of(call.budget, aim, session.state, core.defaults)
        try:
            reach = None if call.whole else engine.reach(max(budget.reference, 1))
        except Exception as error:
            reach, call.broken = None, _blamed(engine, error)
        if session.holds(reach):
            break
        await _fresh(core, session, reach, locked=locked)
    if session.view.base:
        named = [message.id for message in call.live or () if message.id and not message.own]
        named += [call.current_message_id] if call.current_message_id else []
        unknown = [name for name in named if name not in session.ids]
        if unknown:
            rows = await core.store.messages_by_host_id(session.scope, unknown)
            session.ids.update({row.host_id: (row.sequence, row.content_hash, row.tokens) for row in rows})
    prompt, brought = call.current_message_id, call.ingest if call.live is None else call.live
    if prompt and prompt not in session.ids and all(message.id != prompt for message in brought):
        raise not_stored(prompt)


async def _fresh(
    core: SessionCore, session: Session, reach: int | None, since: int | None = None, *, locked: bool
) -> None:
    if locked:
        await core.fresh(session, reach, since)
    else:
        async with session.lock:
            await core.fresh(session, reach, since)


async def _store(
    core: SessionCore,
    call: AssembleCall,
    address: Address,
    session: Session,
    carried: Sequence[Incoming],
    start: int = 0,
) -> list[Stored]:
    """Stores what is new, from `start` on. The request's identity is all that it carries, since what of a list is new depends
    on what is stored."""
    with call.trace.span("commit"):
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
            matched = alignment.matched | {item.index: item.sequence for item in stored if item.sequence}
            view, mark = passed_through(session, live, matched, core.shaper)
            break
        try:
            view, mark = (session.view, "") if storing else followed(session, live, alignment, core.shaper)
            break
        except NeedsHistory as need:
            await _fresh(core, session, None, need.sequence, locked=False)
    runs = Runs()
    if not mark:
        view, runs = await _whole_view(core, call, session), session.runs
    elif call.current_message_id and not reason:
        kept = await keeping(core, session, view, call.current_message_id)
        view = kept if selected.engine.declared.evicts else view
    try:
        return _finish(core, call, session, view, selected, runs, stored=stored, mark=mark, reason=reason)
    except Exception as error:
        whole = None if alignment is not None else view
        return await _fall_back(
            core, call, session, selected, stored, error, locked=storing, view=whole, reason=reason
        )


async def _without_scope(core: SessionCore, call: AssembleCall) -> Assembly:
    """No agent, no scope: nothing is read or stored, and what the caller sent is assembled under the laws."""
    log.warning("assemble without an agent: nothing was read or stored", tenant=call.tenant)
    messages = call.ingest if call.live is None else call.live
    await core.count(messages)
    scope = Scope(call.tenant, "", "")
    selected = await core.select(scope)
    view, mark = listed(scope, None, messages, {}, core.shaper)
    nowhere, reason = Session(scope), "INCOMPLETE_SCOPE"
    try:
        return _finish(core, call, nowhere, view, selected, Runs(), mark=mark, reason=reason)
    except Exception as error:
        return await _fall_back(
            core, call, nowhere, selected, [], error, locked=True, view=view, reason=reason
        )


# Plan, laws, join.


def _finish(
    core: SessionCore,
    call: AssembleCall,
    session: Session,
    view: View,
    selected: Selected,
    runs: Runs,
    *,
    stored: list[Stored] | None = None,
    engine: Engine | None = None,
    mark: str = "",
    reason: str = "",
) -> Assembly:
    """Plans, holds the plan to the laws, and joins. `mark` names a list that is not the session's; `reason`: why DEGRADED."""
    if call.broken is not None and engine is None:
        raise call.broken
    engine = engine or selected.engine
    aim = target(session, call.model, call.provider)
    budget = budget_of(call.budget, aim, session.state, core.defaults)
    with call.trace.span("plan"):
        kept_free = core.text_tokens(engine.addition(view.summaries))
        room_cell = cell(max(0, budget.reference - kept_free))
        plan = engine.plan(view, room_cell, call.prompt_tokens)
        tokens = plan_tokens(plan, view)
        # Room was kept for what is said of all the summaries; what is not shown needs no words.
        addition = engine.addition([s.summary for s in plan.segments if isinstance(s, Summarized)])
        addition_tokens = core.text_tokens(addition)
        room = max(0, budget.reference - addition_tokens)
    with call.trace.span("laws"):
        for_items = room_cell - call.prompt_tokens
        case = Case(plan, view, for_items, tokens, engine.declared, aim.provider in REASONING_OPTIONAL)
        broken = violation(case)
        if broken is not None:
            log.error("plan breaks a law", engine=engine.id, law=str(broken))
            raise EngineBroken(engine.id, str(broken))
    epoch = epoch_of(session.state, view, plan, engine, aim.model, room_cell, kept_free, mark)
    joined = runs.join(epoch, plan, view)
    outcome = DEGRADED if reason else FITS
    if tokens > room - call.prompt_tokens:
        outcome = OVER_BUDGET
    core.meters.assembled[outcome].value += 1
    available = max(1, budget.reference - addition_tokens - call.prompt_tokens)
    return Assembly(
        view=view,
        plan=plan,
        joined=joined,
        tokens=tokens,
        budget=budget,
        cell=room_cell,
        addition=addition,
        addition_tokens=addition_tokens,
        prompt_tokens=call.prompt_tokens,
        epoch=epoch,
        engine=engine,
        selected=selected,
        target=aim,
        outcome=outcome,
        outcome_reason=reason,
        stored=stored or [],
        due=not reason and engine.due(view, available, _in_reference(call.measured, budget)),
        available=available,
        method=core.counter.method,
    )


def _in_reference(measured: int | None, budget: Budget) -> int | None:
    return None if measured is None else round(measured / budget.factor)


async def _fall_back(
    core: SessionCore,
    call: AssembleCall,
    session: Session,
    selected: Selected,
    stored: list[Stored],
    error: Exception,
    *,
    locked: bool,
    view: View | None = None,
    reason: str = "",
) -> Assembly:
    """The engine is recorded as failed; the answer follows `on_engine_failure`. `view`: a list to show; else the session.
    `reason`: what was wrong before."""
    broken = _blamed(selected.engine, error)
    core.engine_failed(session.scope, broken.engine_id, "assemble", broken.how)
    if core.defaults.on_engine_failure != "legacy":
        raise EngineFailed(
            f"engine {broken.engine_id!r} failed to assemble: {broken.how}: assign another engine or set on_engine_failure",
            metadata={"engine": broken.engine_id, "operation": "assemble", "how": broken.how},
        ) from broken
    if view is None:
        await _fresh(core, session, None, locked=locked)
    engine = core.selection.legacy()
    try:
        return _finish(
            core,
            call,
            session,
            view or session.view,
            selected,
            Runs(),
            stored=stored,
            engine=engine,
            reason=reason or "ENGINE_FALLBACK",
        )
    except Exception as second:
        also = _blamed(engine, second)
        raise EngineFailed(
            f"engine {broken.engine_id!r} failed, and so did legacy: {also.how}",
            metadata={"engine": broken.engine_id},
        ) from second
