"""Assembling the context of one model call (contract §3): store what is new, load, plan, check the laws, join.

Nothing here waits for a summarizer, and nothing is written but `ingest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from contextengine_server.context import epoch as epochs
from contextengine_server.context.budget import Budget, cell
from contextengine_server.context.fold import apply, extend, extended
from contextengine_server.context.laws.case import Case
from contextengine_server.context.laws.check import violation
from contextengine_server.context.message import Entry
from contextengine_server.context.plan import Keep, Plan, Summarized, plan_tokens
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import View
from contextengine_server.engines.contract import Engine
from contextengine_server.errors import EngineFailed
from contextengine_server.telemetry.tracing import NO_TRACE, Trace
from contextengine_server.wire.reading import Incoming

from .alignment import Alignment, align
from .budgeting import BudgetSpec, Target, budget_of, target
from .core import Ref, SessionCore
from .prompting import keeping
from .runs import Joined, Runs
from .selection import Selected
from .warm import Session
from .writing import Stored, append, request_of

FITS, OVER_BUDGET, DEGRADED = 1, 2, 3
"""Outcomes, by the wire's numbers."""

REASONING_OPTIONAL = frozenset({"openai", "google"})
"""Providers that accept an assistant message without its reasoning, outside the open tool loop."""

log = structlog.get_logger("contextengine.assemble")


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


class EngineBroken(Exception):
    """The engine threw, or its plan broke a law."""

    def __init__(self, engine_id: str, how: str) -> None:
        super().__init__(how)
        self.engine_id = engine_id
        self.how = how


async def assemble(core: SessionCore, call: AssembleCall) -> Assembly:
    """The context for one model call. Stores `ingest`, or what is new in `live`, first."""
    if not call.ref.agent:
        return await _without_scope(core, call)
    address = await core.address(call.tenant, call.ref)
    selected = await core.select(address.scope)
    await core.reached(address.scope, call.at_least_revision)
    storing = bool(call.ingest) or (call.live is not None and call.store_new)
    await core.count(call.ingest if call.live is None else call.live)
    reach = None if call.whole else _reach(core, call, selected.engine)
    async with core.session(address.scope, reach, lock=storing, trace=call.trace) as session:
        alignment = None
        new = call.ingest
        if call.live is not None:
            session.mark_own(call.live)
            alignment = align(call.live, session.view, session.ids)
            if alignment is None:
                view = _listed(core, address.scope, call.live, session, {})
                return _finish(core, call, session, view, selected, Runs(), reason="UNALIGNED")
            new = call.live[alignment.start :]
        stored: list[Stored] = []
        if storing:
            with call.trace.span("commit"):
                written = await append(
                    core,
                    session,
                    address,
                    new,
                    field_name="ingest" if call.live is None else "live.messages",
                    refuse_conflicts=False,
                    request=request_of(call.request_id, "Assemble", new),
                )
            stored = written.stored
            if not session.holds(reach):
                await core.fresh(session, reach)
        view, runs = session.view, session.runs
        if call.live is not None and alignment is not None:
            view = _live_view(core, call, session, selected.engine, alignment, stored)
            if view is not session.view:
                runs = Runs()
        if call.current_message_id:
            view = await keeping(core, session, view, call.current_message_id)
        try:
            return _finish(core, call, session, view, selected, runs, stored=stored)
        except EngineBroken as broken:
            return await _fall_back(core, call, session, selected, stored, broken, locked=storing)


def _reach(core: SessionCore, call: AssembleCall, engine: Engine) -> int | None:
    """How far back the window must reach; with room to spare, so that a larger budget does not read it again."""
    spec = call.budget
    tokens = spec.message_tokens or spec.window or core.defaults.window
    wanted = engine.reach(max(tokens, 1))
    return None if wanted is None else wanted + wanted // 2


# Lists of the harness.


def _live_view(
    core: SessionCore,
    call: AssembleCall,
    session: Session,
    engine: Engine,
    alignment: Alignment,
    stored: list[Stored],
) -> View:
    """What a `live` list shows: the stored view and what follows it; under an engine that never evicts, the list itself."""
    assert call.live is not None
    if engine.declared.evicts:
        if call.store_new:
            return session.view
        new = call.live[alignment.start :]
        entries = _entries(new, alignment.start, session)
        return extended(session.view, extend(session.view, entries, core.shaper)) if entries else session.view
    matched = dict(alignment.matched)
    for item in stored:
        if item.sequence:
            matched[alignment.start + item.index] = item.sequence
    shown = sorted(entry.sequence for atom in session.view.atoms for entry in atom.entries)
    own = sum(message.own for message in call.live)
    if sorted(matched.values()) == shown and len(matched) + own == len(call.live):
        return session.view
    return _listed(core, session.scope, call.live, session, matched)


def _entries(new: Sequence[Incoming], first_index: int, session: Session) -> list[Entry]:
    """Messages that are shown in this call only, behind the stored ones."""
    sequence = session.view.last_sequence
    entries = []
    for offset, message in enumerate(new):
        if not message.own:
            entries.append(_entry(message, sequence + 1 + offset, first_index + offset, session.revision + 1))
    return entries


