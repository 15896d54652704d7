"""A harness's own list as what a compaction is about (docs/semantics.md#live-lists): stored first
where the harness says so, and answered as it is afterwards."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.message import Form, Slot
from contextengine_server.context.view import View
from contextengine_server.engines.contract import Engine
from contextengine_server.errors import FieldViolation, RevisionMismatch
from contextengine_server.session.address import Address
from contextengine_server.session.assembly.alignment import ListAlignment
from contextengine_server.session.assembly.assembler import Assembler
from contextengine_server.session.assembly.live_view import take_known_tokens
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions, count_messages
from contextengine_server.store.errors import RevisionConflict
from contextengine_server.store.rows import SessionHead
from contextengine_server.wire.message import Incoming

from .next_request import NextList, list_of, reminders_for


class LiveList(msgspec.Struct, frozen=True):
    """The harness's own list."""

    messages: Sequence[Incoming]
    store_new: bool = False
    """What of it is not stored yet is stored first."""
    takes_back: bool = False
    """It ends where the conversation does: what is stored behind that was taken back."""


class NewList(msgspec.Struct, frozen=True):
    """What the harness should send from now on."""

    shown: NextList = NextList()
    changed: bool = False
    """True where it is not the list that the harness sent."""


class LiveLists(msgspec.Struct, frozen=True):
    """Takes lists in, and answers them as they are after a compaction."""

    sessions: Sessions
    assembler: Assembler

    async def take(
        self, address: Address, live: LiveList, expected_revision: int | None = None
    ) -> None:
        """Counts the list, and stores what it has and the session does not where it says so; the
        session is made where there is none. Raises RevisionMismatch."""
        encoding = await self.sessions.encoding_of(address.scope)
        take_known_tokens(self.sessions.cache.find(address.scope), live.messages)
        await count_messages(encoding, live.messages)
        if not live.store_new:
            return
        async with self.sessions.open(address.scope, lock=True) as session:
            tries = 0
            while True:
                if expected_revision is not None:
                    require_revision(expected_revision, session.require())
                found = await self.assembler.aligned(live.messages, session, locked=True)
                try:
                    await self.assembler.lists.store(
                        session,
                        address,
                        live.messages,
                        found,
                        takes_back=live.takes_back,
                        field_name="live.messages",
                    )
                    return
                except RevisionConflict:
                    tries += 1
                    await self.sessions.lost_race(session, tries)

    async def view(self, session: Session, engine: Engine, live: LiveList) -> View:
        """What there is with the list, stored or not."""
        view, _ = await self._aligned(session, engine, live)
        return view

    async def shown(
        self, session: Session, engine: Engine, live: LiveList, available: ReferenceTokens
    ) -> NewList:
        """The list as an assembly shows it now. Raises EngineBroken."""
        view, sent = await self._aligned(session, engine, live)
        back = await reminders_for(self.sessions.store, engine, session)
        shown = list_of(engine, session.encoding, view, available, back)
        return NewList(shown, [_key(slot) for slot in shown.slots] != sent)

    async def _aligned(
        self, session: Session, engine: Engine, live: LiveList
    ) -> tuple[View, list[object]]:
        """What is shown of the list at most, and by what its messages are known there."""
        found = await self.assembler.aligned(live.messages, session, locked=False)
        # What was stored a moment ago is in the session: the rest of the list is its own.
        storing = live.store_new
        view, _ = await self.assembler.listed(
            live.messages, session, engine, found, (), storing=storing
        )
        return view, _known(session, live.messages, found)


def require_revision(expected: int, head: SessionHead) -> None:
    """Raises RevisionMismatch where a session is at another revision."""
    if expected != head.revision:
        raise RevisionMismatch(
            f"expected_revision: {expected} was expected, the session is at {head.revision}: read"
            " it again",
            violations=[FieldViolation("expected_revision", f"the session is at {head.revision}")],
            metadata={"expected": str(expected), "actual": str(head.revision)},
        )


def _known(
    session: Session, messages: Sequence[Incoming], found: ListAlignment | None
) -> list[object]:
    """By what each message of a list is known in what is shown of it: its sequence, or the content
    of an item of ours."""
    matched = {} if found is None else found.matched
    own, behind = session.own_items(), session.view.last_sequence + 1
    keys: list[object] = []
    for index, message in enumerate(messages):
        if message.own:
            slot = own.get(message.id) or own.get(message.hash)
            keys.append(slot.hash if slot is not None else message.hash)
        else:
            keys.append(matched.get(index, behind + index))
    return keys


def _key(slot: Slot) -> object:
    if slot.form is not Form.VERBATIM:
        return slot.form, slot.hash
    return slot.sequence or slot.hash
