"""Summaries made again, in place: those that a lower link of the chain wrote because a higher one
was down, those that quote private reasoning or are damaged, and those that were made of any of
these (docs/semantics.md#made-again).

The new one covers the same range and stands where the old one stood, below the same summaries; the
old one stays live below it, so that an undo brings it back. No later generation is lost. One that
is unfit, since it quotes private reasoning or is damaged, does not come back: what takes its place
has its generation.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
import structlog
from msgspec.structs import replace

from contextengine_server.compaction.commit import compacted_head, place
from contextengine_server.compaction.compaction_pass import (
    Pass,
    asked_last,
    bounded,
    frame_tokens,
    id_of,
    row_after,
)
from contextengine_server.compaction.compactor import Compactor
from contextengine_server.compaction.request import HELD, NOT_REMADE, REMADE, Compacted
from contextengine_server.compaction.summary_quality import ours_now, quoting, stand_ins
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.lawful import snapshot_of
from contextengine_server.context.laws.progress import shrinks
from contextengine_server.context.layout import standing
from contextengine_server.context.view import Summary
from contextengine_server.engines.contract import CompactionStep, Engine
from contextengine_server.session.address import Address
from contextengine_server.session.rows import summary_cost, summary_of
from contextengine_server.session.session import Session
from contextengine_server.store.errors import RevisionConflict
from contextengine_server.store.rows import Commit, SummaryRow
from contextengine_server.summarize import COUNT_ONLY_MAX_TOKENS, SummarizerFailed
from contextengine_server.summarize.chain.count_only import NAME as COUNT_ONLY
from contextengine_server.summarize.extractive.summarizer import NAME as EXTRACTIVE
from contextengine_server.summarize.request import Steering, SummaryResult
from contextengine_server.wire.damage import as_shown, intact

log = structlog.get_logger("contextengine.compact")

MOST = 5_000
"""Summaries that one call makes again: as many as one compaction makes."""


class Due(msgspec.Struct, frozen=True):
    """A summary that is to be made again."""

    row: SummaryRow
    better_than: str = ""
    """Only who comes before this one in the chain is asked; empty: all."""
    unfit: bool = False
    """True where it quotes private reasoning, or is damaged."""


def due(rows: Sequence[SummaryRow], quoted: Collection[str] = ()) -> list[Due]:
    """Which of a session's own summaries are to be made again: the shallow ones first, so that what
    was made of them is made of the better ones. `quoted`: those that quote private reasoning."""
    ours = ours_now(rows)
    stood_in = set(stand_ins(ours))
    remade = {row.remakes: row for row in rows if row.remakes and not row.retired_revision}
    found = []
    for row in sorted(ours, key=_shallow_first):
        if row.id in quoted or not intact(row):
            found.append(Due(row, unfit=True))
        elif row.id in stood_in:
            found.append(Due(row, row.summarizer))
        elif any(_newest(child, remade) > row.created_revision for child in row.children):
            # Its children were made again. Whoever writes it now must stand no lower in the chain
            # than who wrote it before.
            found.append(Due(row, COUNT_ONLY if row.summarizer == EXTRACTIVE else EXTRACTIVE))
    return found


def _shallow_first(row: SummaryRow) -> tuple[int, int]:
    return row.depth, row.first_sequence


def _newest(id: str, remade: dict[str, SummaryRow]) -> int:
    """The revision that made a summary again last; 0: none did."""
    made = 0
    while id in remade:
        id, made = remade[id].id, remade[id].created_revision
    return made


class Remake(msgspec.Struct, frozen=True):
    """Makes summaries again."""

    compactor: Compactor

    async def run(
        self,
        address: Address,
        engine: Engine,
        *,
        most: int = MOST,
        force: bool = False,
        look_for_quotes: bool = True,
    ) -> Compacted:
        """Makes again what is due, and says in `error` that something stays. `force`: although a
        compaction was undone. `look_for_quotes`: also those that quote private reasoning, for which
        all messages are read. The caller holds the session's compaction lock."""
        sessions, store = self.compactor.sessions, self.compactor.store
        async with sessions.open(address.scope) as session:
            head = session.require()
            tokens = ReferenceTokens(session.view.view_tokens())
            done = Compacted("", tokens, tokens, no_help=REMADE)
            if session.state.held and not force:
                return done.ended(HELD)
        stored = await store.summaries(address.scope)
        quoted = await quoting(store, head, stored) if look_for_quotes else ()
        in_vain: set[str] = set()
        healed = False
        while len(done.summaries) < most:
            rows = as_shown(await store.summaries(address.scope))
            wanted = next((one for one in due(rows, quoted) if one.row.id not in in_vain), None)
            if wanted is None:
                break
            row = await self._again(address, engine, wanted)
            if row is None:
                in_vain.add(wanted.row.id)
                continue
            done.summaries.append(row)
            healed = healed or wanted.unfit
            async with sessions.open(address.scope) as session:
                done.after = ReferenceTokens(session.view.view_tokens())
        if healed:
            # The index still holds the words of the old summaries.
            await store.index.renew(address.scope)
        if in_vain:
            done.error = f"nobody better wrote {len(in_vain)} summaries: they stay as they are"
        return done.ended(NOT_REMADE)

    async def _again(self, address: Address, engine: Engine, wanted: Due) -> SummaryRow | None:
        """Makes one again; None: nobody better wrote it, or it is not there any more."""
        async with self.compactor.sessions.open(address.scope, None) as session:
            if all(one.id != wanted.row.id for one in session.live_summaries):
                return None
            made, encoding = _pass(session, engine, wanted.row), session.encoding
        frame = frame_tokens(made, encoding.count)
        try:
            summary = await self.compactor.summaries.write(
                address.scope,
                engine,
                made.step,
                made.entries,
                made.gain,
                Steering(),
                frame=frame,
                count=encoding.count,
                children=made.sources,
                asked=made.asked,
                better_than=wanted.better_than,
            )
        except SummarizerFailed as error:
            log.info("no better summary", session=address.scope.session, why=str(error))
            return None
        most = max(COUNT_ONLY_MAX_TOKENS, made.step.target_tokens - frame)
        return await self._commit(
            address, engine, made, bounded(summary, most, encoding.count), wanted
        )

    async def _commit(
        self, address: Address, engine: Engine, made: Pass, summary: SummaryResult, wanted: Due
    ) -> SummaryRow | None:
        """Commits a summary in the place of the old one; None: that is not there any more, or it
        would be no smaller than what it stands for (law 12)."""
        sessions, store = self.compactor.sessions, self.compactor.store
        async with sessions.open(address.scope, lock=True) as session:
            tries = 0
            while True:
                head = session.require()
                # Read anew: late results may have moved its place meanwhile.
                stored = as_shown(await store.summaries(address.scope))
                rows = {row.id: row for row in ours_now(stored)}
                old = rows.get(wanted.row.id)
                if old is None:
                    return None
                new = replace(sessions.next_head(session), ended=head.ended)
                shown = any(one.id == old.id for one in session.view.summaries)
                row = _row(old, summary, new.revision, session, shown=shown)
                generation = old.generation if wanted.unfit else head.generation + 1
                row = replace(row, generation=generation)
                if not shrinks(made.gain, row.tokens):
                    return None
                new, state = compacted_head(new, session, [row], session.state, force=False)
                if wanted.unfit:
                    new = replace(new, generation=head.generation)
                new = replace(new, state=state.encode())
                commit = Commit(head=new, expected_revision=session.revision, summaries=[row])
                try:
                    await sessions.commit(commit)
                except RevisionConflict:
                    tries += 1
                    await sessions.lost_race(session, tries)
                    continue
                session.advance(new, state)
                self._place(session, row, shown=shown)
                self._announce(session, engine, row, old)
                return row

    def _place(self, session: Session, row: SummaryRow, *, shown: bool) -> None:
        """Memory follows the commit. One that stands below another changes nothing of the view."""
        if shown:
            place(session, [row])
            return
        summary = summary_of(row, session.encoding.shaper)
        session.live_summaries.append(summary)
        session.view.stretches.append(summary.stretch)

    def _announce(self, session: Session, engine: Engine, row: SummaryRow, old: SummaryRow) -> None:
        self.compactor.meters.compacted["remade"].value += 1
        self.compactor.events.emit(
            "context:summary_remade",
            *session.scope,
            revision=row.created_revision,
            counts={"depth": row.depth, "tokens_before": old.tokens, "tokens_after": row.tokens},
            attributes={
                "engine": engine.id,
                "summary": row.id,
                "remakes": old.id,
                "summarizer": row.summarizer,
                "written_before_by": old.summarizer,
            },
        )


