"""What a harness's own list shows (docs/semantics.md#live-lists): the stored view and what follows
it, or the list itself.

Items of ours that came back stand where the harness has them, in the form in which they were sent.
A result that was made up is made up again, where it is still needed.

What is shown comes with a mark that names how the list begins as far as the stored session does
not: it goes into the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from contextengine_server.context.fold import apply, extend, extended, interpose
from contextengine_server.context.layout import everything
from contextengine_server.context.message import Entry, Slot
from contextengine_server.context.plan import segment_slots
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import View
from contextengine_server.session.append import arrived
from contextengine_server.session.assembly.alignment import ListAlignment
from contextengine_server.session.session import Session
from contextengine_server.wire.message import Incoming
from contextengine_server.wire.slots import WireShaper


class Mark(msgspec.Struct, frozen=True):
    """Names how a list begins as far as the stored session does not. Empty where the stored session
    says it all."""

    whole: str = ""
    settled: str = ""
    """The same without the messages behind the last stored one: the next call may have others in
    their place."""


NO_MARK = Mark()
Listed = tuple[View, Mark]
"""What is shown, and its mark."""


def take_known_tokens(session: Session | None, live: Sequence[Incoming]) -> None:
    """Messages with the content of one in memory have its tokens: a list that comes again is not
    counted again."""
    if session is not None:
        known = {entry.hash: entry.tokens for atom in session.view.atoms for entry in atom.entries}
        for message in live:
            tokens = known.get(message.hash)
            if tokens is not None:
                message.tokens, message.counted_in = tokens, session.encoding.name


def followed(session: Session, alignment: ListAlignment, shaper: WireShaper) -> Listed:
    """The stored view and, behind it, what the list has that is not stored: what came late, and
    what is new. Raises NeedsHistory."""
    live, sequence = alignment.live, session.view.last_sequence + 1
    entries = [
        arrived(live[index], sequence + index, session.revision + 1, index)
        for index in (*alignment.late, *range(alignment.start, len(live)))
        if not live[index].own
    ]
    if not entries:
        return session.view, NO_MARK
    # What is not stored is shown in this call alone: the next list may end otherwise, so it cannot
    # share an epoch with this one.
    mark = Mark(_digest(entry.hash for entry in entries))
    return extended(session.view, extend(session.view, entries, shaper)), mark


def interleaved(
    session: Session, alignment: ListAlignment, notes: Mapping[int, Incoming], shaper: WireShaper
) -> Listed:
    """The stored view with what the list has that is not stored, each at its place. `notes`: what
    stands for messages at places that a summary covers. Raises NeedsHistory."""
    behind: dict[int, list[int]] = {}
    reached = 0
    for index in range(alignment.start):
        reached = max(reached, alignment.matched.get(index, 0))
        if index in alignment.others or index in alignment.late:
            behind.setdefault(reached, []).append(index)
    items: list[Laid] = []

    def lay(indexes: Iterable[int]) -> None:
        items.extend((index, notes.get(index, alignment.live[index]), None) for index in indexes)

    lay(behind.get(0, ()))
    for entry in session.view.entries():
        items.append((-1, None, entry.sequence))
        lay(behind.get(entry.sequence, ()))
    lay(range(alignment.start, len(alignment.live)))
    return _laid_out(session.scope, session, items, shaper)


def passed_through(
    session: Session, live: Sequence[Incoming], matched: dict[int, int], shaper: WireShaper
) -> Listed:
    """What an engine that shows everything is given: the stored view where the list shows the same,
    else the list itself. `matched`: the sequences of the list's messages that are stored, by their
    index in the list."""
    whole = session.view
    shown = sorted({entry.sequence for atom in whole.atoms for entry in atom.entries})
    own = sum(message.own for message in live)
    complete = sorted(matched.values()) == shown
    if complete and len(matched) + own == len(live):
        return whole, NO_MARK
    view, mark = listed(session.scope, session, live, matched, shaper)
    last = max(matched, default=-1)
    if complete and all(
        at in matched or message.own or at > last for at, message in enumerate(live)
    ):
        mark = replace(mark, settled="")
    slots = [slot for segment in everything(whole) for slot in segment_slots(segment, whole)]
    same = [slot.hash for slot in slots] == [
        slot.hash for atom in view.atoms for slot in atom.slots
    ]
    return (whole, NO_MARK) if same else (view, mark)


Laid = tuple[int, Incoming | None, int | None]
"""One message of what is shown: its index in the list, what the list has there, and the sequence
that it is stored with; -1 or None: it has none."""


def listed(
    scope: Scope,
    session: Session | None,
    live: Sequence[Incoming],
    matched: dict[int, int],
    shaper: WireShaper,
) -> Listed:
    """The list alone; messages of it that are stored stay what they are, or what covers them stands
    for them."""
    items: list[Laid] = [(index, message, matched.get(index)) for index, message in enumerate(live)]
    return _laid_out(scope, session, items, shaper)


def _laid_out(
    scope: Scope, session: Session | None, items: Sequence[Laid], shaper: WireShaper
) -> Listed:
    view = View(scope=scope, by_sequence=False)
    newest, revision = 0, 1
    held: dict[int, tuple[Entry, Slot | None]] = {}
    own: dict[str | bytes, Slot] = {}
    matched = [at for at, (_, _, sequence) in enumerate(items) if sequence is not None]
    if session is not None:
        view.revision, view.incarnation = session.revision, session.view.incarnation
        view.commit_id = session.view.commit_id
        newest, revision = session.view.last_sequence, session.revision + 1
        own = session.own_items()
        held = _held(session.view) if matched else {}
    shown: list[Entry | Slot] = []
    laid: set[int] = set()
    for index, message, stored in items:
        # Like no other: the list has its own order. What stands for a stored message that is not in
        # the list has the sequence of that one.
        sequence = newest + 1 + index if index >= 0 or stored is None else stored
        entry, slot = held.get(-1 if stored is None else stored, (None, None))
        if entry is not None and entry.sequence in laid:
            entry = None  # a list may have a stored message twice
        if message is not None and message.own:
            slot = own.get(message.id) or own.get(message.hash)
        if slot is not None:
            if slot not in shown:
                apply(view, interpose(view, slot, sequence, shaper))
                shown.append(slot)
        elif entry is not None or (message is not None and not message.own):
            if entry is None:
                assert message is not None
                entry = arrived(message, sequence, revision, index)
            apply(view, extend(view, [entry], shaper))
            shown.append(entry)
            laid.add(entry.sequence)
    settled = list(shown)
    while matched and settled and isinstance(settled[-1], Entry) and settled[-1].live_index >= 0:
        settled.pop()
    stored_ones = sorted(held)
    return view, Mark(_beginning(shown, stored_ones), _beginning(settled, stored_ones))


def _held(view: View) -> dict[int, tuple[Entry, Slot | None]]:
    """The stored messages by sequence, and the summary that stands for each in every assembly."""
    stays = set(view.must_stay())
    held: dict[int, tuple[Entry, Slot | None]] = {}
    for atom in view.atoms:
        covering = None if atom.step in stays else view.covering(atom.step)
        for entry in atom.entries:
            held[entry.sequence] = entry, covering.slot if covering is not None else None
    return held


def _beginning(shown: Iterable[Entry | Slot], stored: Sequence[int]) -> str:
    """Names a list by the runs of stored messages in it, and by what else it holds. A run that
    reaches the newest stored message stays open: what is appended goes on with it."""
    place = {sequence: at for at, sequence in enumerate(stored)}
    parts: list[bytes] = []
    run = -1
    for item in shown:
        at = place.get(item.sequence, -1) if isinstance(item, Entry) and item.live_index < 0 else -1
        if at != run + 1 or run < 0:
            parts += [b"to %d" % run] if run >= 0 else []
            parts.append(item.hash if at < 0 else b"from %d" % at)
        run = at
    if 0 <= run < len(stored) - 1:
        parts.append(b"to %d" % run)
    return _digest(parts)


def _digest(parts: Iterable[bytes]) -> str:
    whole = blake2b(digest_size=16)
    for part in parts:
        whole.update(len(part).to_bytes(4, "big") + part)
    return whole.hexdigest()
