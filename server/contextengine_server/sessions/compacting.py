"""Compaction: plan (pure), summarize (slow, outside every lock), commit (short, and only if what was planned over still stands).

A pass makes one summary. Appends meanwhile are neither lost nor blocked. A pass that would not shrink the view is not committed
and not tried again on the same input (law 12).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import structlog

from contextengine_server.context.budget import cell
from contextengine_server.context.laws.progress import input_key, shrinks
from contextengine_server.context.message import Entry
from contextengine_server.context.view import Summary, View
from contextengine_server.engines.contract import CompactionGoal, CompactionStep, Engine, NothingToDo
from contextengine_server.errors import EngineFailed
from contextengine_server.store.interface import Commit, RevisionConflict, SessionHead, SummaryRow
from contextengine_server.summarize.request import SummaryResult

from .core import Address, SessionCore
from .loading import place_summaries, with_oldest
from .rows import summary_cost, summary_of
from .state import SessionState
from .summarizing import summarize
from .warm import Session

MAX_PASSES = 200
"""Passes of one call; a whole history of four million tokens in leaves of 20,000."""

NO_SMALLER = "nothing to compact: a summary would not be smaller"

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


@dataclass(slots=True, frozen=True)
class _Ground:
    """What must still stand at the commit: nothing that reshapes older history happened."""

    incarnation: str
    reset: int
    rewound: int
    late: int
    generation: int


def _ground(session: Session) -> _Ground:
    view, head = session.view, session.head
    generation = head.generation if head is not None else 0
    return _Ground(view.incarnation, view.reset_mark, view.rewind_mark, view.late_mark, generation)


async def compact(core: SessionCore, address: Address, engine: Engine, wanted: Wanted) -> Compacted:
    """Compacts until the goal is reached or nothing is left to do. The caller holds the session's compaction lock."""
    result: Compacted | None = None
    held_back = 0
    while True:
        async with core.session(address.scope, None if engine.chunk is None else 0) as session:
            head, ground = core.require(session), _ground(session)
            view = session.view
            if engine.chunk is not None and view.base:
                if session.state.view.late_mark:
                    # A late result may belong to the oldest history and lie anywhere behind it: read all of it.
                    async with session.lock:
                        await core.fresh(session, None)
                    view = session.view
                else:
                    view = await with_oldest(core.store, head, view, core.shaper, engine.chunk)
            tokens = view.view_tokens()
            result = result or Compacted("", tokens, tokens)
            if len(result.summaries) >= wanted.passes or (
                result.summaries and reached(core, engine, view, wanted)
            ):
                return result
            try:
                step = next_step(
                    core, engine, view, wanted, forced=wanted.force and not result.summaries, session=session
                )
            except EngineFailed:
                if core.defaults.on_engine_failure != "legacy":
                    raise
                engine = core.selection.legacy()
                continue
            if isinstance(step, NothingToDo):
                result.reason = "" if result.summaries else step.reason
                return result
            entries = entries_of(view, step)
            key = input_key(
                [entry.hash for entry in entries], f"{engine.fingerprint}:{wanted.focus}:{step.target_tokens}"
            )
            if key in session.state.refused:
                result.reason = "" if result.summaries else NO_SMALLER
                return result
            gain = gain_of(view, step)
        summary = await summarize(core, address.scope, engine, step, entries, gain, wanted.focus)
        committed = await _commit(core, address, engine, view, step, entries, gain, summary, ground, key)
        if committed is None:
            held_back += 1
            if held_back > 3:
                result.reason = "" if result.summaries else "deferred to background"
                return result
            continue
        row, after = committed
        if row is None:
            result.reason = "" if result.summaries else NO_SMALLER
            return result
        result.summaries.append(row)
        result.after = after


def reached(core: SessionCore, engine: Engine, view: View, wanted: Wanted) -> bool:
    """True where the goal is reached: below the threshold, or the next assembly need evict nothing."""
    if wanted.to_threshold and engine.threshold:
        return view.view_tokens() <= wanted.available * engine.threshold
    said = core.text_tokens(engine.addition(view.summaries))
    return view.view_tokens() <= cell(max(0, wanted.available - said))


