"""Storing messages: identity by host id, all or nothing (docs/semantics.md#writing)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from typing import Any

import msgspec
import orjson
from msgspec import structs
from msgspec.structs import replace

from contextengine_server.context.fold import Extension, NeedsHistory, apply, extend
from contextengine_server.context.message import Entry
from contextengine_server.errors import FieldViolation, MessageConflict, RequestIdReused, TooLarge
from contextengine_server.session.address import Address
from contextengine_server.session.cache import SessionCache
from contextengine_server.session.rows import changed_facts, row_of
from contextengine_server.session.session import ENTRY_OVERHEAD, Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import SessionState, facts_after
from contextengine_server.store.errors import DuplicateHostIds, DuplicateRequest, RevisionConflict
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Commit, Parent, SessionHead, StoredReply
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.meters import Meters
from contextengine_server.wire.entries import arrived
from contextengine_server.wire.message import Incoming


class Disposition(IntEnum):
    """What became of a message, by the wire's numbers."""

    STORED = 1
    DUPLICATE = 2
    CONFLICT = 3


class Stored(msgspec.Struct, frozen=True):
    """What became of one message."""

    index: int
    id: str
    sequence: int
    disposition: Disposition
    hash: bytes
    tokens: int
    conflicting: bytes = b""


@dataclass(slots=True)
class Written:
    """What became of a write."""

    stored: list[Stored]
    revision: int
    repeated: bool = False
    """True where the request id was known: this is what was answered before."""
    created: bool = False


class Request(msgspec.Struct, frozen=True):
    """A request that is answered once, by its id."""

    id: str
    digest: bytes
    field: str = "request_id"
    """Where in the request the id stands, for errors."""


def request_of(
    request_id: str,
    rpc: str,
    messages: Sequence[Incoming],
    salt: bytes = b"",
    field: str = "request_id",
) -> Request | None:
    """The request's identity: its id, and a digest of what it asks."""
    if not request_id:
        return None
    whole = blake2b(rpc.encode() + b"\x1f" + salt, digest_size=16)
    for message in messages:
        whole.update(message.hash)
        whole.update(message.id.encode())
    return Request(f"{rpc}:{request_id}", whole.digest(), field)


Edit = Callable[[SessionHead, SessionState], tuple[SessionHead, SessionState]]
"""The head and the state to commit, of those that would be committed without it."""


class _Plan(msgspec.Struct, frozen=True):
    """What a batch would do to the session as it is now."""

    stored: list[Stored]
    entries: list[Entry]
    change: Extension | None


