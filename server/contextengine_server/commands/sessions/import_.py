"""Import: a whole session is stored, all or none."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.errors import SessionExists
from contextengine_server.session.address import Addresses, Ref
from contextengine_server.session.append import Appender
from contextengine_server.session.receipt import Disposition
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions, count_messages
from contextengine_server.session.state import ALL_OF_IT, FLUSH
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Debt, SessionHead
from contextengine_server.wire.message import Incoming


class Imported(msgspec.Struct, frozen=True):
    """What became of the messages."""

    head: SessionHead
    stored: int
    duplicates: int


class Import(msgspec.Struct, frozen=True):
    """Stores sessions that were kept elsewhere."""

    addresses: Addresses
    sessions: Sessions
    store: Store
    appender: Appender
    remembers: bool
    """There is a memory of what sessions say."""

    async def check(self, tenant: str, ref: Ref) -> None:
        """Raises InvalidField for a session that cannot be, before its messages are read."""
        await self.addresses.find(tenant, ref)

    async def run(
        self, tenant: str, ref: Ref, said: Introduction, messages: Sequence[Incoming]
    ) -> Imported:
        """Stores a whole session; the same again changes nothing but rows that are damaged, which
        it mends, and one that begins with what is stored goes on with the rest. Raises
        SessionExists where the session holds other messages."""
        address = await self.addresses.find(tenant, ref)
        count = len(messages)
        encoding = await self.sessions.encoding_of(address.scope)
        await count_messages(encoding, messages)
        async with self.sessions.open(address.scope, None, lock=True) as session:
            if session.head is not None and session.view.last_sequence:
                known = [entry.hash for entry in session.view.entries()]
                if known != [message.hash for message in messages[: len(known)]]:
                    raise SessionExists(
                        f"session {address.scope.session!r} holds other messages: import under"
                        " another id or delete it first",
                        metadata={"session_id": address.scope.session, "messages": str(len(known))},
                    )
                await self._mend(session, messages)
                messages = messages[len(known) :]
            draft = self.sessions.next_head(session)
            news = said.news(session, draft)
            debt = Debt(draft.scope, FLUSH, draft.updated_ms, payload=ALL_OF_IT)
            written = await self.appender.append(
                session,
                address,
                messages,
                field_name="message",
                refuse_conflicts=True,
                edit=said.edit if news else None,
                debt=debt if self.remembers else None,
            )
            stored = sum(one.disposition == Disposition.STORED for one in written.stored)
            head = session.require()
        return Imported(head, stored, count - stored)

    async def _mend(self, session: Session, messages: Sequence[Incoming]) -> None:
        """Puts what is imported in the place of stored messages that are damaged. Their hashes are
        the same, so it is what they were."""
        damaged = [
            (entry.sequence, entry.hash, message.body)
            for entry, message in zip(session.view.entries(), messages, strict=False)
            if entry.damaged
        ]
        if damaged and await self.store.mend(session.scope, damaged):
            await self.store.index.renew(session.scope)
            await self.sessions.reload(session, session.head, session.reach)
