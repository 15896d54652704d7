"""A session that is stored part by part before it is there: nobody sees any of it until all of it
is stored, and what it takes in memory is a part, however long it is.

Its rows are written under a head of revision 0, which no read finds; one small commit makes a
session of it. Whoever makes the session in the meantime wins, and what was staged is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from contextengine_server.context.extension import Extension
from contextengine_server.context.fold import NeedsHistory, apply, extending
from contextengine_server.context.message import Entry
from contextengine_server.context.view import View
from contextengine_server.errors import LostRace, TooLarge
from contextengine_server.session.address import Address, leave
from contextengine_server.session.append import (
    Appender,
    Edit,
    arrived,
    changed_facts,
    facts_after,
    row_of,
)
from contextengine_server.session.encoding import Encoding
from contextengine_server.session.load import load
from contextengine_server.session.receipt import conflict, over_cap
from contextengine_server.session.rewind.checkpoints import with_checkpoints
from contextengine_server.session.sessions import count_messages
from contextengine_server.session.state import ALL_OF_IT, FLUSH, SessionState
from contextengine_server.slices import in_slices
from contextengine_server.store.commits import COMMIT_IDS
from contextengine_server.store.debts import Debt
from contextengine_server.store.errors import DuplicateHostIds, RevisionConflict
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Commit, SessionHead
from contextengine_server.wire.message import Incoming

ERASED_AT_ONCE = 2_000
"""Messages of a staged session that are erased in one transaction."""

MAX_REACH = 4_000_000
"""Tokens by which a result may come late in a session that is staged: all between a call and its
result is in memory at once then, some tens of MB."""


class StagedSession:
    """One session that is staged. For one task."""

    def __init__(self, appender: Appender, address: Address, encoding: Encoding) -> None:
        self.stored = self.duplicates = 0
        sessions = appender.sessions
        self._appender, self._sessions, self._address = appender, sessions, address
        self._encoding, self._begun = encoding, False
        self._state = SessionState(encoding=encoding.name)
        self._view = View(scope=address.scope)
        self._head = SessionHead(address.scope, sessions.new_id(), 0, 0)

    async def add(self, messages: Sequence[Incoming], first: int) -> None:
        """Stores a part. `first`: where it begins in all that is sent. Raises MessageConflict,
        TooLarge, LostRace."""
        scope, store = self._address.scope, self._sessions.store
        if scope.tenant in self._appender.full:
            raise over_cap(*self._appender.full[scope.tenant])
        await count_messages(self._encoding, messages)
        known: dict[str, bytes] = {}
        while True:
            entries = self._entries(messages, first, known)
            try:
                if entries:
                    work = extending(self._view, entries, self._encoding.shaper)
                    await self._store(entries, await in_slices(work))
                break
            except NeedsHistory as needed:
                await self._reach(store, needed.sequence)
            except DuplicateHostIds as found:
                rows = await store.messages_by_host_id(scope, found.ids)
                known |= {row.host_id: row.content_hash for row in rows}
        self.stored += len(entries)
        self.duplicates += len(messages) - len(entries)

    async def finish(self, edit: Edit, *, remembers: bool) -> SessionHead:
        """Makes a session of what is staged. `remembers`: there is a memory of what sessions say.
        Raises LostRace."""
        now, address = self._sessions.clock_ms(), self._address
        key = address.key if address.bind else ""
        head = replace(
            self._head,
            revision=1,
            session_key=key,
            created_ms=now,
            updated_ms=now,
            commit_id=next(COMMIT_IDS),
        )
        head, state = edit(head, self._state)
        head = replace(head, state=state.encode())
        if address.left:
            await leave(self._sessions.store, address, now)
        debt = Debt(head.scope, FLUSH, now, payload=ALL_OF_IT) if remembers else None
        await self._commit(Commit(head, 0, bind_key=address.bind, debt=debt))
        counts = {"messages": self.stored, "tokens": head.message_tokens}
        events, meters = self._appender.events, self._appender.meters
        events.emit("session:created", *head.scope, revision=1)
        events.emit("session:ingested", *head.scope, revision=1, counts=counts)
        meters.messages.value += self.stored
        meters.tokens_in.value += head.message_tokens
        return head

    async def give_up(self) -> None:
        """Erases what is staged."""
        if self._begun:
            await erase_staged(self._sessions.store, self._head)

    def _entries(
        self, messages: Sequence[Incoming], first: int, known: Mapping[str, bytes]
    ) -> list[Entry]:
        """The messages that are new. Raises MessageConflict."""
        entries: list[Entry] = []
        hashes, sequence = dict(known), self._head.last_sequence
        for index, message in enumerate(messages, first):
            stored = hashes.get(message.id) if message.id else None
            if stored is not None and stored != message.hash:
                raise conflict("message", index, message, stored)
            if stored is None and not message.own:
                sequence += 1
                entries.append(arrived(message, sequence, 1))
                hashes[message.id] = message.hash
        return entries

    async def _store(self, entries: Sequence[Entry], change: Extension) -> None:
        view, state = self._view, self._state
        ids = (entry.id for entry in reversed(entries) if entry.id)
        facts = facts_after(view, change, state.view, next(ids, state.view.last_id))
        if change.shifts:
            facts = replace(facts, reopened=1)
        points = with_checkpoints(state, facts, view, change, entries)
        state = replace(state, view=facts, checkpoints=points)
        head = replace(
            self._head,
            last_sequence=entries[-1].sequence,
            message_count=view.message_count + len(entries),
            message_tokens=change.total,
            created_ms=self._sessions.clock_ms(),
            state=state.encode(),
        )
        rows = [row_of(entry, change.facts[entry.sequence]) for entry in entries]
        moved = changed_facts(change, entries)
        await self._commit(Commit(head, 0, rows, facts=moved, shifts=change.shifts))
        self._begun, self._head, self._state = True, head, state
        apply(view, change)
        # Whatever comes next joins the newest atom, or begins another.
        newest = view.atoms[-1]
        self._view = View(scope=view.scope, base=newest.step, atoms=[newest], total=view.total)
        self._view.fold = view.fold
        self._view.last_sequence, self._view.message_count = head.last_sequence, head.message_count

    async def _commit(self, commit: Commit) -> None:
        try:
            await self._sessions.commit(replace(commit, adopts=self._begun))
        except RevisionConflict as error:
            raise LostRace(
                f"session {self._address.scope.session!r} was made by somebody else while it was"
                " being imported: nothing of the import is stored; look at the session, then import"
                " again",
                retry_after_ms=50,
            ) from error

    async def _reach(self, store: Store, first: int) -> None:
        """Has the view hold the atom that begins with a sequence."""
        begins = await store.messages(self._address.scope, first, first)
        start = begins[0].start if begins else None
        reach = self._view.total - (start or 0)
        if reach > MAX_REACH:
            raise TooLarge(
                f"message: a tool result comes {reach:,} tokens after its call, at most"
                f" {MAX_REACH:,} are taken: import the session as several",
                metadata={"limit": str(MAX_REACH)},
            )
        shaper = self._encoding.shaper
        self._view, _ = await load(store, self._head, self._state, shaper, reach)


async def erase_staged(store: Store, head: SessionHead) -> None:
    """Erases a staged session, in parts: others' writes have their turn."""
    for above in range(head.last_sequence - ERASED_AT_ONCE, 0, -ERASED_AT_ONCE):
        await store.unstage(head.scope, head.incarnation, above)
    await store.unstage(head.scope, head.incarnation)
