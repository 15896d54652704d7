"""What a rewind takes out of a session's view, and what it leaves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

import msgspec
from msgspec.structs import replace

from contextengine_server.context.extension import Extension, moved_spans
from contextengine_server.context.view import Summary, View
from contextengine_server.context.work import Work
from contextengine_server.session.load import inherits, place_summaries
from contextengine_server.session.session import Session
from contextengine_server.session.state import SessionState, ViewFacts, facts_of
from contextengine_server.store.rows import Facts, SessionHead

from .refold import Refolded, refold


class Rewind(msgspec.Struct, frozen=True):
    """What leaves the view, and what is left."""

    after: int
    """Rows behind this sequence are retired."""
    summaries: Sequence[str]
    """Summaries that are retired with them."""
    facts: Sequence[Facts]
    """Facts of older rows that are others by it."""
    shifts: Sequence[tuple[int, int]]
    """How far older rows and summaries move by it, as in `Commit.shifts`."""
    live: list[Summary]
    """The summaries that are left."""
    view: View
    gone: int
    """How many messages leave the view."""
    before: ViewFacts | None = None
    """What is known of the time before the view, where it is not whole."""

    def head(self, head: SessionHead) -> SessionHead:
        """A head with what is left of the view."""
        return replace(
            head,
            message_count=self.view.message_count,
            message_tokens=self.view.total,
            summary_count=len(self.live),
        )

    def state(self, state: SessionState, revision: int) -> SessionState:
        """A state with what is left of the view; `revision`: the one that rewinds."""
        facts = facts_of(self.view, state.view, self.before)
        return replace(
            state,
            view=replace(facts, rewind_mark=revision, reopened=revision),
            checkpoints=tuple(one for one in state.checkpoints if one.sequence <= self.after),
            rehydration=state.rehydration.left(self.after, facts.steps),
        )


def rewound(session: Session, after: int) -> Work[Rewind]:
    """What a rewind to behind a sequence leaves. The session's view is whole. What stays is folded
    again, since a late result may have gone with the rest."""
    left = yield from refold(session.view, after, session.encoding.shaper)
    return leaving(session, after, left)


def leaving(
    session: Session, after: int, left: Refolded, before: ViewFacts | None = None
) -> Rewind:
    """What leaves the view with all behind a sequence. `left`: what is left, into which the
    summaries are brought that stay; `before`: what is known of the time before it, where it is not
    whole.

    A summary that tells of a late result goes with it, as the one goes that reaches behind the
    sequence: neither may tell of what was taken back.
    """
    kept = left.view
    newest = kept.atoms[-1] if kept.atoms else None
    opened = newest is not None and not newest.closed and (newest.pending or newest.growing)
    # A rewind may open the newest step again, although a summary covered it when it was over. Law 2
    # wants it verbatim, so that summary goes.
    limit = newest.first - 1 if newest is not None and opened else after
    retired = own_summaries(session, limit, left.lost)
    live = [one for one in session.live_summaries if one.id not in retired]
    live = moved_spans(live, left.shifts)
    place_summaries(kept, live, session.state)
    # What is inherited stands as its own session stored it.
    floor = rewind_floor(session)
    facts = [fact for fact in left.facts if fact.sequence > floor]
    count = session.view.message_count - kept.message_count
    return Rewind(after, sorted(retired), facts, left.shifts, live, kept, count, before)


def rewind_floor(session: Session) -> int:
    """The sequence that no rewind reaches behind: what a session continues from another is not its
    own to take back."""
    head = session.head
    return head.parent_sequence if head is not None and inherits(head) else 0


def own_summaries(session: Session, after: int, lost: Set[int] = frozenset()) -> set[str]:
    """The session's own live summaries that reach behind a sequence or cover one of the steps
    `lost`. Inherited ones are not ours to retire."""
    inherited = session.head.parent_revision if session.head is not None else 0
    return {
        one.id
        for one in session.live_summaries
        if one.created > inherited
        and (
            one.last_sequence > after
            or any(one.first_step <= step <= one.last_step for step in lost)
        )
    }


def moved_facts(
    facts: Iterable[Facts], later: Iterable[Facts], change: Extension | None
) -> list[Facts]:
    """Facts that a rewind changed, but for those that what is appended changed again, moved by what
    came late: facts are written behind shifts."""
    again = {fact.sequence for fact in later}
    moved = []
    for fact in facts:
        if fact.sequence not in again:
            deltas = change.shifts if change is not None and fact.start is not None else ()
            by = sum(delta for after, delta in deltas if fact.sequence > after)
            start = None if fact.start is None else fact.start + by
            moved.append(replace(fact, start=start))
    return moved
