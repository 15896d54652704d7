"""One change of a session that is not messages: prepared, committed, applied; a lost race is read
again and tried again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec
import orjson
from msgspec.structs import replace

from contextengine_server.errors import FieldViolation, RevisionMismatch
from contextengine_server.session.address import Address, leave
from contextengine_server.session.receipt import Request, checked
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import SessionState
from contextengine_server.store.charges import Charge
from contextengine_server.store.debts import Debt
from contextengine_server.store.errors import DuplicateRequest, RevisionConflict
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import (
    Commit,
    Facts,
    Parent,
    SessionHead,
    StoredReply,
    SummaryRow,
)
from contextengine_server.telemetry.events import Events

READ_AGAIN = 1_000
"""Messages of a view up to which one that was in memory as a whole is read so again."""


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
    shifts: Sequence[tuple[int, int]] = ()
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
                        shifts=draft.shifts,
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
                reach = session.reach
                if reach is None and new.message_count > READ_AGAIN:
                    reach = 0
                await self.sessions.reload(session, await self.store.head(session.scope), reach)
            else:
                session.advance(new, draft.state)
            if created:
                self.events.emit("session:created", *session.scope, revision=new.revision)
            return Changed(new.revision, charge=draft.charge, numbers=numbers)


def _repeat(known: StoredReply, request: Request) -> Changed:
    raw = orjson.loads(checked(known, request).reply)
    return Changed(raw["revision"], repeated=True, numbers=raw["numbers"])
