"""From a view to an assembly: plan, hold the plan to the laws, join; and what is answered where an
engine fails."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace as renewed
from functools import partial

import msgspec
from msgspec.structs import replace

from contextengine_server.context.budget import ReferenceTokens, cell, in_model
from contextengine_server.context.laws.case import Case
from contextengine_server.context.laws.check import violation
from contextengine_server.context.layout import beside, stands
from contextengine_server.context.message import Form
from contextengine_server.context.plan import Listed, Plan, plan_tokens
from contextengine_server.context.prefix import JOINED_AT_ONCE, PrefixCache, Unjoined
from contextengine_server.context.view import View
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.failure import blamed, lawless
from contextengine_server.engines.host_capabilities import BOOTSTRAPS_THREADS, can
from contextengine_server.memory.shown import fitting
from contextengine_server.session.assembly.addition import (
    addition_of,
    beneath,
    kept_for_words,
    leaves_out,
    left_out_words,
)
from contextengine_server.session.assembly.assembly import (
    DEGRADED,
    FITS,
    OVER_BUDGET,
    Allowance,
    AssembleCall,
    Assembly,
)
from contextengine_server.session.assembly.epoch import epoch_of
from contextengine_server.session.assembly.last_step import with_bounded_step
from contextengine_server.session.assembly.live_view import NO_MARK, Mark
from contextengine_server.session.assembly.pasted import with_bounded_prompt
from contextengine_server.session.assembly.pressure import messages_in, uncounted, with_uncounted
from contextengine_server.session.encoding import Encoding
from contextengine_server.session.failures import engine_failed
from contextengine_server.session.receipt import Stored
from contextengine_server.session.rehydration.reminders import (
    NOTHING,
    BroughtBack,
    Reminders,
    reminders_of,
)
from contextengine_server.session.selection import Selected, Selection
from contextengine_server.session.session import Session, reader_of
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.usage.escalation import longer_output
from contextengine_server.session.usage.retention import MARKED, NONE, breakpoints_of, retention_of
from contextengine_server.slices import ASIDE_RAW, aside, in_slices
from contextengine_server.telemetry.meters import Meters
from contextengine_server.usage.retention import RetentionRules


class PlanInput(msgspec.Struct, frozen=True):
    """What is assembled: a view, and what is known of it."""

    session: Session
    view: View
    allowance: Allowance
    prefixes: PrefixCache
    stored: Sequence[Stored] = ()
    """What the call stored."""
    mark: Mark = NO_MARK
    """Names a list that is not the session's."""
    reason: str = ""
    """Why the answer is DEGRADED; empty: it is not."""


class Draft(msgspec.Struct, frozen=True):
    """A plan before the laws look at it."""

    view: View
    """What it is a plan of: large messages that no law lets go are shorter than in the session's
    view where they would not fit."""
    plan: Plan
    tokens: ReferenceTokens
    usable: ReferenceTokens
    """What it was made for."""
    cell: ReferenceTokens
    """The cell of that, which names the epoch."""
    reserved: int
    """What of that is not for items."""
    pasted: dict[int, int]
    """The characters that are shown of messages which exceed it alone and must stay, by step."""
    left_out: bool
    """Something is neither shown nor summarized."""
    rehydrated: BroughtBack = NOTHING
    """What comes back behind the summaries."""


