"""What ends, empties or shortens a session's view."""

from __future__ import annotations

import msgspec
from msgspec import structs
from msgspec.structs import replace

from contextengine_server.errors import (
    InvalidField,
)
from contextengine_server.session.address import Address
from contextengine_server.session.change import Changed, Editor, PreparedChange
from contextengine_server.session.load import inherits
from contextengine_server.session.receipt import Request
from contextengine_server.session.rows import refold
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import SessionState, ViewFacts, facts_of
from contextengine_server.store.rows import SessionHead
from contextengine_server.telemetry.events import Events


class Lifecycle(msgspec.Struct, frozen=True):
    """Ends, empties and shortens sessions' views."""

    sessions: Sessions
    editor: Editor
    events: Events

    async def reset(
        self,
        session: Session,
        address: Address,
        request: Request | None,
        expected_revision: int | None,
    ) -> Changed:
        """Empties the view; rows stay."""

        def edit(session: Session, head: SessionHead, state: SessionState) -> PreparedChange:
            count = session.view.message_count
            state = structs.replace(
                state,
                view=ViewFacts(reset_mark=head.revision, reopened=head.revision),
                detached=state.detached or head.revision,
                held=False,
                refused=(),
            )
            head = replace(head, message_count=0, message_tokens=0, summary_count=0)
            return PreparedChange(
                state,
                head,
                retire_after=0,
                retire_summaries=_own_summaries(session, 0),
                numbers={"retired": count},
                reload=True,
            )

        done = await self.editor.change(
            session, address, edit, request=request, expected_revision=expected_revision
        )
        if not done.repeated:
            self.events.emit(
                "session:reset",
                *session.scope,
                revision=done.revision,
                counts=dict(done.numbers or {}),
            )
        return done

    async def rewind(
        self, session: Session, address: Address, request: Request, after: int
    ) -> Changed:
        """Later rows leave the view. What stays is folded again, since a late result may have gone
        with them."""
        head = session.require()
        if after < 0 or after > head.last_sequence:
            raise InvalidField(
                "rewind.after_sequence",
                f"is {after}: give 0 to {head.last_sequence}, the newest sequence",
            )
        if inherits(head) and after < head.parent_sequence:
            raise InvalidField(
                "rewind.after_sequence",
                f"is {after}, among the messages that this session continues from"
                f" {head.parent_session!r} (up to {head.parent_sequence}): go back in that session",
            )
        await self.sessions.fresh(session, None)

        def edit(session: Session, head: SessionHead, state: SessionState) -> PreparedChange:
            kept, facts = refold(session.view, after, session.encoding.shaper)
            facts_now = structs.replace(
                facts_of(kept, state.view), rewind_mark=head.revision, reopened=head.revision
            )
            newest = kept.atoms[-1] if kept.atoms else None
            opened = newest is not None and not newest.closed and (newest.pending or newest.growing)
            # What is open again must be verbatim (law 2), though it was covered as something long
            # over.
            retired = _own_summaries(
                session, newest.first - 1 if newest is not None and opened else after
            )
            gone = session.view.message_count - kept.message_count
            head = replace(
                head,
                message_count=kept.message_count,
                message_tokens=kept.total,
                summary_count=len(session.live_summaries) - len(retired),
            )
            return PreparedChange(
                structs.replace(state, view=facts_now),
                head,
                retire_after=after,
                retire_summaries=retired,
                facts=facts,
                numbers={"retired": gone},
                reload=True,
            )

        done = await self.editor.change(session, address, edit, request=request)
        if not done.repeated:
            self.events.emit(
                "session:rewound",
                *session.scope,
                revision=done.revision,
                counts=dict(done.numbers or {}),
            )
        return done

    async def end(
        self,
        session: Session,
        address: Address,
        request: Request | None,
        expected_revision: int | None,
    ) -> Changed:
        """The conversation is over for now; a later write opens it again."""

        def edit(session: Session, head: SessionHead, state: SessionState) -> PreparedChange | None:
            if session.head is not None and session.head.ended:
                return None
            return PreparedChange(state, replace(head, ended=True), numbers={"ended": 1})

        done = await self.editor.change(
            session, address, edit, request=request, expected_revision=expected_revision
        )
        if done.numbers and not done.repeated:
            self.events.emit("session:ended", *session.scope, revision=done.revision)
        return done

    async def native_compaction(
        self, session: Session, address: Address, request: Request
    ) -> Changed:
        """The harness's native thread was compacted: a binding to it is void, which the epoch
        says."""

        def edit(session: Session, head: SessionHead, state: SessionState) -> PreparedChange:
            count = state.native_compactions + 1
            return PreparedChange(structs.replace(state, native_compactions=count), head)

        return await self.editor.change(session, address, edit, request=request)


def _own_summaries(session: Session, after: int) -> list[str]:
    """The session's own live summaries that reach behind a sequence. Inherited ones are not ours to
    retire."""
    inherited = session.head.parent_revision if session.head is not None else 0
    return [
        s.id for s in session.live_summaries if s.last_sequence > after and s.created > inherited
    ]
