"""What a rewind takes out of a session's view, and what it leaves."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from contextengine_server.context.view import View
from contextengine_server.context.work import Work
from contextengine_server.session.load import inherits
from contextengine_server.session.rows import refold
from contextengine_server.session.session import Session
from contextengine_server.session.state import SessionState, ViewFacts, facts_of
from contextengine_server.store.rows import Facts, SessionHead


class Rewind(msgspec.Struct, frozen=True):
    """What leaves the view, and what is left."""

    after: int
    """Rows behind this sequence are retired."""
    summaries: Sequence[str]
    """Summaries that are retired with them."""
    facts: Sequence[Facts]
    """Facts of older rows that are others by it."""
    view: View
    gone: int
    """How many messages leave the view."""
    before: ViewFacts | None = None
    """What is known of the time before the view, where it is not whole."""

    def head(self, session: Session, head: SessionHead) -> SessionHead:
        """A head with what is left of the view."""
        return replace(
            head,
            message_count=self.view.message_count,
            message_tokens=self.view.total,
            summary_count=len(session.live_summaries) - len(self.summaries),
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
    kept, facts = yield from refold(session.view, after, session.encoding.shaper)
    return leaving(session, after, kept, facts)


def leaving(
    session: Session,
    after: int,
    kept: View,
    facts: Sequence[Facts],
    before: ViewFacts | None = None,
) -> Rewind:
    """What leaves the view with all behind a sequence. `kept`: what is left, with the facts that
    are others by it; `before`: what is known of the time before it, where it is not whole."""
    newest = kept.atoms[-1] if kept.atoms else None
    opened = newest is not None and not newest.closed and (newest.pending or newest.growing)
    # A rewind may open the newest step again, although a summary covered it when it was over. Law 2
    # wants it verbatim, so that summary goes.
    limit = newest.first - 1 if newest is not None and opened else after
    gone = session.view.message_count - kept.message_count
    # What is inherited stands as its own session stored it.
    floor = rewind_floor(session)
    facts = [fact for fact in facts if fact.sequence > floor]
    return Rewind(after, own_summaries(session, limit), facts, kept, gone, before)


def rewind_floor(session: Session) -> int:
    """The sequence that no rewind reaches behind: what a session continues from another is not its
    own to take back."""
    head = session.head
    return head.parent_sequence if head is not None and inherits(head) else 0


def own_summaries(session: Session, after: int) -> list[str]:
    """The session's own live summaries that reach behind a sequence. Inherited ones are not ours to
    retire."""
    inherited = session.head.parent_revision if session.head is not None else 0
    return [
        s.id for s in session.live_summaries if s.last_sequence > after and s.created > inherited
    ]
