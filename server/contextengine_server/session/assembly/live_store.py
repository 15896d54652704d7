"""Storing what a harness's own list has and the session does not (docs/semantics.md#live-lists).

What follows the last stored message is appended, and so is a result that came late. Another message
within the list is what the harness made of its own transcript: the session goes back to before it,
and the rest of the list is stored anew; so it does to the list's end, where that is said to be the
conversation's. Where a summary covers the place it is appended as a
labelled note: what was summarized is not taken back. A list that has nothing in common with the
session takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.message import Entry
from contextengine_server.context.work import Work
from contextengine_server.session.address import Address
from contextengine_server.session.append import Appender, Edit
from contextengine_server.session.assembly.alignment import ListAlignment
from contextengine_server.session.receipt import Request, Stored
from contextengine_server.session.rewind.rewind import Rewind, rewind_floor, rewound
from contextengine_server.session.session import Session, survey
from contextengine_server.session.sessions import Sessions
from contextengine_server.slices import in_slices
from contextengine_server.store.errors import RevisionConflict
from contextengine_server.telemetry.events import Events
from contextengine_server.wire.message import Incoming, read


class _ToStore(msgspec.Struct, frozen=True):
    """What of a list is to be stored, with where it stands there, and what is taken back first."""

    places: Sequence[int]
    messages: Sequence[Incoming]
    after: int | None = None
    """Rows behind this sequence leave the view; None: nothing does."""


class LiveStore(msgspec.Struct, frozen=True):
    """Stores what lists have and sessions do not."""

    sessions: Sessions
    appender: Appender
    events: Events

    async def store(
        self,
        session: Session,
        address: Address,
        live: Sequence[Incoming],
        found: ListAlignment | None,
        *,
        takes_back: bool = False,
        field_name: str,
        request: Request | None = None,
        edit: Edit | None = None,
    ) -> list[Stored]:
        """Stores under the session's lock, which the caller holds, in one commit. None found: the
        list has nothing in common with the session. `takes_back`: the list ends where the
        conversation does. Raises RevisionConflict where another server
        changed the session meanwhile and the list must be aligned again."""
        chosen = _chosen(session, live, found, takes_back)
        if chosen.after is None:
            written = await self.appender.append(
                session,
                address,
                chosen.messages,
                field_name=field_name,
                places=chosen.places,
                refuse_conflicts=False,
                request=request,
                edit=edit,
            )
            return written.stored
        return await self._instead(
            session, address, chosen, chosen.after, field_name, request, edit
        )

    async def _instead(
        self,
        session: Session,
        address: Address,
        chosen: _ToStore,
        after: int,
        field_name: str,
        request: Request | None,
        edit: Edit | None,
    ) -> list[Stored]:
        """Takes back what stands behind a sequence and stores the list's messages in its place.
        They are folded onto what is left, so that one commit does both."""
        aligned_with = session.head
        await self.sessions.fresh(session, None)
        if session.head is not aligned_with:
            before = aligned_with.revision if aligned_with is not None else 0
            raise RevisionConflict(session.scope, before, session.revision)
        head, left = session.require(), await in_slices(rewound(session, after))
        ahead = await in_slices(_as_rewound(session, left))
        written = await self.appender.append(
            ahead,
            address,
            chosen.messages,
            field_name=field_name,
            places=chosen.places,
            refuse_conflicts=False,
            request=request,
            edit=edit,
            over=head.revision,
            rewind=left,
        )
        self.sessions.cache.grown(ahead, 0)
        await self.sessions.fresh(session, None)
        if not written.repeated:
            self.events.emit(
                "session:rewound",
                *session.scope,
                revision=written.revision,
                counts={"retired": left.gone},
            )
        return written.stored


def _as_rewound(session: Session, left: Rewind) -> Work[Session]:
    """The session as it will be once its later rows are retired."""
    head = session.require()
    ahead = Session(session.scope, session.encoding)
    view = left.view
    view.revision = head.revision
    ahead.place(
        left.head(head),
        left.state(session.state, head.revision + 1),
        view,
        left.live,
        None,
        session.encoding,
        (yield from survey(view)),
    )
    return ahead


def _chosen(
    session: Session, live: Sequence[Incoming], found: ListAlignment | None, takes_back: bool
) -> _ToStore:
    """What is to be stored of a list, and from where on it takes the place of what is stored."""
    floor = rewind_floor(session)
    if found is None:
        places = [index for index, message in enumerate(live) if not message.own]
        return _ToStore(places, [live[index] for index in places], floor)
    covered = max([floor, *(summary.last_sequence for summary in session.view.summaries)])
    turned = next((index for index, behind in found.others.items() if behind >= covered), None)
    carried: dict[int, Incoming] = {}
    for index in found.late:
        carried[index] = found.live[index]
    for index, behind in found.others.items():
        if behind < covered:
            carried[index] = found.note(index)
    if turned is None:
        for index in range(found.start, len(live)):
            if not live[index].own:
                carried[index] = found.live[index]
        after = _end(session, found, covered) if takes_back and live else None
        return _ToStore(list(carried), list(carried.values()), after)
    after = found.others[turned]
    kept = {entry.sequence: entry for entry in session.view.entries() if entry.sequence > after}
    carried = {index: message for index, message in carried.items() if index < turned}
    for index in range(turned, len(live)):
        sequence = found.matched.get(index)
        if sequence in kept:
            carried[index] = _again(kept[sequence], session.encoding.name)
        elif sequence is None and not live[index].own:
            carried[index] = found.live[index]
    return _ToStore(list(carried), list(carried.values()), after)


def _end(session: Session, found: ListAlignment, covered: int) -> int | None:
    """The stored message that the list ends with, where the view goes on behind it. One that is
    stored and not shown, as a result without a call, may be in a list or not."""
    hidden = {entry.sequence for atom in session.view.atoms for entry, _ in atom.dropped}
    shown = {entry.sequence for entry in session.view.entries()} - hidden
    last = max([covered, *shown.intersection(found.matched.values())])
    return last if any(sequence > last for sequence in shown) else None


def _again(entry: Entry, encoding: str) -> Incoming:
    """A stored message, to be stored once more: as it was stored, not as the list has it."""
    message = read(pb.Message.FromString(entry.body), "live")
    message.tokens, message.counted_in = entry.tokens, encoding
    return message