class Planner(msgspec.Struct, frozen=True):
    """Turns views into assemblies."""

    sessions: Sessions
    selection: Selection
    meters: Meters
    escalated: int
    """The output that is suggested where an answer may be longer; 0: none is."""
    retention: RetentionRules

    async def plan(
        self,
        call: AssembleCall,
        subject: PlanInput,
        selected: Selected,
        instead: Engine | None = None,
        *,
        locked: bool,
    ) -> Assembly:
        """Plans, holds the plan to the laws, and joins: a long list some at a time, after which it
        is planned again. `instead`: the engine that stands in for the selected one. `locked`: the
        caller holds the session's lock."""
        allowance, view, session = subject.allowance, subject.view, subject.session
        # Nobody writes to the session while it is planned in a thread.
        long = view.summaries and view.steps - max(view.raw_from, view.base) > ASIDE_RAW
        if long and not locked:
            async with session.lock:
                if view is not session.view and subject.prefixes is session.prefixes:
                    subject = replace(subject, view=session.view)
                return await self.plan(call, subject, selected, instead, locked=True)
        if allowance.broken is not None and instead is None:
            raise allowance.broken
        engine = instead or selected.engine
        if call.whereabouts.channel and view.channel != call.whereabouts.channel:
            view = renewed(view, channel=call.whereabouts.channel)
        aim, budget = allowance.target, allowance.budget
        text_tokens = session.encoding.text_tokens
        if (aim.model, aim.provider) != (view.reader.model, view.reader.provider):
            view = renewed(view, reader=reader_of(aim.model, aim.provider))
        trace = call.trace
        with trace.span("plan") if trace.sampled else nullcontext(trace) as span:
            if span.sampled:
                span.set("contextengine.engine", engine.id)
            kept = engine.declared.rehydrates is not None and view.summaries
            memory = ""
            if call.memory_texts:
                memory = fitting(call.memory_texts, text_tokens, cell(budget.reference))
            goal = call.objective or session.objective or ""
            drafting = partial(
                draft_of,
                engine,
                session.encoding,
                view,
                budget.reference,
                prompt_tokens=call.prompt_tokens + text_tokens(memory),
                strict_prompt=call.budget.strict_prompt,
                reminders=reminders_of(session, goal) if kept else None,
            )
            draft = await aside(drafting) if long else drafting()
            view, plan, tokens = draft.view, draft.plan, draft.tokens
            addition = said = ""
            if view.summaries or draft.left_out:
                shown = plan.summaries
                addition = addition_of(engine, shown, left_out=draft.left_out)
                # A compaction is asked for the room that there is once nothing is left out.
                said = engine.addition(shown) if draft.left_out else addition
            if memory:
                addition, said = beneath(memory, addition), beneath(memory, said)
            addition_tokens = ReferenceTokens(text_tokens(addition) if addition else 0)
            again = draft.rehydrated
            listed: tuple[Listed, ...] = ()
            if again is not NOTHING:
                listed = beside(plan.segments, again.behind, again.ending, again.step)
            sent = ReferenceTokens(tokens + addition_tokens + again.tokens)
            left = budget.reference - call.prompt_tokens - (text_tokens(said) if said else 0)
            available = ReferenceTokens(max(1, left - again.reserve))
            if span.sampled:
                span.set("contextengine.plan.budget", max(0, budget.reference - addition_tokens))
                span.set("contextengine.plan.tokens", tokens)
                span.set("contextengine.plan.segments", len(plan.segments))
        with trace.span("laws") if trace.sampled else nullcontext():
            case = Case(
                plan,
                view,
                draft.usable - draft.reserved,
                tokens,
                engine.declared,
                view.reader.reasoning_may_go,
            )
            broken = violation(case)
            if broken is not None:
                raise lawless(engine.id, broken)
        begins = (session.state, view, plan, engine, aim.model, draft.cell)
        epoch = settled = epoch_of(*begins, subject.mark.whole, memory)
        own = view is session.view and subject.prefixes is session.prefixes
        try:
            joined = subject.prefixes.join(epoch, plan, view, listed, JOINED_AT_ONCE if own else 0)
        except Unjoined:
            await in_slices(subject.prefixes.joining(epoch, listed or plan.segments, view))
            subject = replace(subject, view=session.view)
            return await self.plan(call, subject, selected, locked=locked)
        if subject.mark.whole:
            settled = epoch_of(*begins, subject.mark.settled, memory)
            joined.begun = False  # such a list is joined anew each time
        reason = subject.reason or ("PROMPT_BOUNDED" if draft.pasted else "")
        outcome = DEGRADED if reason else FITS
        if sent + call.prompt_tokens > budget.reference:
            outcome = OVER_BUDGET
        self.meters.assembled[outcome].value += 1
        more, measured = ReferenceTokens(0), None
        if call.measured is not None:
            factor, outside = budget.factor, call.budget.outside
            told = messages_in(call.measured, outside, session.state.model, factor)
            told = ReferenceTokens(told - addition_tokens - call.prompt_tokens)
            more = uncounted(told, view, engine, available)
            measured = with_uncounted(view, more)
        longer, retention, state = 0, 0, session.state
        if state.usage.length_stop or state.compactions != state.usage.compactions:
            estimated = in_model(ReferenceTokens(sent + call.prompt_tokens), budget.factor)
            longer = longer_output(state, self.escalated, budget, estimated, aim.max_output)
        breakpoints: tuple[int, ...] = ()
        if call.cache_retention or aim.provider in MARKED:
            asked, broke = call.cache_retention, call.cache_broke
            retention = retention_of(self.retention, asked, view, state, broke=broke)
            if retention != NONE:
                known = call.budget.outside
                before = known.counted + round(known.given / budget.factor) + addition_tokens
                least, laid = aim.least_cached / budget.factor, listed or plan.segments
                breakpoints = breakpoints_of(view, laid, joined, before, least)
        judging = partial(engine.due, view, available, measured)
        due = not subject.reason and (await aside(judging) if long else judging())
        made = Assembly(
            view=view,
            plan=plan,
            joined=joined,
            tokens=tokens,
            estimated=in_model(ReferenceTokens(sent + call.preamble_tokens), budget.factor),
            budget=budget,
            cell=draft.cell,
            addition=addition,
            addition_tokens=addition_tokens,
            prompt_tokens=call.prompt_tokens,
            preamble=call.preamble,
            preamble_tokens=call.preamble_tokens,
            epoch=epoch,
            settled_epoch=settled,
            engine=engine,
            selected=selected,
            target=aim,
            asked=call.budget,
            another_model=session.head is not None and aim.model != session.head.model,
            outcome=outcome,
            outcome_reason=reason,
            stored=subject.stored,
            due=due,
            uncounted=more,
            available=available,
            method=session.encoding.counter.method,
            tools=call.tools,
            deferred_tokens=call.deferred_tokens,
            cache_retention=retention,
            breakpoints=breakpoints,
            bootstraps_threads=can(session.state.capabilities, BOOTSTRAPS_THREADS),
            listed=listed or plan.segments,
            rehydrated=again,
            bound=allowance.bound,
            longer_output=longer,
        )
        if self.selection.failures.known:
            self.selection.failures.succeeded(session.scope.tenant, engine.id, "assemble")
        return made

    async def fall_back(
        self,
        call: AssembleCall,
        subject: PlanInput,
        selected: Selected,
        error: Exception,
        *,
        locked: bool,
        apart: bool = False,
    ) -> Assembly:
        """The engine is recorded as failed; the answer follows `on_engine_failure`. `apart`: the
        subject's view is not the session's, and is shown as it is."""
        session = subject.session
        broken = blamed(selected.engine.id, error)
        failed = self.selection.failed(session.scope, broken.engine_id, "assemble", broken)
        if not self.selection.falls_back:
            raise failed from broken
        if not apart:
            await self.sessions.reread(session, None, locked=locked)
        engine = self.selection.fallback()
        shown = PlanInput(
            session,
            subject.view if apart else session.view,
            subject.allowance,
            PrefixCache(),
            subject.stored,
            reason=subject.reason or "ENGINE_FALLBACK",
        )
        try:
            return await self.plan(call, shown, selected, engine, locked=locked or apart)
        except Exception as second:
            also = blamed(engine.id, second)
            advice = f"{engine.id!r}, which was to stand in, failed as well: {also.how}"
            raise engine_failed(broken.engine_id, "assemble", broken, advice) from second