def _entry(message: Incoming, sequence: int, live_index: int, revision: int) -> Entry:
    return Entry(
        sequence,
        message.id,
        message.traits,
        message.tokens,
        message.hash,
        message.body,
        revision,
        message.time_ms,
        live_index,
    )


def _listed(
    core: SessionCore,
    scope: Scope,
    live: Sequence[Incoming],
    session: Session | None,
    matched: dict[int, int],
) -> View:
    """A view of the list alone; messages of it that are stored stay what they are."""
    held = {}
    if session is not None and matched:
        held = {entry.sequence: entry for atom in session.view.atoms for entry in atom.entries}
    newest = session.view.last_sequence if session is not None else 0
    revision = session.revision + 1 if session is not None else 1
    first_matched = min(matched, default=len(live))
    entries: list[Entry] = []
    for index, message in enumerate(live):
        if message.own:
            continue
        known = held.get(matched.get(index, -1))
        if known is not None:
            entries.append(known)
        else:
            # Positions that keep the order: before every stored message, or behind them all.
            sequence = index - len(live) if index < first_matched and matched else newest + 1 + index
            entries.append(_entry(message, sequence, index, revision))
    view = View(scope=scope, revision=session.revision if session is not None else 0)
    apply(view, extend(view, entries, core.shaper))
    return view


async def _without_scope(core: SessionCore, call: AssembleCall) -> Assembly:
    """No agent, no scope: nothing is read or stored, and what the caller sent is assembled under the laws."""
    log.warning("assemble without an agent: nothing was read or stored", tenant=call.tenant)
    messages = call.ingest if call.live is None else call.live
    await core.count(messages)
    scope = Scope(call.tenant, "", "")
    selected = await core.select(scope)
    view = _listed(core, scope, messages, None, {})
    return _finish(core, call, Session(scope), view, selected, Runs(), reason="INCOMPLETE_SCOPE")


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
    reason: str = "",
) -> Assembly:
    engine = engine or selected.engine
    aim = target(session, call.model, call.provider)
    budget = budget_of(call.budget, aim, session.state, core.defaults)
    with call.trace.span("plan"):
        addition = engine.addition(view)
        addition_tokens = core.text_tokens(addition)
        room = max(0, budget.reference - addition_tokens)
        room_cell = cell(room)
        try:
            plan = engine.plan(view, room_cell, call.prompt_tokens)
        except Exception as error:
            log.exception("engine failed", engine=engine.id, operation="plan")
            raise EngineBroken(engine.id, type(error).__name__) from error
        tokens = plan_tokens(plan, view)
    with call.trace.span("laws"):
        for_items = room_cell - call.prompt_tokens
        case = Case(plan, view, for_items, tokens, engine.declared, aim.provider in REASONING_OPTIONAL)
        broken = violation(case)
        if broken is not None:
            log.error("plan breaks a law", engine=engine.id, law=str(broken))
            raise EngineBroken(engine.id, str(broken))
    epoch = _epoch(session, view, plan, engine, aim, room_cell)
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
        due=engine.due(view, available, _in_reference(call.measured, budget)),
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
    broken: EngineBroken,
    *,
    locked: bool,
) -> Assembly:
    """The engine is recorded as failed; the answer follows `on_engine_failure`."""
    core.engine_failed(session.scope, broken.engine_id, "assemble", broken.how)
    if core.defaults.on_engine_failure != "legacy":
        raise EngineFailed(
            f"engine {broken.engine_id!r} failed to assemble: {broken.how}: assign another engine or set on_engine_failure",
            metadata={"engine": broken.engine_id, "operation": "assemble", "how": broken.how},
        ) from broken
    if locked:
        await core.fresh(session, None)
    else:
        async with session.lock:
            await core.fresh(session, None)
    engine = core.selection.legacy()
    try:
        return _finish(
            core,
            call,
            session,
            session.view,
            selected,
            Runs(),
            stored=stored,
            engine=engine,
            reason="ENGINE_FALLBACK",
        )
    except EngineBroken as error:
        raise EngineFailed(
            f"engine {broken.engine_id!r} failed, and so did legacy: {error.how}",
            metadata={"engine": broken.engine_id},
        ) from error


def _epoch(session: Session, view: View, plan: Plan, engine: Engine, aim: Target, room_cell: int) -> str:
    before = []
    for segment in plan.segments[:-1]:
        before.append(
            segment.summary.id if isinstance(segment, Summarized) else f"{segment.first}-{segment.last}"
        )
    last = plan.segments[-1] if plan.segments else None
    begins = last.first if isinstance(last, Keep) else str(last)
    summaries = [segment.summary.id for segment in plan.segments if isinstance(segment, Summarized)]
    return epochs.epoch(
        epochs.EpochParts(
            session=f"{view.incarnation}:{view.reset_mark}",
            engine=f"{engine.id}:{engine.version}",
            config=engine.fingerprint,
            model=aim.model,
            rewound=str(view.rewind_mark),
            compacted=f"{session.state.native_compactions}:{','.join(summaries)}",
            budget=str(room_cell),
            late=str(view.late_mark),
            masked=plan.forms,
            cut=f"{begins}|{','.join(before)}",
        )
    )