def next_step(
    core: SessionCore, engine: Engine, view: View, wanted: Wanted, *, forced: bool, session: Session
) -> CompactionStep | NothingToDo:
    """What the engine would compact next. Raises EngineFailed."""
    goal = CompactionGoal(
        available=wanted.available,
        force=forced or (wanted.force and bool(view.view_tokens() > wanted.available)),
        to_threshold=wanted.to_threshold,
        measured=wanted.measured,
        floor=core.summary_floor,
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


def entries_of(view: View, step: CompactionStep) -> list[Entry]:
    """The messages that the summary stands for; pinned and leading ones are shown all the same and never summarized."""
    kept = set(view.pinned) | set(range(view.leading))
    return [
        entry for at in range(step.first, step.last + 1) if at not in kept for entry in view.atom(at).entries
    ]


def gain_of(view: View, step: CompactionStep) -> int:
    """The tokens that leave the view with this summary."""
    stays = set(view.must_stay())
    replaced = sum(s.tokens for s in view.summaries if s.id in step.replaces)
    return replaced + sum(
        view.atom(at).tokens
        for at in range(step.first, step.last + 1)
        if at not in stays and view.covering(at) is None
    )


async def _commit(
    core: SessionCore,
    address: Address,
    engine: Engine,
    view: View,
    step: CompactionStep,
    entries: Sequence[Entry],
    gain: int,
    summary: SummaryResult,
    ground: _Ground,
    key: str,
) -> tuple[SummaryRow | None, int] | None:
    """Commits a summary where its ground still stands: (row, tokens after). Row None: it would not shrink the view. None: the
    ground has moved, plan again."""
    async with core.session(address.scope, lock=True) as session:
        tries = 0
        while True:
            head = core.require(session)
            if _ground(session) != ground:
                return None
            new = core.next_head(session)
            new = replace(new, ended=head.ended)
            row = summary_row(core, view, step, entries, gain, summary, new)
            state = session.state.copy()
            shrunk = shrinks(gain, row.tokens)
            if shrunk:
                new = compacted_head(new, session, step, state)
            else:
                state.refuse(key)
            new = replace(new, state=state.encode())
            commit = Commit(
                head=new,
                expected_revision=session.revision,
                summaries=[row] if shrunk else (),
                retire_summaries=step.replaces if shrunk else (),
            )
            try:
                await core.commit(commit)
            except RevisionConflict:
                tries += 1
                await core.lost_race(session, tries)
                continue
            session.advance(new, state)
            core.meters.compacted["committed" if shrunk else "no_progress"].value += 1
            if not shrunk:
                log.info("compaction would not shrink the view", engine=engine.id, gain=gain, cost=row.tokens)
                return None, session.view.view_tokens()
            live = [s for s in session.live_summaries if s.id not in step.replaces]
            session.live_summaries = [*live, summary_of(row, core.shaper)]
            place_summaries(session.view, session.live_summaries)
            session.runs.clear()
            after = session.view.view_tokens()
            core.events.emit(
                f"context:{engine.id}_compacted",
                *address.scope,
                revision=new.revision,
                counts={
                    "messages": row.message_count,
                    "tokens_before": gain,
                    "tokens_after": row.tokens,
                    "depth": row.depth,
                },
                attributes={"summary": row.id, "summarizer": row.summarizer},
            )
            return row, after


def summary_row(
    core: SessionCore,
    view: View,
    step: CompactionStep,
    entries: Sequence[Entry],
    gain: int,
    summary: SummaryResult,
    head: SessionHead,
) -> SummaryRow:
    first, last = view.atom(step.first), view.atom(step.last)
    times = [entry.time_ms for entry in entries if entry.time_ms is not None]
    row = SummaryRow(
        # Derived, so that the same session compacted in the same way gets the same summary, wherever that happens.
        id=f"s{head.revision}-{blake2b(summary.text.encode('utf-8', 'replace'), digest_size=4).hexdigest()}",
        depth=0,
        first_sequence=first.first,
        last_sequence=max((e.sequence for e in _in_place(view, step)), default=last.first),
        message_count=len(entries),
        source_tokens=gain,
        tokens=0,
        text=summary.text,
        created_revision=head.revision,
        first_step=step.first,
        last_step=step.last,
        span_start=first.start,
        span_end=last.end,
        before_view=view.view_tokens(),
        before_total=view.total,
        before_fixed=view.fixed_tokens(),
        before_peak=view.user_peak,
        start_ms=min(times, default=None),
        end_ms=max(times, default=None),
        summarizer=summary.summarizer,
        fallback=summary.fallback,
        generation=head.generation + 1,
        origin=step.origin,
    )
    return replace(row, tokens=summary_cost(row, core.shaper))


def _in_place(view: View, step: CompactionStep) -> list[Entry]:
    """The messages of the range that stand at their own position: a late result lies behind the range."""
    following = step.last + 1
    # Where the step behind it was not read, the view has no late results: with them all of it is read.
    behind = view.atom(following).first if following < view.steps and view.holds(following) else None
    return [
        entry
        for at in range(step.first, step.last + 1)
        for entry in view.atom(at).entries
        if behind is None or entry.sequence < behind
    ]


def compacted_head(
    head: SessionHead, session: Session, step: CompactionStep, state: SessionState
) -> SessionHead:
    state.compactions += 1
    state.held = False
    # What usage taught comes into force with a compaction's commit, so that nothing changes between two of them.
    state.model.factor = state.model.learned
    count = len(session.live_summaries) - len(step.replaces) + 1
    return replace(head, generation=head.generation + 1, summary_count=count)
