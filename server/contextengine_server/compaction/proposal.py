"""Proposals (docs/semantics.md#proposals): a compaction is worked out and shown, and committed only
when the harness takes it.

A proposal is kept beside the answers to requests: it survives a restart, and takes nothing from
anyone until it is taken. It expires harmlessly. It may be taken after messages were appended, but
not after anything reshaped the history that it covers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec
import orjson
from msgspec import structs
from msgspec.structs import replace

from contextengine_server.compaction.commit import announce, compacted_head, place
from contextengine_server.compaction.compaction_pass import row_after, row_of
from contextengine_server.compaction.compactor import Compactor
from contextengine_server.compaction.model_failure import aborted, after_commit
from contextengine_server.compaction.request import (
    HELD,
    NO_SMALLER,
    Compacted,
    CompactionRequest,
    hold_raw_history,
    precondition_of,
)
from contextengine_server.compaction.rewrites import Rewriting
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.lawful import snapshot_of
from contextengine_server.context.laws.progress import shrinks
from contextengine_server.context.view import View
from contextengine_server.context.work import Work
from contextengine_server.engines.contract import Engine, NothingToDo
from contextengine_server.errors import FieldViolation, RowNotFound
from contextengine_server.session.address import Address
from contextengine_server.session.rehydration.decision import rehydrated
from contextengine_server.session.rows import summary_of
from contextengine_server.session.session import Session, survey
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.window import with_oldest
from contextengine_server.slices import in_slices
from contextengine_server.store.errors import DuplicateRequest, RevisionConflict
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Commit, SessionHead, StoredReply, SummaryRow

EXPIRES_MS = 10 * 60_000
"""How long a proposal may be taken: a harness decides within one of its turns."""


class ProposalOutcome(StrEnum):
    """What became of a proposal, in the words of the wire."""

    COMMITTED = ""
    REFUSED = "refused"
    EXPIRED = "expired"
    CHANGED = "the session changed"


class Proposal(msgspec.Struct):
    """What would be committed. Tokens in the reference encoding."""

    done: Compacted
    view: View
    """The view as it would be: of what was there when the proposal was begun."""
    id: str = ""
    """Empty: there is nothing to propose."""
    expires_ms: int = 0

    def ahead(self, session: Session) -> Work[Session]:
        """The session as it would be, with what would come back behind the summaries, apart from
        what is in memory of it."""
        state = rehydrated(session, self._rows(), session.state)
        ahead = Session(session.scope, session.encoding)
        made = [summary_of(row, session.encoding.shaper) for row in self._rows()]
        summaries = [*session.live_summaries, *made]
        known = yield from survey(self.view)
        ahead.place(
            session.head, state, self.view, summaries, session.reach, session.encoding, known
        )
        return ahead

    def _rows(self) -> list[SummaryRow]:
        return [row for row in self.done.summaries if isinstance(row, SummaryRow)]


class Proposals(msgspec.Struct, frozen=True):
    """Compactions that are shown before they are made."""

    sessions: Sessions
    store: Store
    compactor: Compactor
    clock_ms: Callable[[], int]
    new_id: Callable[[], str]

    async def propose(
        self, address: Address, engine: Engine, wanted: CompactionRequest, reach: int | None
    ) -> Proposal:
        """Works out a compaction without committing any of it. `reach`: how far back the view that
        it answers must go. The caller holds the session's compaction lock. Raises EngineFailed."""
        async with self.sessions.open(
            address.scope, None if engine.chunk is None else reach
        ) as session:
            head, ground = session.require(), precondition_of(session)
            if session.state.view.scattered:
                async with session.lock:
                    await self.sessions.fresh(session, None)
            if engine.chunk is not None:
                await hold_raw_history(self.sessions, session)
            view = _apart(session.view)
            before, tokens = snapshot_of(view), ReferenceTokens(view.view_tokens())
            proposal = Proposal(Compacted("", tokens, tokens), view)
            rows: list[SummaryRow] = []
            reason = HELD if session.state.held and not wanted.force else ""
            rewriting = Rewriting(self.sessions)
            while not reason and len(rows) < wanted.passes:
                oldest = await self._oldest(engine, session, view)
                made = await self.compactor.planned(
                    engine, session, oldest, wanted, len(rows), rewriting
                )
                if isinstance(made, NothingToDo):
                    reason = made.reason
                    break
                resting = self.compactor.resting(engine, session, wanted)
                if resting and session.state.attempts.aborts:
                    reason = proposal.done.failed(session.state.attempts.failure).why
                    break
                facts = await in_slices(self.compactor.memory.of_pass(session, made))
                if facts is not None:
                    await self.compactor.memory.tell(facts)
                summary = await self.compactor.summary_for(
                    address.scope, session.encoding, engine, made, wanted, resting=resting
                )
                if summary.failure is not None:
                    await self.compactor.note_failure(address, engine, summary)
                if aborted(engine, summary.failure):
                    reason = proposal.done.failed(summary.failure).why
                    break
                # All of them would be committed at once: under one revision, so that no later
                # summary has the id of one that was taken back; and what was evicted by then is the
                # same for each.
                ahead = replace(
                    head, revision=head.revision + 1, generation=head.generation + len(rows)
                )
                row = row_of(
                    made, summary, ahead, before, session.encoding.shaper, [one.id for one in rows]
                )
                if not shrinks(made.gain, row.tokens):
                    reason = NO_SMALLER
                    break
                rows.append(row)
                view.place(summary_of(row, session.encoding.shaper))
            proposal.done.summaries += rows
            proposal.done.after = ReferenceTokens(view.view_tokens())
            proposal.done.ended(reason)
            if rows:
                proposal.id, proposal.expires_ms = self.new_id(), self.clock_ms() + EXPIRES_MS
                kept = {
                    "ground": structs.astuple(ground),
                    "rows": msgspec.to_builtins(rows),
                    "engine": engine.id,
                    "force": wanted.force,
                    "limit": self.compactor.judged_by(engine, session, wanted.available),
                    "expires_ms": proposal.expires_ms,
                }
                await self.store.remember(
                    address.scope, StoredReply(_name(proposal.id), b"", orjson.dumps(kept))
                )
            return proposal

    async def _oldest(self, engine: Engine, session: Session, view: View) -> View:
        """The view with as much of the oldest uncovered history as the engine takes at a time."""
        if engine.chunk is None or not view.base:
            return view
        return await with_oldest(self.store, view, session.encoding.shaper, engine.chunk)

    async def decide(self, session: Session, proposal_id: str, accept: bool) -> ProposalOutcome:
        """Takes or refuses a proposal, once: what was decided first stands. The session is locked.
        Raises RowNotFound."""
        known = await self.store.reply(session.scope, _name(proposal_id))
        if known is None:
            raise RowNotFound(
                f"proposal_id: the session has no proposal {proposal_id[:64]!r}: give the id that"
                " Compact answered",
                violations=[FieldViolation("proposal_id", "no such proposal")],
                metadata={"field": "proposal_id"},
            )
        decided = await self.store.reply(session.scope, _name(proposal_id, decided=True))
        if decided is not None:
            return ProposalOutcome(decided.reply.decode())
        kept = orjson.loads(known.reply)
        if not accept:
            return await self._refused(session, proposal_id)
        if self.clock_ms() >= kept["expires_ms"]:
            return ProposalOutcome.EXPIRED
        tries = 0
        while True:
            if list(structs.astuple(precondition_of(session))) != kept["ground"]:
                return ProposalOutcome.CHANGED
            head = replace(self.sessions.next_head(session), ended=session.require().ended)
            rows = _rows(kept["rows"], head, session.view)
            state = after_commit(session.state, rows, kept.get("limit", 0), head.updated_ms)
            head, state = compacted_head(head, session, rows, state, kept["force"])
            head = replace(head, state=state.encode())
            try:
                await self.sessions.commit(
                    Commit(
                        head=head,
                        expected_revision=session.revision,
                        summaries=rows,
                        debt=self.compactor.owed(session, rows, head.updated_ms),
                        reply=StoredReply(
                            _name(proposal_id, decided=True),
                            b"",
                            ProposalOutcome.COMMITTED.encode(),
                        ),
                    )
                )
            except DuplicateRequest as duplicate:
                return ProposalOutcome(duplicate.stored.reply.decode())
            except RevisionConflict:
                tries += 1
                await self.sessions.lost_race(session, tries)
                continue
            session.advance(head, state)
            place(session, rows)
            for row in rows:
                announce(self.compactor.events, self.compactor.meters, session, kept["engine"], row)
            return ProposalOutcome.COMMITTED

    async def _refused(self, session: Session, proposal_id: str) -> ProposalOutcome:
        """The first decision stands, also where another replica made it at the same time."""
        name = _name(proposal_id, decided=True)
        await self.store.remember(
            session.scope, StoredReply(name, b"", ProposalOutcome.REFUSED.encode())
        )
        decided = await self.store.reply(session.scope, name)
        return (
            ProposalOutcome(decided.reply.decode())
            if decided is not None
            else ProposalOutcome.REFUSED
        )


def _apart(view: View) -> View:
    """A view that stays as it is when the session goes on, and may be changed."""
    return dataclasses.replace(
        view,
        atoms=list(view.atoms),
        anchors=dict(view.anchors),
        summaries=list(view.summaries),
        stretches=list(view.stretches),
        evictions=view.evictions.copy(),
    )


def _rows(kept: Sequence[dict[str, object]], head: SessionHead, view: View) -> list[SummaryRow]:
    """The rows as they are committed with this head, over the view as it is now."""
    before = snapshot_of(view)
    rows = []
    for number, fields in enumerate(kept, 1):
        row = row_after(msgspec.convert(fields, SummaryRow), before)
        generation = head.generation + number
        rows.append(replace(row, created_revision=head.revision, generation=generation))
    return rows


def _name(proposal_id: str, *, decided: bool = False) -> str:
    """Under which the store keeps a proposal, and what was decided about it."""
    return f"Proposal{'Decided' if decided else ''}:{proposal_id}"
