"""Going on where another session stood: its head and state at that moment become the beginning of
this one's."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import structs
from msgspec.structs import replace

from contextengine_server.context.fold import forked
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import Summary, View
from contextengine_server.errors import ContradictoryFields
from contextengine_server.store.rows import Parent, SessionHead

from .load import place_summaries
from .session import Session, Survey
from .state import SessionState


class ParentSession(msgspec.Struct, frozen=True):
    """The session whose view goes on in another, as it is now."""

    head: SessionHead
    state: SessionState

    @property
    def named(self) -> Parent:
        """What a commit that stands on it names."""
        return Parent(self.head.scope, self.head.incarnation)


def begun(
    head: SessionHead, state: SessionState, warm: Callable[[Scope], Session | None]
) -> tuple[View, list[Summary], Survey | None] | None:
    """The view of a session that stands where it began, every live summary, and what is known of
    all that the view holds, by what is in memory of its parent: what reading all rows would come
    to. Without the last where it takes a look at everything. None where that does not tell: the
    session has gone on since, or the parent has, or is not held whole. `warm`: the session of a
    scope, where it is in memory."""
    if not head.parent_session or state.detached:
        return None
    parent = warm(Scope(head.scope.tenant, head.scope.agent, head.parent_session))
    known = parent.head if parent is not None else None
    if parent is None or known is None or parent.view.base:
        return None
    there = (known.incarnation, known.revision, known.last_sequence, known.message_count)
    if there != (
        head.parent_incarnation,
        head.parent_revision,
        head.parent_sequence,
        head.message_count,
    ):
        return None
    if head.revision != head.parent_revision + 1 or head.last_sequence != head.parent_sequence:
        return None
    view = forked(parent.view, head.scope)
    view.revision, view.incarnation = head.revision, head.incarnation
    view.commit_id = head.commit_id
    summaries = list(parent.live_summaries)
    place_summaries(view, summaries, state)
    view.rewind_mark, view.reset_mark = state.view.rewind_mark, state.view.reset_mark
    known_of = None if parent.damaged else Survey(dict(parent.ids), parent.size)
    return view, summaries, known_of


def continues(session: Session, parent: ParentSession) -> bool:
    """True where the session continues this one already, in this life."""
    head = session.head
    return head is not None and (head.parent_session, head.parent_incarnation) == (
        parent.head.scope.session,
        parent.head.incarnation,
    )


def continue_from(
    session: Session, head: SessionHead, state: SessionState, parent: ParentSession
) -> tuple[SessionHead, SessionState]:
    """The head and the state of a session that continues the parent from now on. Raises
    ContradictoryFields where it has a beginning of its own."""
    known = session.head
    if continues(session, parent):
        return head, state
    if known is not None and (known.last_sequence or known.parent_session):
        raise ContradictoryFields(
            ["continues", "session"],
            "the session has messages of its own or continues another: only an empty session can"
            " continue one",
        )
    return inherit(head, state, parent)


def inherit(
    head: SessionHead, state: SessionState, parent: ParentSession
) -> tuple[SessionHead, SessionState]:
    """The head and the state of a session whose view begins with the parent's, as of now."""
    state = structs.replace(
        state,
        view=structs.replace(parent.state.view, reopened=0),
        encoding=parent.state.encoding,
        detached=0,
        undone=parent.state.undone,
        depth=parent.state.depth,
        discovered=parent.state.discovered,
        found_in=parent.state.found_in,
        workspace=state.workspace or parent.state.workspace,
        rehydration=parent.state.rehydration,
        attempts=parent.state.attempts,
    )
    if not head.model:
        head = replace(head, model=parent.head.model, provider=parent.head.provider)
        state = structs.replace(state, model=parent.state.model)
    head = replace(
        head,
        # Revisions go on where the parent's stood, so that what was there before stays older than
        # what comes.
        revision=max(head.revision, parent.head.revision + 1),
        parent_session=parent.head.scope.session,
        parent_incarnation=parent.head.incarnation,
        parent_revision=parent.head.revision,
        parent_sequence=parent.head.last_sequence,
        last_sequence=parent.head.last_sequence,
        message_count=parent.head.message_count,
        message_tokens=parent.head.message_tokens,
        summary_count=parent.head.summary_count,
    )
    return head, state
