"""What ends, empties or shortens a session's view."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec
from msgspec import structs
from msgspec.structs import replace

from contextengine_server.errors import InvalidField, LostRace
from contextengine_server.session.address import Address
from contextengine_server.session.change import Changed, Editor, PreparedChange
from contextengine_server.session.load import inherits
from contextengine_server.session.receipt import Request
from contextengine_server.session.rewind.checkpoints import rewound_from_checkpoint
from contextengine_server.session.rewind.rewind import Rewind, own_summaries, rewound
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import FLUSH, Rehydration, SessionState, ViewFacts
from contextengine_server.slices import in_slices
from contextengine_server.store.debts import Debt
from contextengine_server.store.rows import SessionHead
from contextengine_server.summarize.guards.attempts import Attempts
from contextengine_server.telemetry.events import Events

Spans = Sequence[tuple[int, int]]
"""Ranges of sequences: the first and the last of each."""


class Leave(Protocol):
    """Tells whoever wants to hear of it that a session ended, or was emptied."""

    def __call__(self, *, emptied: bool) -> None:
        """Does not wait."""


async def _nobody(session: Session) -> Leave | None:
    return None


class Lifecycle(msgspec.Struct, frozen=True):
    """Ends, empties and shortens sessions' views."""

    sessions: Sessions
    editor: Editor
    events: Events
    remembers: bool = False
    """There is a memory of what sessions say."""
    leaving: Callable[[Session], Awaitable[Leave | None]] = _nobody
    """Who wants to hear of the end of a session, which is locked and says now what they are told;
    None: nobody."""

    async def reset(
        self,
        session: Session,
        address: Address,
        request: Request | None,
        expected_revision: int | None,
        told: Spans = (),
    ) -> Changed:
        """Empties the view; rows stay. `told`: what memory was given of it."""

        async def edit(session: Session, head: SessionHead, state: SessionState) -> PreparedChange:
            count = session.view.message_count
            state, debt = self._settled(head, state, told)
            state = structs.replace(
                state,
                view=ViewFacts(reset_mark=head.revision, reopened=head.revision),
                checkpoints=(),
                detached=state.detached or head.revision,
                held=False,
                refused=(),
                rehydration=Rehydration(),
                attempts=Attempts(),
                remembered_ms=head.updated_ms,
            )
            head = replace(head, message_count=0, message_tokens=0, summary_count=0)
            return PreparedChange(
                state,
                head,
                retire_after=0,
                retire_summaries=sorted(own_summaries(session, 0)),
                numbers={"retired": count},
                debt=debt,
                keeps_facts=True,
                reload=True,
            )

        leave = await self.leaving(session)
        done = await self.editor.change(
            session, address, edit, request=request, expected_revision=expected_revision
        )
        if not done.repeated:
            if leave is not None:
                leave(emptied=True)
            self.events.emit(
                "session:reset",
                *session.scope,
                revision=done.revision,
                counts=dict(done.numbers or {}),
            )
        return done

    async def repeated(self, session: Session, address: Address, request: Request) -> Changed:
        """What a change was answered that is known already. Raises RequestIdReused."""

        async def nothing(session: Session, head: SessionHead, state: SessionState) -> None:
            return None

        return await self.editor.change(session, address, nothing, request=request)

    async def rewind(
        self, session: Session, address: Address, request: Request, after: int
    ) -> Changed:
        """Later rows leave the view. What stays is folded again, since a late result may have gone
        with them: from the newest checkpoint before them where there is one, else all of it."""
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
        ahead: Rewind | None = await rewound_from_checkpoint(self.sessions.store, session, after)
        if ahead is None:
            await self.sessions.fresh(session, None)
        known = session.head

        async def edit(session: Session, head: SessionHead, state: SessionState) -> PreparedChange:
            left = ahead if session.head is known else None
            if left is None and not session.view.base:
                left = await in_slices(rewound(session, after))
            if left is None:
                raise LostRace(
                    f"session {session.scope.session} was changed by another server meanwhile: send"
                    " again",
                    retry_after_ms=50,
                )
            return PreparedChange(
                left.state(state, head.revision),
                left.head(head),
                retire_after=after,
                retire_summaries=left.summaries,
                facts=left.facts,
                shifts=left.shifts,
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
        told: Spans = (),
    ) -> Changed:
        """The conversation is over for now; a later write opens it again. `told`: what memory was
        given of it."""

        async def edit(
            session: Session, head: SessionHead, state: SessionState
        ) -> PreparedChange | None:
            after, debt = self._settled(head, state, told)
            ended = session.head is not None and session.head.ended
            if ended and after == state:
                return None
            numbers = None if ended else {"ended": 1}
            return PreparedChange(after, replace(head, ended=True), numbers=numbers, debt=debt)

        done = await self.editor.change(
            session, address, edit, request=request, expected_revision=expected_revision
        )
        if done.numbers and not done.repeated:
            leave = await self.leaving(session)
            if leave is not None:
                leave(emptied=False)
            self.events.emit("session:ended", *session.scope, revision=done.revision)
        return done

    def _settled(
        self, head: SessionHead, state: SessionState, told: Spans
    ) -> tuple[SessionState, Debt | None]:
        """The state of a session that ends or is emptied with this head: what memory was given of
        it is noted, the rest is owed. What a parent tells a child is no user's word."""
        if not self.remembers or state.depth:
            return state, None
        for span in told:
            state = state.told(*span)
        left = state.lacking(head.parent_sequence + 1, head.last_sequence)
        if not left:
            return state, None
        owed = tuple((*span, head.revision) for span in left)
        debt = Debt(head.scope, FLUSH, head.updated_ms)
        return structs.replace(state, owed=(*state.owed, *owed)), debt

    async def native_compaction(
        self, session: Session, address: Address, request: Request
    ) -> Changed:
        """The harness's native thread was compacted: a binding to it is void, which the epoch
        says."""

        async def edit(session: Session, head: SessionHead, state: SessionState) -> PreparedChange:
            count = state.native_compactions + 1
            return PreparedChange(structs.replace(state, native_compactions=count), head)

        return await self.editor.change(session, address, edit, request=request)
