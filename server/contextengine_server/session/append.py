"""Storing messages: identity by host id, all or nothing (docs/semantics.md#writing)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import structs
from msgspec.structs import asdict, replace

from contextengine_server.context.atom import Atom
from contextengine_server.context.extension import moved_spans
from contextengine_server.context.fold import (
    EntryFacts,
    Extension,
    NeedsHistory,
    apply,
    extend,
    extending,
)
from contextengine_server.context.message import Entry
from contextengine_server.context.view import View
from contextengine_server.context.work import AT_ONCE
from contextengine_server.errors import TooLarge
from contextengine_server.session.address import Address, leave
from contextengine_server.session.receipt import (
    Disposition,
    Request,
    Stored,
    Written,
    conflict,
    kept,
    over_cap,
    repeated,
)
from contextengine_server.session.rewind.checkpoints import with_checkpoints
from contextengine_server.session.rewind.rewind import Rewind, moved_facts
from contextengine_server.session.session import (
    ENTRY_OVERHEAD,
    SESSION_OVERHEAD,
    KnownMessage,
    Session,
)
from contextengine_server.session.sessions import SessionCache, Sessions, count_messages
from contextengine_server.session.state import SessionState, ViewFacts, encode_state
from contextengine_server.session.usage.rereads import tell_rereads
from contextengine_server.slices import in_slices
from contextengine_server.store.charges import Charge
from contextengine_server.store.debts import Debt
from contextengine_server.store.errors import DuplicateHostIds, DuplicateRequest, RevisionConflict
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import (
    Commit,
    Facts,
    MessageRow,
    Parent,
    SessionHead,
    StoredReply,
)
from contextengine_server.telemetry.events import Events
from contextengine_server.telemetry.meters import Meters
from contextengine_server.wire.message import Incoming

Edit = Callable[[SessionHead, SessionState], tuple[SessionHead, SessionState]]
"""The head and the state to commit, of those that would be committed without it."""


class _Plan(msgspec.Struct, frozen=True):
    """What a batch would do to the session as it is now."""

    stored: list[Stored]
    entries: list[Entry]


class Appender(msgspec.Struct, frozen=True):
    """Stores messages in sessions."""

    sessions: Sessions
    store: Store
    events: Events
    meters: Meters
    cache: SessionCache
    max_messages: int
    full: Mapping[str, tuple[int, int]]
    """Tenants that take more of the disk than they may: the bytes, and how many they may."""

    async def append(
        self,
        session: Session,
        address: Address,
        incoming: Sequence[Incoming],
        *,
        field_name: str = "messages",
        first_index: int = 0,
        places: Sequence[int] | None = None,
        refuse_conflicts: bool,
        request: Request | None = None,
        edit: Edit | None = None,
        over: int | None = None,
        parent: Parent | None = None,
        rewind: Rewind | None = None,
        charge: Charge | None = None,
        debt: Debt | None = None,
    ) -> Written:
        """Stores messages under the session's lock, which the caller holds. Tokens are best counted
        already, outside the lock.

        `first_index`: where in the request's list `incoming` begins; `places`: where each of them
        stands in it. `edit` changes the session's
        head and state in the same commit, which is then made even where no message is new. `over`
        is the stored revision where `session` is ahead of it: a session that is only made with this
        commit, or that is rewound with it. `parent`: what it stands on from this commit on; raises
        ParentGone. `rewind`: what leaves the view in the same commit, and has left `session`
        already. `charge`: what the commit reports of a model call. `debt`: what is owed for
        messages that are new, if any is.
        """
        tries = 0
        places = range(first_index, first_index + len(incoming)) if places is None else places
        while True:
            # Only summaries and notes for abandoned calls are items of ours that a harness could
            # send back.
            if session.live_summaries or session.view.fold.abandoned:
                session.mark_own(incoming)
            # Whoever made the session since they were counted may count in another encoding.
            for message in incoming:
                if message.counted_in != session.encoding.name:
                    await count_messages(session.encoding, incoming)
            try:
                plan = self._plan(session, incoming, field_name, places, refuse_conflicts)
                if not plan.entries and edit is None and rewind is None and not address.bind:
                    known = (
                        await self.store.reply(session.scope, request.id)
                        if request is not None
                        else None
                    )
                    if known is not None and request is not None:
                        return repeated(known, request)
                    return Written(plan.stored, session.revision)
                return await self._commit(
                    session, address, plan, request, edit, over, parent, rewind, charge, debt
                )
            except NeedsHistory:
                await self.sessions.fresh(session, None)
            except DuplicateHostIds as duplicate:
                rows = await self.store.messages_by_host_id(session.scope, duplicate.ids)
                session.note_rows(rows)
            except DuplicateRequest as duplicate_request:
                assert request is not None
                return repeated(duplicate_request.stored, request)
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
        places: Sequence[int],
        refuse_conflicts: bool,
    ) -> _Plan:
        stored: list[Stored] = []
        entries: list[Entry] = []
        fresh: dict[str, KnownMessage] = {}
        sequence = session.head.last_sequence if session.head is not None else 0
        revision = session.head.revision + 1 if session.head is not None else 1
        for index, message in zip(places, incoming, strict=True):
            if message.own:
                stored.append(Stored(index, message.id, 0, Disposition.DUPLICATE, message.hash, 0))
                continue
            known = session.ids.get(message.id) if message.id else None
            if known is None and message.id in fresh:
                known = fresh[message.id]
            if known is not None:
                same = known.hash == message.hash
                if not same and refuse_conflicts:
                    raise conflict(field_name, index, message, known.hash)
                disposition = Disposition.DUPLICATE if same else Disposition.CONFLICT
                sent = b"" if same else message.hash
                kept = known.sequence, disposition, known.hash, known.tokens
                stored.append(Stored(index, message.id, *kept, sent))
                continue
            sequence += 1
            entry = arrived(message, sequence, revision)
            entries.append(entry)
            if message.id:
                fresh[message.id] = KnownMessage(sequence, message.hash, message.tokens)
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
        if entries and session.scope.tenant in self.full:
            raise over_cap(*self.full[session.scope.tenant])
        return _Plan(stored, entries)

    async def _commit(
        self,
        session: Session,
        address: Address,
        plan: _Plan,
        request: Request | None,
        edit: Edit | None,
        over: int | None,
        parent: Parent | None,
        rewind: Rewind | None,
        charge: Charge | None,
        debt: Debt | None,
    ) -> Written:
        entries, view, shaper = plan.entries, session.view, session.encoding.shaper
        change = None
        if len(entries) > AT_ONCE:
            change = await in_slices(extending(view, entries, shaper))
        elif entries:
            change = extend(view, entries, shaper)
        state, before = session.state, session.head
        expected = over if over is not None else before.revision if before is not None else 0
        messages: list[MessageRow] = []
        moved: dict[str, Any] = {}
        facts_moved: list[Facts] = []
        if change is not None:
            last_id = state.view.last_id
            for entry in entries:
                messages.append(row_of(entry, change.facts[entry.sequence]))
                last_id = entry.id or last_id
            facts = facts_after(session.view, change, state.view, last_id)
            if change.shifts:
                facts = structs.replace(facts, reopened=session.revision + 1)
            if change.checkpoints or change.shifts:
                points = with_checkpoints(state, facts, session.view, change, entries)
                state = structs.replace(state, checkpoints=points)
            state = structs.replace(state, view=facts)
            if len(change.facts) > len(entries):
                facts_moved = changed_facts(change, entries)
            moved = {
                "last_sequence": entries[-1].sequence,
                "message_count": session.view.message_count + len(entries),
                "message_tokens": change.total,
            }
        if edit is None:
            moved["state"] = encode_state(state)
        head = self.sessions.next_head(session, address, **moved)
        if edit is not None:
            head, state = edit(head, state)
            head = replace(head, state=encode_state(state))
        written = Written(plan.stored, head.revision, created=not expected)
        shifts: list[tuple[int, int]] = []
        if rewind is not None:
            facts_moved += moved_facts(rewind.facts, facts_moved, change)
            shifts += rewind.shifts
        if change is not None:
            shifts += change.shifts
        if address.left:
            await leave(self.store, address, head.updated_ms)
        await self.sessions.commit(
            Commit(
                head=head,
                expected_revision=expected,
                messages=messages,
                retire_after=None if rewind is None else rewind.after,
                retire_summaries=() if rewind is None else rewind.summaries,
                facts=facts_moved,
                shifts=shifts,
                reply=(
                    StoredReply(request.id, request.digest, kept(written))
                    if request is not None
                    else None
                ),
                bind_key=address.bind,
                parent=parent,
                charge=charge,
                debt=debt if entries else None,
            )
        )
        if change is not None:
            apply(session.view, change)
            if change.shifts:
                session.live_summaries = moved_spans(session.live_summaries, change.shifts)
            size = session.size or SESSION_OVERHEAD
            for entry in entries:
                size += 2 * len(entry.body) + ENTRY_OVERHEAD
                if entry.traits.asked:
                    tell_rereads(session.view, entry, self.events, self.meters)
            self.cache.grown(session, size)
        session.advance(head, state, entries)
        self._announce(session, written)
        return written

    def _announce(self, session: Session, written: Written) -> None:
        scope = session.scope
        if written.created:
            self.events.emit("session:created", *scope, revision=written.revision)
        messages = tokens = 0
        for item in written.stored:
            if item.disposition == Disposition.STORED:
                messages += 1
                tokens += item.tokens
        if messages:
            self.meters.messages.value += messages
            self.meters.tokens_in.value += tokens
            counts = {"messages": messages, "tokens": tokens}
            self.events.emit("session:ingested", *scope, revision=written.revision, counts=counts)


def arrived(message: Incoming, sequence: int, revision: int, live_index: int = -1) -> Entry:
    """A message that arrived. `revision`: the one that stores it, or the next one. `live_index`:
    its place in a list that is not stored."""
    return Entry(
        sequence,
        message.id,
        message.traits,
        message.tokens,
        message.hash,
        message.body,
        revision,
        message.time_ms,
        live_index,
        plain=message.plain,
    )


def facts_after(view: View, change: Extension, known: ViewFacts, last_id: str) -> ViewFacts:
    """The facts of a view once an extension is applied, for the head that is committed with it."""
    atoms = {}
    for atom in (*change.replaced.values(), *change.added):
        atoms[atom.step] = atom
    carried, first, steps = change.fold, known.first_sequence, view.base + len(view.atoms)
    if not steps and change.added:
        first = change.added[0].first
    leading_last = user_first = 0
    if carried.leading:
        leading_last = _first_of(carried.leading - 1, atoms, view, known.leading_last)
    if carried.user_step >= 0:
        user_first = _first_of(carried.user_step, atoms, view, known.user_first)
    return ViewFacts(
        **asdict(carried),
        steps=steps + len(change.added),
        first_sequence=first,
        leading_last=leading_last,
        user_first=user_first,
        rewind_mark=known.rewind_mark,
        reset_mark=known.reset_mark,
        reopened=known.reopened,
        last_id=last_id,
    )


def _first_of(step: int, changed: Mapping[int, Atom], view: View, before: int) -> int:
    """The first sequence of a step; `before`: what it was, where the step is not in memory."""
    if step in changed:
        return changed[step].first
    return view.atom(step).first if view.holds(step) else before


def row_of(entry: Entry, facts: EntryFacts) -> MessageRow:
    """A new message with its facts, to be stored."""
    return MessageRow(
        sequence=entry.sequence,
        role=entry.traits.role,
        tokens=entry.tokens,
        content_hash=entry.hash,
        body=entry.body,
        created_revision=entry.created,
        host_id=entry.id,
        time_ms=entry.time_ms,
        pinned=entry.traits.pinned,
        step=facts.step,
        start=facts.start,
        late_of=facts.late_of,
    )


def changed_facts(change: Extension, new: Iterable[Entry]) -> list[Facts]:
    """Facts of older rows that an extension changed."""
    older = change.facts.keys() - set(map(attrgetter("sequence"), new))
    return [Facts(*structs.astuple(change.facts[sequence])) for sequence in sorted(older)]
