"""Compaction: plan (pure), summarize (slow, outside every lock), commit (short, and only if what
was planned over still stands).

A pass makes one summary. Appends meanwhile are neither lost nor blocked. A pass that would not
shrink the view is not committed and not tried again on the same input (law 12). Nothing is retired:
what a summary stands in for becomes its children, so that it can be taken back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial

import msgspec
import structlog
from msgspec.structs import replace

from contextengine_server.compaction.commit import announce, compacted_head, place
from contextengine_server.compaction.compaction_pass import (
    Pass,
    bounded,
    frame_tokens,
    prepare,
    row_of,
)
from contextengine_server.compaction.memory_flush import MemoryFlush, Told
from contextengine_server.compaction.model_failure import (
    aborted,
    after_commit,
    after_summary,
    goes_by_attempts,
    rests,
)
from contextengine_server.compaction.queue import remake_owed
from contextengine_server.compaction.request import (
    DEFERRED,
    HELD,
    MAX_MOVED,
    NO_SMALLER,
    Compacted,
    CompactionRequest,
    Precondition,
    answered,
    hold_raw_history,
    precondition_of,
    reach_of,
)
from contextengine_server.compaction.rewrites import MAX_ASKED, UNCHANGED_LIST, Rewriting, list_of
from contextengine_server.compaction.summary_request import SummaryRequests, words_of
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.lawful import snapshot_of
from contextengine_server.context.laws.progress import shrinks
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import View
from contextengine_server.engines.contract import (
    CompactionGoal,
    CompactionStep,
    Engine,
    NothingToDo,
)
from contextengine_server.engines.failure import EngineBroken
from contextengine_server.engines.rewrite import rewriter_of
from contextengine_server.errors import EngineFailed
from contextengine_server.session.address import Address
from contextengine_server.session.assembly.addition import kept_for_words
from contextengine_server.session.assembly.pressure import with_uncounted
from contextengine_server.session.change import Editor, PreparedChange
from contextengine_server.session.encoding import Encoding
from contextengine_server.session.rows import summary_of
from contextengine_server.session.selection import Selection
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import SessionState
from contextengine_server.session.window import with_oldest
from contextengine_server.slices import in_slices
from contextengine_server.store.debts import Debt
from contextengine_server.store.errors import RevisionConflict
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Commit, SessionHead, SummaryRow
from contextengine_server.summarize import COUNT_ONLY_MAX_TOKENS
from contextengine_server.summarize.request import SummaryResult
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.meters import Meters

log = structlog.get_logger("contextengine.compact")


class Compactor(msgspec.Struct, frozen=True):
    """Compacts sessions."""

    sessions: Sessions
    store: Store
    selection: Selection
    events: Events
    meters: Meters
    summaries: SummaryRequests
    memory: MemoryFlush
    remakes: bool = True
    """True: summaries that stand in for better ones are made again in the background."""

    async def compact(
        self, address: Address, engine: Engine, wanted: CompactionRequest
    ) -> Compacted:
        """Compacts until the goal is reached or nothing is left to do. The caller holds the
        session's compaction lock."""
        result: Compacted | None = None
        moved, rewriting = 0, Rewriting(self.sessions)
        while True:
            async with self.sessions.open(address.scope, reach_of(engine, wanted)) as session:
                session.require()
                encoding = session.encoding
                ground = precondition_of(session)
                view = await self.planned_over(session, engine)
                tokens = ReferenceTokens(view.view_tokens())
                result = result or Compacted("", tokens, tokens)
                if session.state.held and not wanted.force:
                    return result.ended(HELD)
                if len(result.summaries) >= wanted.passes:
                    return result
                try:
                    done = len(result.summaries)
                    made = await self.planned(engine, session, view, wanted, done, rewriting)
                except EngineFailed:
                    if not self.selection.falls_back:
                        raise
                    stands_in = self.selection.fallback()
                    result.error = f"engine {engine.id} failed, {stands_in.id} stood in"
                    engine = stands_in
                    continue
                self.selection.failures.succeeded(address.scope.tenant, engine.id, "compact")
                if isinstance(made, NothingToDo):
                    return result.ended(made.reason)
                resting = self.resting(engine, session, wanted)
                if resting and session.state.attempts.aborts:
                    return result.failed(session.state.attempts.failure)
                facts = await in_slices(self.memory.of_pass(session, made))
            told = None
            if facts is not None:
                seconds = self.memory.patience(tokens + wanted.uncounted, wanted.available)
                told = await self.memory.tell(facts, seconds)
            summary = await self.summary_for(
                address.scope, encoding, engine, made, wanted, resting=resting
            )
            if aborted(engine, summary.failure):
                await self.note_failure(address, engine, summary)
                return result.failed(summary.failure)
            if "failed" in summary.causes:
                result.error = f"a summarizer failed, {summary.summarizer} stood in"
            committed = await self._commit(address, engine, made, summary, ground, wanted, told)
            if told is not None and not told.ok:
                await self.memory.owe(address.scope, self.sessions.clock_ms())
            if committed is None:
                moved += 1
                if moved > MAX_MOVED:
                    return result.ended(DEFERRED)
                continue
            moved = 0
            row, after = committed
            if row is None:
                return result.ended(NO_SMALLER)
            rewriting.committed()
            result.summaries.append(row)
            result.after = after

    async def planned_over(self, session: Session, engine: Engine) -> View:
        """The view that a pass is planned over: it holds as much of the oldest uncovered history as
        the engine takes at a time."""
        view = session.view
        if engine.chunk is None or not view.base:
            return view
        if session.state.view.scattered:
            # A message with late results of several atoms tells one place: it may belong to the
            # oldest history as well.
            async with session.lock:
                await self.sessions.fresh(session, None)
            return session.view
        await hold_raw_history(self.sessions, session)
        return await with_oldest(self.store, session.view, session.encoding.shaper, engine.chunk)

    async def planned(
        self,
        engine: Engine,
        session: Session,
        view: View,
        wanted: CompactionRequest,
        done: int,
        rewriting: Rewriting,
    ) -> Pass | NothingToDo:
        """The same as `next_pass`, where an engine that rewrites lists is asked how. Where it
        leaves the list as it is, and a compaction is forced, the summarizers are asked instead.
        The session is not locked. Raises EngineFailed."""
        ground = precondition_of(session)
        left = rewriting.next_pass(engine, session.encoding, view, ground)
        if left is not None:
            return left
        made = await self.next_pass(engine, session, view, wanted, done)
        rewriter = rewriter_of(engine)
        if isinstance(made, NothingToDo) or not made.step.rewrites or rewriter is None:
            return made
        if rewriting.asked < MAX_ASKED:
            tokens = view.view_tokens() + wanted.uncounted
            with self.asking(session.scope, engine):
                await rewriting.ask(rewriter, session, list_of(view), wanted, tokens, ground)
            if precondition_of(session) != ground:
                return made  # which is not committed either: the view is another by now
            left = rewriting.next_pass(engine, session.encoding, view, ground)
            if left is not None:
                return left
        return made if wanted.force else NothingToDo(UNCHANGED_LIST)

    async def next_pass(
        self, engine: Engine, session: Session, view: View, wanted: CompactionRequest, done: int
    ) -> Pass | NothingToDo:
        """What is to be summarized next, after `done` passes; or why nothing is. Raises
        EngineFailed."""
        with self.asking(session.scope, engine):
            over = bool(done) and self.reached(engine, session.encoding, view, wanted)
        forced = wanted.force and not done
        step = await self.next_step(engine, view, wanted, forced=forced, over=over, session=session)
        if isinstance(step, NothingToDo):
            return step
        made = prepare(view, step)
        return (
            NothingToDo(NO_SMALLER) if _key(engine, made, wanted) in session.state.refused else made
        )

    async def summary_for(
        self,
        scope: Scope,
        encoding: Encoding,
        engine: Engine,
        made: Pass,
        wanted: CompactionRequest,
        *,
        resting: bool = False,
    ) -> SummaryResult:
        """The summary of a pass: the engine\'s own, or by the chain; `resting`: by no model of it.
        Only cancellation is raised."""
        text = made.step.text
        if text:
            return SummaryResult(text, encoding.count(text), engine.id)
        frame = frame_tokens(made, encoding.count)
        summary = await self.summaries.write(
            scope,
            engine,
            made.step,
            made.entries,
            made.gain,
            wanted.steering,
            frame=frame,
            count=encoding.count,
            children=made.sources,
            asked=made.asked,
            resting=resting,
        )
        target = max(COUNT_ONLY_MAX_TOKENS, made.step.most_tokens - frame)
        return bounded(summary, target, encoding.count)

    def resting(self, engine: Engine, session: Session, wanted: CompactionRequest) -> bool:
        """True where no model is to be asked now."""
        return not wanted.force and rests(engine, session.state, self.sessions.clock_ms())

    async def note_failure(self, address: Address, engine: Engine, summary: SummaryResult) -> None:
        """Has the session remember that models failed, under an engine that goes by that."""
        if not goes_by_attempts(engine):
            return

        async def edit(session: Session, head: SessionHead, state: SessionState) -> PreparedChange:
            now_ms = self.sessions.clock_ms()
            return PreparedChange(after_summary(engine, state, summary, now_ms), head)

        self.meters.compacted["failed"].value += 1
        async with self.sessions.open(address.scope, lock=True) as session:
            await Editor(self.sessions, self.store, self.events).change(session, address, edit)

    def reached(
        self, engine: Engine, encoding: Encoding, view: View, wanted: CompactionRequest
    ) -> bool:
        """True where the goal is reached: below the threshold, or the next assembly need evict
        nothing."""
        tokens = view.view_tokens() + wanted.uncounted
        if wanted.to_threshold and engine.threshold:
            return tokens <= wanted.available * engine.threshold
        said = encoding.text_tokens(engine.addition(view.summaries))
        room = max(0, wanted.available - said)
        return tokens <= room - kept_for_words(engine, view, encoding, room)

    async def next_step(
        self,
        engine: Engine,
        view: View,
        wanted: CompactionRequest,
        *,
        forced: bool,
        session: Session,
        over: bool = False,
    ) -> CompactionStep | NothingToDo:
        """What the engine would compact next; `over`: the goal is reached. The session is not
        locked. Raises EngineFailed."""
        goal = CompactionGoal(
            available=wanted.available,
            force=not over
            and (forced or (wanted.force and bool(view.view_tokens() > wanted.available))),
            measured=None if over else with_uncounted(view, wanted.uncounted),
            floor=session.encoding.summary_floor,
            capacity=self.summaries.capacity(session.scope, engine, view),
            reached=over,
            said=words_of,
        )
        with self.asking(session.scope, engine):
            ask = partial(engine.compaction, view, goal)
            return await answered(engine, view.steps, ask, session.lock, reads=True)

    @contextmanager
    def asking(self, scope: Scope, engine: Engine) -> Iterator[None]:
        """An engine that breaks within has failed at compacting. Raises EngineFailed then."""
        try:
            yield
        except EngineBroken as error:
            self.meters.compacted["failed"].value += 1
            raise self.selection.failed(scope, engine.id, "compact", error) from error

    async def _commit(
        self,
        address: Address,
        engine: Engine,
        made: Pass,
        summary: SummaryResult,
        ground: Precondition,
        wanted: CompactionRequest,
        told: Told | None,
    ) -> tuple[SummaryRow | None, ReferenceTokens] | None:
        """Commits a summary where its ground still stands: (row, tokens after). Row None: it would
        not shrink the view. None: the ground has moved, plan again."""
        reach = reach_of(engine, wanted)
        async with self.sessions.open(address.scope, reach, lock=True) as session:
            tries = 0
            while True:
                head = session.require()
                if precondition_of(session) != ground:
                    return None
                new = replace(self.sessions.next_head(session), ended=head.ended)
                # What was evicted is judged by what is there at the commit, appends meanwhile
                # included.
                view, ask = session.view, partial(engine.saved, session.view, wanted.available)
                saved = await answered(engine, view.steps, ask, nullcontext())
                snapshot = snapshot_of(view, saved)
                row = row_of(made, summary, new, snapshot, session.encoding.shaper)
                shrunk = shrinks(made.gain, row.tokens)
                state = session.state if told is None else told.noted(session.state)
                state = after_summary(engine, state, summary, new.updated_ms)
                if shrunk:
                    limit = self.judged_by(engine, session, wanted.available)
                    state = after_commit(state, [row], limit, new.updated_ms)
                    new, state = compacted_head(new, session, [row], state, wanted.force)
                else:
                    state = state.refusing(_key(engine, made, wanted))
                new = replace(new, state=state.encode())
                commit = Commit(
                    head=new,
                    expected_revision=session.revision,
                    summaries=[row] if shrunk else (),
                    debt=self.owed(session, [row] if shrunk else [], new.updated_ms),
                )
                try:
                    await self.sessions.commit(commit)
                except RevisionConflict:
                    tries += 1
                    await self.sessions.lost_race(session, tries)
                    continue
                session.advance(new, state)
                if not shrunk:
                    self.meters.compacted["no_progress"].value += 1
                    sizes = {"gain": made.gain, "cost": row.tokens}
                    log.info("compaction would not shrink the view", engine=engine.id, **sizes)
                    return None, ReferenceTokens(session.view.view_tokens())
                place(session, [row])
                announce(self.events, self.meters, session, engine.id, row)
                return row, ReferenceTokens(session.view.view_tokens())

    def judged_by(self, engine: Engine, session: Session, available: ReferenceTokens) -> int:
        """The threshold that the next bill is held against; 0: none is."""
        if not goes_by_attempts(engine):
            return 0
        with self.asking(session.scope, engine):
            return max(1, engine.limit(session.view, available))

    def owed(self, session: Session, rows: list[SummaryRow], now_ms: int) -> Debt | None:
        """What the session owes with these summaries besides its own: that those which stand in for
        better ones are made again. None: nothing."""
        if not self.remakes:
            return None
        made = [summary_of(row, session.encoding.shaper) for row in rows]
        return remake_owed(session.scope, [*session.live_summaries, *made], now_ms)


def _key(engine: Engine, made: Pass, wanted: CompactionRequest) -> str:
    return made.key(f"{engine.fingerprint}:{wanted.steering.key}")
