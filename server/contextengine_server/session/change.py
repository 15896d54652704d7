"""One change of a session that is not messages: prepared, committed, applied; a lost race is read
again and tried again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec
import orjson
from msgspec.structs import replace

from contextengine_server.context.view import View
from contextengine_server.context.work import Work
from contextengine_server.errors import FieldViolation, RevisionMismatch
from contextengine_server.session.address import Address, leave
from contextengine_server.session.load import inherits
from contextengine_server.session.receipt import Request, checked
from contextengine_server.session.rows import refold
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import SessionState, facts_of
from contextengine_server.store.charges import Charge
from contextengine_server.store.errors import DuplicateRequest, RevisionConflict
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import (
    Commit,
    Debt,
    Facts,
    Parent,
    SessionHead,
    StoredReply,
    SummaryRow,
)
from contextengine_server.telemetry.events import Events


class Changed(msgspec.Struct, frozen=True):
    """What became of a change."""

    revision: int
    repeated: bool = False
    charge: Charge | None = None
    numbers: dict[str, int] | None = None


class PreparedChange(msgspec.Struct, frozen=True):
    """A change being prepared: what the commit holds besides the head."""

    state: SessionState
    head: SessionHead
    retire_after: int | None = None
    retire_summaries: Sequence[str] = ()
    summaries: Sequence[SummaryRow] = ()
    facts: Sequence[Facts] = ()
    numbers: dict[str, int] | None = None
    parent: Parent | None = None
    """What the session stands on from now on."""
    charge: Charge | None = None
    """What it reports of a model call."""
    debt: Debt | None = None
    """What the session owes from now on."""
    keeps_facts: bool = False
    """What the agent remembers of the messages that are retired stays."""
    reload: bool = False
    """True where the view must be read again after the commit."""


class Editor(msgspec.Struct, frozen=True):
    """Makes changes of sessions that are not messages."""

    sessions: Sessions
    store: Store
    events: Events

    async def change(
        self,
        session: Session,
        address: Address,
        edit: Callable[[Session, SessionHead, SessionState], Awaitable[PreparedChange | None]],
        *,
        request: Request | None = None,
        expected_revision: int | None = None,
    ) -> Changed:
        """Makes one change under the session's lock, which the caller holds. `edit` answers None
        where there is nothing to do."""
        tries = 0
        while True:
            if request is not None and session.head is not None:
                known = await self.store.reply(session.scope, request.id)
                if known is not None:
                    return _repeat(known, request)
            if expected_revision is not None and expected_revision != session.revision:
                raise RevisionMismatch(
                    f"expected_revision: {expected_revision} was expected, the session is at"
                    f" {session.revision}: read it again",
                    violations=[
                        FieldViolation("expected_revision", f"the session is at {session.revision}")
                    ],
                    metadata={"expected": str(expected_revision), "actual": str(session.revision)},
                )
            created = session.head is None
            head = self.sessions.next_head(session, address)
            draft = await edit(session, head, session.state)
            if draft is None:
                return Changed(session.revision)
            new = replace(draft.head, state=draft.state.encode())
            numbers = draft.numbers or {}
            reply = None
            if request is not None:
                reply = StoredReply(
                    request.id,
                    request.digest,
                    orjson.dumps({"revision": new.revision, "numbers": numbers}),
                )
            if address.left:
                await leave(self.store, address, new.updated_ms)
            try:
                await self.sessions.commit(
                    Commit(
                        head=new,
                        expected_revision=session.revision,
                        retire_after=draft.retire_after,
                        retire_summaries=draft.retire_summaries,
                        summaries=draft.summaries,
                        facts=draft.facts,
                        reply=reply,
                        bind_key=address.bind,
                        parent=draft.parent,
                        charge=draft.charge,
                        debt=draft.debt,
                        keeps_facts=draft.keeps_facts,
                    )
                )
            except DuplicateRequest as duplicate:
                assert request is not None
                return _repeat(duplicate.stored, request)
            except RevisionConflict:
                tries += 1
                await self.sessions.lost_race(session, tries)
                continue
            if draft.reload:
                await self.sessions.reload(
                    session, await self.store.head(session.scope), session.reach
                )
            else:
                session.advance(new, draft.state)
            if created:
                self.events.emit("session:created", *session.scope, revision=new.revision)
            return Changed(new.revision, charge=draft.charge, numbers=numbers)


def _repeat(known: StoredReply, request: Request) -> Changed:
    raw = orjson.loads(checked(known, request).reply)
    return Changed(raw["revision"], repeated=True, numbers=raw["numbers"])


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
        facts = facts_of(self.view, state.view)
        return replace(
            state,
            view=replace(facts, rewind_mark=revision, reopened=revision),
            rehydration=state.rehydration.left(self.after, facts.steps),
        )


def rewound(session: Session, after: int) -> Work[Rewind]:
    """What a rewind to behind a sequence leaves. The session's view is whole. What stays is folded
    again, since a late result may have gone with the rest."""
    kept, facts = yield from refold(session.view, after, session.encoding.shaper)
    newest = kept.atoms[-1] if kept.atoms else None
    opened = newest is not None and not newest.closed and (newest.pending or newest.growing)
    # A rewind may open the newest step again, although a summary covered it when it was over. Law 2
    # wants it verbatim, so that summary goes.
    limit = newest.first - 1 if newest is not None and opened else after
    gone = session.view.message_count - kept.message_count
    # What is inherited stands as its own session stored it.
    floor = rewind_floor(session)
    facts = [fact for fact in facts if fact.sequence > floor]
    return Rewind(after, own_summaries(session, limit), facts, kept, gone)


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
