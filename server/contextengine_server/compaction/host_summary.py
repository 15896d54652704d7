"""A harness's own compaction, reported with RecordHostChange{COMPACTED}: a range is shown as its
summary from now on."""

from __future__ import annotations

import msgspec

from contextengine_server.compaction.commit import compacted_head
from contextengine_server.compaction.compaction_pass import prepare, row_of
from contextengine_server.context.lawful import snapshot_of
from contextengine_server.context.laws.progress import shrinks
from contextengine_server.context.view import View
from contextengine_server.engines.contract import CompactionStep
from contextengine_server.errors import InvalidField
from contextengine_server.session.address import Address
from contextengine_server.session.change import Changed, Editor, PreparedChange
from contextengine_server.session.receipt import Request
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import SessionState
from contextengine_server.store.rows import SessionHead, SummaryRow
from contextengine_server.summarize.request import SummaryResult

MAX_SUMMARY_BYTES = 1024 * 1024
"""Some 250,000 tokens: more than a summary is for, and what is counted and fenced at once."""


class HostSummaries(msgspec.Struct, frozen=True):
    """Records the summaries that harnesses wrote themselves."""

    sessions: Sessions
    editor: Editor

    async def record(
        self,
        session: Session,
        address: Address,
        request: Request,
        first: int,
        last: int,
        text: str,
    ) -> tuple[Changed, SummaryRow | None]:
        """Records the harness's summary over a range of sequences, moved inward to safe cut points.
        The session is locked."""
        head = session.require()
        if not text.strip():
            raise InvalidField(
                "compacted.summary", "is required: the text that stands for the range from now on"
            )
        if len(text.encode()) > MAX_SUMMARY_BYTES:
            raise InvalidField(
                "compacted.summary",
                f"has {len(text.encode())} bytes, at most {MAX_SUMMARY_BYTES} are taken: it is"
                " shown in every assembly",
            )
        if not 1 <= first <= last <= head.last_sequence:
            raise InvalidField(
                "compacted.first_sequence",
                f"the range {first} to {last} is not within the session's sequences 1 to"
                f" {head.last_sequence}",
            )
        await self.sessions.fresh(session, None)
        made: list[SummaryRow] = []

        async def edit(session: Session, head: SessionHead, state: SessionState) -> PreparedChange:
            made.clear()
            pass_ = prepare(session.view, _inward(session.view, first, last))
            summary = SummaryResult(text, 0, "host")
            row = row_of(pass_, summary, head, snapshot_of(session.view), session.encoding.shaper)
            if not shrinks(pass_.gain, row.tokens):
                return PreparedChange(
                    state, head
                )  # law 12: known, but the messages themselves are the shorter text
            made.append(row)
            head, state = compacted_head(head, session, [row], state, force=False)
            return PreparedChange(
                state,
                head,
                summaries=[row],
                numbers={"first": row.first_sequence, "last": row.last_sequence},
                reload=True,
            )

        done = await self.editor.change(session, address, edit, request=request)
        return done, made[0] if made and not done.repeated else None


def _inward(view: View, first: int, last: int) -> CompactionStep:
    """The whole atoms within the range, outside the leading messages and what is pending."""
    end = view.atoms[-1] if view.atoms else None
    unfinished = end is not None and not end.closed and (end.pending or end.growing)
    newest = view.steps - 2 if unfinished else view.steps - 1
    steps = [
        atom.step
        for atom in view.atoms
        if atom.first >= first
        and _last_in_place(view, atom.step) <= last
        and view.leading <= atom.step <= newest
    ]
    # A summary that reaches over an edge of the range keeps what it covers.
    crossed = []
    for summary in view.summaries:
        inside = [step for step in steps if summary.first_step <= step <= summary.last_step]
        if inside and len(inside) < summary.last_step - summary.first_step + 1:
            steps = [step for step in steps if step not in inside]
            crossed.append(summary)
    if crossed and not steps:
        raise InvalidField(
            "compacted.first_sequence",
            f"no step within {first} to {last} is free: a summary covers it, give its whole range"
            f" {crossed[0].first_sequence} to {crossed[-1].last_sequence}",
        )
    if not steps:
        raise InvalidField(
            "compacted.first_sequence",
            f"no whole step lies within {first} to {last}: a range must hold at least one message"
            " with its results",
        )
    replaces = tuple(
        s.id for s in view.summaries if steps[0] <= s.first_step and s.last_step <= steps[-1]
    )
    return CompactionStep(steps[0], steps[-1], 0, replaces, origin="host")


def _last_in_place(view: View, step: int) -> int:
    behind = view.atom(step + 1).first if step + 1 < view.steps else None
    inside = [e.sequence for e in view.atom(step).entries if behind is None or e.sequence < behind]
    return max(inside, default=view.atom(step).first)
