"""Import: a whole session is stored, all or none, in memory that does not grow with it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.context.scope import Scope
from contextengine_server.errors import LostRace, SessionExists
from contextengine_server.session.address import Address, Addresses, Ref
from contextengine_server.session.append import Appender
from contextengine_server.session.load import inherits
from contextengine_server.session.receipt import Disposition
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions, count_messages
from contextengine_server.session.staged.staged_session import StagedSession
from contextengine_server.session.state import ALL_OF_IT, FLUSH
from contextengine_server.store.debts import Debt
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import MessageRow, SessionHead
from contextengine_server.wire.damage import readable
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

    async def begin(self, tenant: str, ref: Ref, said: Introduction) -> Arrival:
        """A session that is about to be sent. Raises InvalidField for one that cannot be."""
        await self.addresses.find(tenant, ref)
        return Arrival(self, tenant, ref, said)

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
                    raise _other_messages(address.scope, len(known))
                await self._mend(session, messages)
                messages = messages[len(known) :]
            return await self._append(session, address, said, messages, count)

    async def go_on(
        self,
        tenant: str,
        ref: Ref,
        said: Introduction,
        rest: Sequence[Incoming],
        known: int,
        head: SessionHead | None,
        *,
        mended: bool,
    ) -> Imported:
        """Stores what comes behind so many messages that were compared with a session at this head.
        `mended`: some of these were damaged. Raises LostRace where its messages have changed since,
        SessionExists where it holds more."""
        address = await self.addresses.find(tenant, ref)
        if head is not None and not (rest or address.bind or mended or said.names(head)):
            now = await self.store.head(address.scope)
            if now is not None and now.revision == head.revision and known == head.message_count:
                return Imported(head, 0, known)  # nothing of it need be in memory
        await count_messages(await self.sessions.encoding_of(address.scope), rest)
        async with self.sessions.open(address.scope, lock=True) as session:
            if head is None or not _has_the_same_messages(session.head, head):
                raise LostRace(
                    f"session {address.scope.session!r} was changed while it was compared with what"
                    " is imported: nothing was stored; send again",
                    retry_after_ms=50,
                )
            if known < head.message_count:
                raise _other_messages(address.scope, head.message_count)
            # What was damaged in memory may be mended by now.
            await self.sessions.reload(session, session.head, session.reach)
            return await self._append(session, address, said, rest, known + len(rest))

    async def _append(
        self,
        session: Session,
        address: Address,
        said: Introduction,
        messages: Sequence[Incoming],
        count: int,
    ) -> Imported:
        """Stores messages behind those that there are; `count`: of all that were sent."""
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
        return Imported(session.require(), stored, count - stored)

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


class Arrival:
    """A session as it is sent, part by part.

    One that is not there yet is staged. One that is there is compared with what is stored, and what
    goes on behind that is gathered, since it becomes part of a session that others see.
    """

    def __init__(self, rooms: Import, tenant: str, ref: Ref, said: Introduction) -> None:
        self._rooms, self._tenant, self._ref, self._said = rooms, tenant, ref, said
        self._count = self._compared = self._at = 0
        self._staging: StagedSession | None = None
        self._head: SessionHead | None = None
        self._rest: list[Incoming] = []
        self._mended = False

    async def add(self, messages: Sequence[Incoming]) -> bool:
        """Takes a part that is not the last. True: it need not be kept in memory any more. Raises
        SessionExists, MessageConflict, TooLarge, LostRace."""
        rooms = self._rooms
        if not self._count:
            address = await rooms.addresses.find(self._tenant, self._ref)
            self._head = await rooms.store.head(address.scope)
            if self._head is None:
                encoding = await rooms.sessions.encoding_of(address.scope)
                self._staging = StagedSession(rooms.appender, address, encoding)
        first, self._count = self._count, self._count + len(messages)
        if self._staging is not None:
            await self._staging.add(messages, first)
            return True
        if self._rest or self._head is None or inherits(self._head):
            self._rest += messages
            return False
        self._rest += messages[await self._same(self._head, messages) :]
        return not self._rest

    async def finish(self, messages: Sequence[Incoming]) -> Imported:
        """Takes the last part: the session is there."""
        rooms, staging = self._rooms, self._staging
        if staging is not None:
            await staging.add(messages, self._count)
            head = await staging.finish(self._said.edit, remembers=rooms.remembers)
            return Imported(head, staging.stored, staging.duplicates)
        if self._compared:
            await self.add(messages)
            place = self._tenant, self._ref, self._said
            return await rooms.go_on(
                *place, self._rest, self._compared, self._head, mended=self._mended
            )
        return await rooms.run(self._tenant, self._ref, self._said, [*self._rest, *messages])

    async def give_up(self) -> None:
        """Nothing of it is stored."""
        if self._staging is not None:
            await self._staging.give_up()

    async def _same(self, head: SessionHead, messages: Sequence[Incoming]) -> int:
        """How many of the messages are the next that are stored; damaged ones among these are
        mended. Raises SessionExists where others are stored."""
        store = self._rooms.store
        rows: list[MessageRow] = []
        while len(rows) < len(messages) and self._at < head.last_sequence:
            last = min(self._at + len(messages) - len(rows), head.last_sequence)
            rows += await store.messages(head.scope, self._at + 1, last)
            self._at = last
        pairs = list(zip(rows, messages, strict=False))
        if any(row.content_hash != message.hash for row, message in pairs):
            raise _other_messages(head.scope, head.message_count)
        damaged = [
            (row.sequence, row.content_hash, message.body)
            for row, message in pairs
            if readable(row) is None
        ]
        if damaged and await store.mend(head.scope, damaged):
            await store.index.renew(head.scope)
            self._mended = True
        self._compared += len(pairs)
        return len(pairs)


def _has_the_same_messages(now: SessionHead | None, head: SessionHead) -> bool:
    """True where a session has at most been compacted, flushed or told of usage since: background
    work goes on under an import, and what was compared with the messages still holds."""
    if now is None:
        return False
    if now.same_as(head):
        return True
    counts = now.last_sequence, now.message_count
    return now.grew_from(head) and counts == (head.last_sequence, head.message_count)


def _other_messages(scope: Scope, count: int) -> SessionExists:
    return SessionExists(
        f"session {scope.session!r} holds other messages: import under another id or delete it"
        " first",
        metadata={"session_id": scope.session, "messages": str(count)},
    )