class Appender(msgspec.Struct, frozen=True):
    """Stores messages in sessions."""

    sessions: Sessions
    store: Store
    events: Events
    meters: Meters
    cache: SessionCache
    max_messages: int

    async def append(
        self,
        session: Session,
        address: Address,
        incoming: Sequence[Incoming],
        *,
        field_name: str = "messages",
        first_index: int = 0,
        refuse_conflicts: bool,
        request: Request | None = None,
        edit: Edit | None = None,
        over: int | None = None,
        parent: Parent | None = None,
    ) -> Written:
        """Stores messages under the session's lock, which the caller holds. Tokens are best counted
        already, outside the lock.

        `first_index`: where in the request's list `incoming` begins. `edit` changes the session's
        head and state in the same commit, which is then made even where no message is new. `over`
        is the stored revision where `session` is ahead of it: a session that is only made with this
        commit. `parent`: what it stands on from this commit on; raises ParentGone.
        """
        tries = 0
        while True:
            session.mark_own(incoming)
            # Whoever made the session since they were counted may count in another encoding.
            await session.encoding.messages(incoming)
            try:
                plan = self._plan(session, incoming, field_name, first_index, refuse_conflicts)
                if not plan.entries and edit is None and not address.bind:
                    known = (
                        await self.store.reply(session.scope, request.id)
                        if request is not None
                        else None
                    )
                    if known is not None and request is not None:
                        return _repeat(known, request)
                    return Written(plan.stored, session.revision)
                return await self._commit(session, address, plan, request, edit, over, parent)
            except NeedsHistory as need:
                await self.sessions.fresh(session, None, since=need.sequence)
            except DuplicateHostIds as duplicate:
                rows = await self.store.messages_by_host_id(session.scope, duplicate.ids)
                session.note_rows(rows)
            except DuplicateRequest as duplicate_request:
                assert request is not None
                return _repeat(duplicate_request.stored, request)
            except RevisionConflict:
                if over is not None:
                    raise
                tries += 1
                await self.sessions.lost_race(session, tries)

    def _plan(
        self,
        session: Session,
        incoming: Sequence[Incoming],
        field_name: str,
        first_index: int,
        refuse_conflicts: bool,
    ) -> _Plan:
        stored: list[Stored] = []
        entries: list[Entry] = []
        fresh: dict[str, Entry] = {}
        sequence = session.head.last_sequence if session.head is not None else 0
        revision = session.revision + 1
        for index, message in enumerate(incoming, first_index):
            if message.own:
                stored.append(Stored(index, message.id, 0, Disposition.DUPLICATE, message.hash, 0))
                continue
            known = session.ids.get(message.id) if message.id else None
            if known is None and message.id in fresh:
                before = fresh[message.id]
                known = (before.sequence, before.hash, before.tokens)
            if known is not None:
                same = known[1] == message.hash
                if not same and refuse_conflicts:
                    raise _conflict(field_name, index, message, known[1])
                disposition = Disposition.DUPLICATE if same else Disposition.CONFLICT
                stored.append(
                    Stored(
                        index,
                        message.id,
                        known[0],
                        disposition,
                        known[1],
                        known[2],
                        b"" if same else message.hash,
                    )
                )
                continue
            sequence += 1
            entry = arrived(message, sequence, revision)
            entries.append(entry)
            if message.id:
                fresh[message.id] = entry
            stored.append(
                Stored(
                    index, message.id, sequence, Disposition.STORED, message.hash, message.tokens
                )
            )
        limit = self.max_messages
        # Sequences have no gaps, so they count every row that is or was in the view. What a fork
        # inherits are its parent's rows.
        inherited = session.head.parent_sequence if session.head is not None else 0
        if entries and sequence - inherited > limit:
            raise TooLarge(
                f"the session would have more than {limit} messages, retired ones included: rotate"
                " to a new session (session_key with a new session_id)",
                metadata={"limit": str(limit)},
            )
        return _Plan(
            stored,
            entries,
            extend(session.view, entries, session.encoding.shaper) if entries else None,
        )

    async def _commit(
        self,
        session: Session,
        address: Address,
        plan: _Plan,
        request: Request | None,
        edit: Edit | None,
        over: int | None,
        parent: Parent | None,
    ) -> Written:
        created = not (session.revision if over is None else over)
        change = plan.change
        state = session.state
        moved: dict[str, Any] = {}
        if change is not None:
            facts = facts_after(session.view, change, state.view)
            if change.late:
                facts = structs.replace(facts, reopened=session.revision + 1)
            state = structs.replace(state, view=facts)
            moved = {
                "last_sequence": plan.entries[-1].sequence,
                "message_count": session.view.message_count + len(plan.entries),
                "message_tokens": change.total,
            }
        if edit is None:
            moved["state"] = state.encode()
        head = self.sessions.next_head(session, address, **moved)
        if edit is not None:
            head, state = edit(head, state)
            head = replace(head, state=state.encode())
        written = Written(plan.stored, head.revision, created=created)
        await self.sessions.commit(
            Commit(
                head=head,
                expected_revision=session.revision if over is None else over,
                messages=(
                    [row_of(entry, change) for entry in plan.entries] if change is not None else ()
                ),
                facts=(
                    changed_facts(change, [entry.sequence for entry in plan.entries])
                    if change is not None
                    else ()
                ),
                shifts=change.shifts if change is not None else (),
                reply=(
                    StoredReply(request.id, request.digest, _encode(written))
                    if request is not None
                    else None
                ),
                bind_key=address.bind,
                parent=parent,
            )
        )
        if change is not None:
            apply(session.view, change)
            session.note_ids(plan.entries)
            self.cache.grown(
                session, session.size + sum(2 * len(e.body) + ENTRY_OVERHEAD for e in plan.entries)
            )
        session.advance(head, state)
        self._announce(session, written)
        return written

    def _announce(self, session: Session, written: Written) -> None:
        scope = session.scope
        if written.created:
            self.events.emit("session:created", *scope, revision=written.revision)
        stored = [item for item in written.stored if item.disposition == Disposition.STORED]
        if stored:
            self.meters.messages.value += len(stored)
            self.meters.tokens_in.value += sum(item.tokens for item in stored)
            counts = {"messages": len(stored), "tokens": sum(item.tokens for item in stored)}
            self.events.emit("session:ingested", *scope, revision=written.revision, counts=counts)


def _conflict(
    field_name: str, index: int, message: Incoming, stored_hash: bytes
) -> MessageConflict:
    return MessageConflict(
        f"{field_name}[{index}]: id {message.id!r} is stored with other content: send an edit under"
        " a new id",
        violations=[FieldViolation(f"{field_name}[{index}].id", "is stored with other content")],
        metadata={
            "index": str(index),
            "id": message.id,
            "stored_hash": stored_hash.hex(),
            "sent_hash": message.hash.hex(),
        },
    )


def _encode(written: Written) -> bytes:
    rows = [
        (s.index, s.id, s.sequence, int(s.disposition), s.hash.hex(), s.tokens, s.conflicting.hex())
        for s in written.stored
    ]
    return orjson.dumps({"revision": written.revision, "stored": rows})


def checked(known: StoredReply, request: Request) -> StoredReply:
    """What was answered before. Raises RequestIdReused where another request had the id."""
    if known.digest != request.digest:
        raise RequestIdReused(
            f"{request.field}: was used for another request: every request needs an id of its own",
            violations=[FieldViolation(request.field, "was used for another request")],
        )
    return known


def _repeat(known: StoredReply, request: Request) -> Written:
    raw = orjson.loads(checked(known, request).reply)
    stored = [
        Stored(
            index,
            host_id,
            sequence,
            Disposition(how),
            bytes.fromhex(digest),
            tokens,
            bytes.fromhex(other),
        )
        for index, host_id, sequence, how, digest, tokens, other in raw["stored"]
    ]
    return Written(stored, raw["revision"], repeated=True)
