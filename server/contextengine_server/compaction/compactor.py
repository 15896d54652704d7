"""Compaction: plan (pure), summarize (slow, outside every lock), commit (short, and only if what
was planned over still stands).

A pass makes one summary. Appends meanwhile are neither lost nor blocked. A pass that would not
shrink the view is not committed and not tried again on the same input (law 12). Nothing is retired:
what a summary stands in for becomes its children, so that it can be taken back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import structlog

from contextengine_server.compaction.compaction_pass import (
    Pass,
    before_of,
    bounded,
    frame_tokens,
    prepare,
    row_of,
)
from contextengine_server.compaction.summary_request import capacity_for, summarize
from contextengine_server.context.budget import cell
from contextengine_server.context.laws.progress import shrinks
from contextengine_server.context.view import Summary, View
from contextengine_server.engines.contract import (
    CompactionGoal,
    CompactionStep,
    Engine,
    NothingToDo,
    event_name,
)
from contextengine_server.errors import EngineFailed
from contextengine_server.session.cache import Session
from contextengine_server.session.core import Address, SessionCore
from contextengine_server.session.rows import summary_of
from contextengine_server.session.state import SessionState
from contextengine_server.session.window import with_oldest
from contextengine_server.store.errors import RevisionConflict
from contextengine_server.store.rows import Commit, SessionHead, SummaryRow
from contextengine_server.summarize import COUNT_ONLY_MAX_TOKENS
from contextengine_server.summarize.request import SummaryResult
from contextengine_server.telemetry.tracing import Trace

MAX_PASSES = 5_000
"""Passes of one call: a history of a hundred million tokens in leaves of 20,000. Every pass shrinks
the view, so it ends before."""

MAX_MOVED = 3
"""How often in a row a call plans again because the session was reshaped meanwhile."""

NO_SMALLER = "nothing to compact: a summary would not be smaller"
HELD = "nothing to compact: a compaction was undone, and none is made until one is forced"
DEFERRED = "deferred to background"

log = structlog.get_logger("contextengine.compact")


@dataclass(slots=True, frozen=True)
class Wanted:
    """What a compaction should reach. Tokens in the reference encoding."""

    available: int
    force: bool = False
    to_threshold: bool = False
    measured: int | None = None
    focus: str = ""
    passes: int = MAX_PASSES


@dataclass(slots=True)
class Compacted:
    """What a compaction did. Tokens in the reference encoding."""

    reason: str
    before: int
    after: int
    summaries: list[SummaryRow | Summary] = field(default_factory=list)

    @property
    def compacted(self) -> bool:
        """True where the view is smaller now."""
        return bool(self.summaries)

    def ended(self, reason: str) -> Compacted:
        """Nothing more is done; the reason counts where nothing was."""
        self.reason = "" if self.summaries else reason
        return self


@dataclass(slots=True, frozen=True)
class Ground:
    """What must still stand at the commit: nothing that reshapes older history happened."""

    incarnation: str
    reset: int
    rewound: int
    late: int
    undone: int
    generation: int


def ground_of(session: Session) -> Ground:
    """The ground of a session as it is now."""
    view, head = session.view, session.head
    generation = head.generation if head is not None else 0
    return Ground(
        view.incarnation,
        view.reset_mark,
        view.rewind_mark,
        view.late_mark,
        session.state.undo_mark,
        generation,
    )


async def compact(core: SessionCore, address: Address, engine: Engine, wanted: Wanted) -> Compacted:
    """Compacts until the goal is reached or nothing is left to do. The caller holds the session's
    compaction lock."""
    result: Compacted | None = None
    moved = 0
    while True:
        async with core.session(address.scope, None if engine.chunk is None else 0) as session:
            core.require(session)
            ground = ground_of(session)
            view = await planned_over(core, session, engine)
            tokens = view.view_tokens()
            result = result or Compacted("", tokens, tokens)
            if session.state.held and not wanted.force:
                return result.ended(HELD)
            if len(result.summaries) >= wanted.passes:
                return result
            try:
                made = next_pass(core, engine, session, view, wanted, len(result.summaries))
            except EngineFailed:
                if not core.selection.falls_back:
                    raise
                engine = core.selection.fallback()
                continue
            if isinstance(made, NothingToDo):
                return result.ended(made.reason)
        summary = await summary_for(core, address, engine, made, wanted)
        committed = await _commit(core, address, engine, made, summary, ground, wanted)
        if committed is None:
            moved += 1
            if moved > MAX_MOVED:
                return result.ended(DEFERRED)
            continue
        moved = 0
        row, after = committed
        if row is None:
            return result.ended(NO_SMALLER)
        result.summaries.append(row)
        result.after = after


async def planned_over(core: SessionCore, session: Session, engine: Engine) -> View:
    """The view that a pass is planned over: it holds as much of the oldest uncovered history as the
    engine takes at a time."""
    view = session.view
    if engine.chunk is None or not view.base:
        return view
    if session.state.view.scattered:
        # A message with late results of several atoms tells one place: it may belong to the oldest
        # history as well.
        async with session.lock:
            await core.fresh(session, None)
        return session.view
    return await with_oldest(core.store, view, core.shaper, engine.chunk)


def next_pass(
    core: SessionCore, engine: Engine, session: Session, view: View, wanted: Wanted, done: int
) -> Pass | NothingToDo:
    """What is to be summarized next, after `done` passes; or why nothing is. Raises
    EngineFailed."""
    step = next_step(
        core,
        engine,
        view,
        wanted,
        forced=wanted.force and not done,
        over=bool(done) and reached(core, engine, view, wanted),
        session=session,
    )
    if isinstance(step, NothingToDo):
        return step
    made = prepare(view, step)
    return NothingToDo(NO_SMALLER) if _key(engine, made, wanted) in session.state.refused else made


async def summary_for(
    core: SessionCore, address: Address, engine: Engine, made: Pass, wanted: Wanted
) -> SummaryResult:
    """The summary of a pass, by the chain. Only cancellation is raised."""
    frame = frame_tokens(made, core.counter.count_text)
    summary = await summarize(
        core,
        address.scope,
        engine,
        made.step,
        made.entries,
        made.gain,
        wanted.focus,
        frame=frame,
        children=made.sources,
    )
    target = max(COUNT_ONLY_MAX_TOKENS, made.step.target_tokens - frame)
    return bounded(summary, target, core.counter.count_text)


def reached(core: SessionCore, engine: Engine, view: View, wanted: Wanted) -> bool:
    """True where the goal is reached: below the threshold, or the next assembly need evict
    nothing."""
    if wanted.to_threshold and engine.threshold:
        return view.view_tokens() <= wanted.available * engine.threshold
    said = core.text_tokens(engine.addition(view.summaries))
    return view.view_tokens() <= cell(max(0, wanted.available - said))


def next_step(
    core: SessionCore,
    engine: Engine,
    view: View,
    wanted: Wanted,
    *,
    forced: bool,
    session: Session,
    over: bool = False,
) -> CompactionStep | NothingToDo:
    """What the engine would compact next; `over` where the goal is reached. Raises EngineFailed."""
    goal = CompactionGoal(
        available=wanted.available,
        force=not over
        and (forced or (wanted.force and bool(view.view_tokens() > wanted.available))),
        to_threshold=wanted.to_threshold,
        measured=None if over else wanted.measured,
        floor=core.summary_floor,
        capacity=capacity_for(core, session.scope, engine, view),
        reached=over,
    )
    try:
        step = engine.compaction(view, goal)
        if isinstance(step, CompactionStep) and not 0 <= step.first <= step.last < view.steps:
            raise IndexError(f"steps {step.first} to {step.last} of {view.steps}")
        return step
    except Exception as error:
        core.meters.compacted["failed"].value += 1
        log.exception("engine failed", engine=engine.id, operation="compact")
        core.engine_failed(session.scope, engine.id, "compact", type(error).__name__)
        raise EngineFailed(
            f"engine {engine.id!r} failed to compact: {type(error).__name__}",
            metadata={"engine": engine.id, "operation": "compact"},
        ) from error


def _key(engine: Engine, made: Pass, wanted: Wanted) -> str:
    return made.key(f"{engine.fingerprint}:{wanted.focus}")


async def _commit(
    core: SessionCore,
    address: Address,
    engine: Engine,
    made: Pass,
    summary: SummaryResult,
    ground: Ground,
    wanted: Wanted,
) -> tuple[SummaryRow | None, int] | None:
    """Commits a summary where its ground still stands: (row, tokens after). Row None: it would not
    shrink the view. None: the ground has moved, plan again."""
    async with core.session(address.scope, lock=True) as session:
        tries = 0
        while True:
            head = core.require(session)
            if ground_of(session) != ground:
                return None
            new = replace(core.next_head(session), ended=head.ended)
            # What was evicted is judged by what is there at the commit, appends meanwhile included.
            row = row_of(made, summary, new, before_of(session.view), core.shaper)
            state = session.state.copy()
            shrunk = shrinks(made.gain, row.tokens)
            if shrunk:
                state.held = state.held and not wanted.force
                new = compacted_head(new, session, [row], state)
            else:
                state.refuse(_key(engine, made, wanted))
            new = replace(new, state=state.encode())
            commit = Commit(
                head=new, expected_revision=session.revision, summaries=[row] if shrunk else ()
            )
            try:
                await core.commit(commit)
            except RevisionConflict:
                tries += 1
                await core.lost_race(session, tries)
                continue
            session.advance(new, state)
            if not shrunk:
                core.meters.compacted["no_progress"].value += 1
                log.info(
                    "compaction would not shrink the view",
                    engine=engine.id,
                    gain=made.gain,
                    cost=row.tokens,
                )
                return None, session.view.view_tokens()
            place(core, session, [row])
            announce(core, session, engine.id, row)
            return row, session.view.view_tokens()


def compacted_head(
    head: SessionHead, session: Session, rows: list[SummaryRow], state: SessionState
) -> SessionHead:
    """The head with which these summaries are committed."""
    state.compactions += len(rows)
    # What usage taught comes into force with a compaction's commit, so that nothing changes between
    # two of them.
    state.model.factor = state.model.learned
    count = len(session.live_summaries) + len(rows)
    return replace(head, generation=head.generation + len(rows), summary_count=count)


def place(core: SessionCore, session: Session, rows: list[SummaryRow]) -> None:
    """Memory follows the commit of these summaries."""
    for row in rows:
        summary = summary_of(row, core.shaper)
        session.live_summaries.append(summary)
        session.view.place(summary)
    session.runs.clear()


def announce(core: SessionCore, session: Session, engine_id: str, row: SummaryRow) -> None:
    """Counts a committed summary and says that it is there."""
    core.meters.compacted["committed"].value += 1
    core.events.emit(
        event_name(engine_id, "compacted"),
        *session.scope,
        revision=row.created_revision,
        counts={
            "messages": row.message_count,
            "tokens_before": row.source_tokens,
            "tokens_after": row.tokens,
            "depth": row.depth,
            "leaf_summaries_created": int(row.depth == 0),
            "condensed_summaries_created": int(row.depth > 0),
        },
        attributes={"summary": row.id, "summarizer": row.summarizer},
    )


def compacted(span: Trace, done: Compacted) -> None:
    """What a compaction did. Tokens in the reference encoding."""
    span.set("contextengine.compaction.summaries", len(done.summaries))
    span.set("contextengine.compaction.tokens_before", done.before)
    span.set("contextengine.compaction.tokens_after", done.after)
