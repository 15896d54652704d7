"""What ends, empties or shortens a session's view."""

from __future__ import annotations

import msgspec
from msgspec import structs
from msgspec.structs import replace

from contextengine_server.errors import (
    InvalidField,
)
from contextengine_server.session.address import Address
from contextengine_server.session.change import (
    Changed,
    Editor,
    PreparedChange,
    own_summaries,
    rewound,
)
from contextengine_server.session.load import inherits
from contextengine_server.session.receipt import Request
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import Rehydration, SessionState, ViewFacts
from contextengine_server.store.rows import SessionHead
from contextengine_server.summarize.guards.attempts import Attempts
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
                rehydration=Rehydration(),
                attempts=Attempts(),
            )
            head = replace(head, message_count=0, message_tokens=0, summary_count=0)
            return PreparedChange(
                state,
                head,
                retire_after=0,
                retire_summaries=own_summaries(session, 0),
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
            left = rewound(session, after)
            return PreparedChange(
                left.state(state, head.revision),
                left.head(session, head),
                retire_after=after,
                retire_summaries=left.summaries,
                facts=left.facts,
                numbers={"retired": left.gone},
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