def draft_of(
    engine: Engine,
    encoding: Encoding,
    view: View,
    budget: ReferenceTokens,
    *,
    prompt_tokens: int = 0,
    strict_prompt: bool = False,
    words: int | None = None,
    summaries: bool = True,
    reminders: Reminders | None = None,
) -> Draft:
    """A plan, and what it was made for. `words`: what is kept free for saying that something is
    left out; None: as much as that needs where it may come to it. `summaries`: whether room is kept
    for what is said beside them."""
    asked = words
    # Before the plan it is not known which summaries will be shown: room is kept for the addition
    # with all of them. Behind it, what is said is only of those that are.
    said = engine.addition(view.summaries if summaries else ())
    spoken = encoding.text_tokens(said) if said else 0
    usable = ReferenceTokens(max(0, budget - spoken))
    room_cell = cell(usable)
    reserved, back = prompt_tokens, NOTHING
    if reminders is not None and summaries:
        back = reminders.within(room_cell)
        reserved += back.reserve
    if words is None and view.total > usable - reserved:
        words = kept_for_words(engine, view, encoding, usable - reserved, summaries=summaries)
    reserved += words or 0
    whole = view
    pasted: dict[int, int] = {}
    if view.total > room_cell - reserved and not strict_prompt:
        view, pasted = with_bounded_prompt(view, room_cell - reserved, encoding.shaper)

    again = partial(
        draft_of,
        engine,
        encoding,
        budget=budget,
        view=whole,
        prompt_tokens=prompt_tokens,
        strict_prompt=strict_prompt,
        words=asked,
        summaries=summaries,
        reminders=reminders,
    )
    plan = engine.plan(view, usable, reserved)
    tokens = _tokens(engine, plan, view)
    if plan.over and back.reserve:
        bare = again(reminders=None)
        return replace(bare, rehydrated=replace(back.gone, reserve=0))
    if plan.over and words and not leaves_out(plan, view):
        return again(words=0)
    if (said or back is not NOTHING) and summaries and not plan.summaries:
        without = again(summaries=False)
        if not without.plan.summaries:
            return without
    forms = ""
    if pasted:
        forms = "".join(f":{step}:{chars}" for step, chars in pasted.items())
    if plan.over and tokens + spoken + reserved > budget:
        caps = room_cell if Form.HEAD_TAIL in engine.declared.forms else None
        excess = tokens + reserved - usable
        shorter = with_bounded_step(view, plan, excess, encoding.shaper, caps)
        if shorter is not None:
            view, forms = shorter.view, f"{forms}:{shorter.name}"
            plan = engine.plan(view, usable, reserved)
            tokens = _tokens(engine, plan, view)
        if plan.over and view.waits and engine.declared.evicts:
            return again(view=whole.waiting_alone())
    if back.ending is not None and not stands(plan.segments, back.step):
        back = back.without_ending()
    if back is not NOTHING:
        forms = f"{forms}:{back.name}"
    if forms:
        plan = replace(plan, forms=f"{plan.forms}{forms}")
    left_out = (len(plan.segments) != 1 or plan.cut > 0) and leaves_out(plan, view)
    if left_out and not words and asked is None:
        return again(words=encoding.text_tokens(f"\n{left_out_words(engine)}"))
    return Draft(view, plan, tokens, usable, room_cell, reserved, pasted, left_out, back)


def _tokens(engine: Engine, plan: Plan, view: View) -> ReferenceTokens:
    """What a plan's items cost. Raises EngineBroken where it names steps that are not there."""
    try:
        return ReferenceTokens(plan_tokens(plan, view))
    except LookupError as error:
        broken = violation(Case(plan, view, 0, 0, engine.declared))
        if broken is not None:
            raise lawless(engine.id, broken) from error
        raise
