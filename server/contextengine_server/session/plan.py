"""From a view to an assembly: plan, hold the plan to the laws, join; and what is answered where an
engine fails."""

from __future__ import annotations

import structlog

from contextengine_server.context.budget import Budget, cell
from contextengine_server.context.laws.case import Case
from contextengine_server.context.laws.check import violation
from contextengine_server.context.plan import Summarized, plan_tokens
from contextengine_server.context.prefix import Runs
from contextengine_server.context.view import View
from contextengine_server.engines.contract import Engine
from contextengine_server.errors import DomainError, EngineFailed
from contextengine_server.session.append import Stored
from contextengine_server.session.assembly import (
    DEGRADED,
    FITS,
    OVER_BUDGET,
    AssembleCall,
    Assembly,
    EngineBroken,
)
from contextengine_server.session.budget import budget_of, target
from contextengine_server.session.cache import Session
from contextengine_server.session.core import SessionCore
from contextengine_server.session.epoch import epoch_of
from contextengine_server.session.live_view import NO_MARK, Mark
from contextengine_server.session.selection import Selected

REASONING_OPTIONAL = frozenset({"openai", "google"})
"""Providers that accept an assistant message without its reasoning, outside the open tool loop."""

log = structlog.get_logger("contextengine.assemble")


def blamed(engine: Engine, error: Exception) -> EngineBroken:
    """What an exception says of the engine that was asked. Raises it again where it is about the
    request."""
    if isinstance(error, DomainError):
        raise error
    if isinstance(error, EngineBroken):
        return error
    log.error("engine failed", engine=engine.id, operation="assemble", exc_info=error)
    return EngineBroken(engine.id, type(error).__name__)


def finish(
    core: SessionCore,
    call: AssembleCall,
    session: Session,
    view: View,
    selected: Selected,
    runs: Runs,
    *,
    stored: list[Stored] | None = None,
    engine: Engine | None = None,
    mark: Mark = NO_MARK,
    reason: str = "",
) -> Assembly:
    """Plans, holds the plan to the laws, and joins. `mark` names a list that is not the session's;
    `reason`: why DEGRADED."""
    if call.broken is not None and engine is None:
        raise call.broken
    engine = engine or selected.engine
    aim = call.aim or target(session, call.model, call.provider)
    budget = call.granted or budget_of(call.budget, aim, core.defaults)
    with call.trace.span("plan") as span:
        span.set("contextengine.engine", engine.id)
        kept_free = core.text_tokens(engine.addition(view.summaries))
        room_cell = cell(max(0, budget.reference - kept_free))
        plan = engine.plan(view, room_cell, call.prompt_tokens)
        tokens = plan_tokens(plan, view)
        # Room was kept for what is said of all the summaries; what is not shown needs no words.
        addition = engine.addition([s.summary for s in plan.segments if isinstance(s, Summarized)])
        addition_tokens = core.text_tokens(addition)
        room = max(0, budget.reference - addition_tokens)
        span.set("contextengine.plan.budget", room)
        span.set("contextengine.plan.tokens", tokens)
        span.set("contextengine.plan.segments", len(plan.segments))
    with call.trace.span("laws"):
        for_items = room_cell - call.prompt_tokens
        case = Case(
            plan, view, for_items, tokens, engine.declared, aim.provider in REASONING_OPTIONAL
        )
        broken = violation(case)
        if broken is not None:
            log.error("plan breaks a law", engine=engine.id, law=str(broken))
            raise EngineBroken(engine.id, str(broken))
    begins = (session.state, view, plan, engine, aim.model, room_cell, kept_free)
    epoch = settled = epoch_of(*begins, mark.whole)
    joined = runs.join(epoch, plan, view)
    if mark.whole:
        settled = epoch_of(*begins, mark.settled)
        joined.begun = False  # such a list is joined anew each time
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
        settled_epoch=settled,
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


async def fall_back(
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
    """The engine is recorded as failed; the answer follows `on_engine_failure`. `view`: a list to
    show; else the session. `reason`: what was wrong before."""
    broken = blamed(selected.engine, error)
    core.engine_failed(session.scope, broken.engine_id, "assemble", broken.how)
    if not core.selection.falls_back:
        raise EngineFailed(
            f"engine {broken.engine_id!r} failed to assemble: {broken.how}: assign another engine"
            " or set on_engine_failure",
            metadata={"engine": broken.engine_id, "operation": "assemble", "how": broken.how},
        ) from broken
    if view is None:
        await reread(core, session, None, locked=locked)
    engine = core.selection.fallback()
    try:
        return finish(
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
        also = blamed(engine, second)
        raise EngineFailed(
            f"engine {broken.engine_id!r} failed, and so did {engine.id!r}, which stood in:"
            f" {also.how}",
            metadata={"engine": broken.engine_id},
        ) from second


async def reread(
    core: SessionCore,
    session: Session,
    reach: int | None,
    since: int | None = None,
    *,
    locked: bool,
) -> None:
    """Reads the session again, as far back as is needed. `locked`: the caller holds its lock."""
    if locked:
        await core.fresh(session, reach, since)
    else:
        async with session.lock:
            await core.fresh(session, reach, since)