def _row(
    old: SummaryRow, summary: SummaryResult, revision: int, session: Session, *, shown: bool
) -> SummaryRow:
    """The row in the place of the old one."""
    taken = {one.id for one in session.live_summaries}
    row = replace(
        old,
        id=id_of(revision, summary.text, taken),
        text=summary.text,
        created_revision=revision,
        summarizer=summary.summarizer,
        fallback=summary.fallback,
        wanted=summary.wanted,
        remakes=old.id,
    )
    if shown:
        # The view changes with it, so what was evicted by now stays so.
        row = row_after(row, snapshot_of(session.view))
    return replace(row, tokens=summary_cost(row, session.encoding.shaper))


def _pass(session: Session, engine: Engine, row: SummaryRow) -> Pass:
    """What a summary is made of, now. The view holds all of it."""
    view = session.view
    stands = standing(session.live_summaries)
    children = [stands[child] for child in row.children if child in stands]
    gain = sum(child.tokens for child in children) if row.depth else row.source_tokens
    target = row.tokens
    if row.fallback:
        target = max(session.encoding.summary_floor, min(engine.summary_tokens, gain // 2))
    step = CompactionStep(
        row.first_step,
        row.last_step,
        max(1, min(target, gain - 1)),
        replaces=row.children,
        previous=_previous(stands, row),
        origin=row.origin,
        depth=row.depth,
    )
    kept = {*view.pinned, *range(view.leading)}
    entries = {
        entry.sequence: entry
        for at in range(row.first_step, row.last_step + 1)
        if at not in kept and not row.depth
        for entry in view.atom(at).entries
    }
    return Pass(
        step,
        list(entries.values()),
        children,
        gain,
        row.first_sequence,
        row.last_sequence,
        row.span_start,
        row.span_end,
        asked_last(view),
    )


def _previous(stands: dict[str, Summary], row: SummaryRow) -> str:
    """The text of the summary of this depth before it."""
    before = [
        one
        for one in stands.values()
        if one.depth == row.depth and one.last_step < row.first_step and not one.damaged
    ]
    return max(before, key=_last_step).text if before else ""


def _last_step(summary: Summary) -> int:
    return summary.last_step
