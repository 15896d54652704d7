"""A warm session: its head, its view and what was joined for it, in memory. A cache: the store can
rebuild all of it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from contextengine_server.context.message import Form, Slot
from contextengine_server.context.prefix import Runs
from contextengine_server.context.scope import Scope
from contextengine_server.context.summary_text import OPENING
from contextengine_server.context.view import Summary, View
from contextengine_server.session.state import SessionState
from contextengine_server.store.rows import SessionHead
from contextengine_server.wire.reading import Incoming
from contextengine_server.wire.shaping import note_item_id, summary_item_id

ENTRY_OVERHEAD = 900
"""Bytes of a message in memory besides its encoded forms, about."""

OWED_AGAIN = 16
"""What a session must have grown by until a compaction that had nothing to do is tried again: this
part of its budget."""


@dataclass(slots=True)
class Owed:
    """A compaction that was queued: it is not queued again until the session has changed enough for
    another outcome. Without this, a session above its threshold that has nothing to compact would
    write at every step."""

    generation: int
    total: int
    available: int
    waiting: bool = True
    """False once a worker was through with it."""

    def stands(self, generation: int, total: int, available: int) -> bool:
        """True where nothing new is to be expected: no compaction since, hardly more history, no
        smaller budget."""
        grown = total - self.total > self.available // OWED_AGAIN
        return generation == self.generation and available >= self.available and not grown


class Session:
    """One session in memory. Whoever writes holds `lock`; whoever uses it counts in `users`."""

    __slots__ = (
        "compaction",
        "head",
        "ids",
        "live_summaries",
        "lock",
        "owed",
        "reach",
        "runs",
        "scope",
        "size",
        "state",
        "users",
        "view",
    )

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.head: SessionHead | None = None
        """None: there is no such session yet."""
        self.state = SessionState()
        self.view = View(scope=scope)
        self.reach: int | None = 0
        """How many uncovered tokens the window was loaded for; None: all."""
        self.live_summaries: list[Summary] = []
        """Every live summary, of all depths."""
        self.ids: dict[str, tuple[int, bytes, int]] = {}
        """Host ids of the messages in the window: (sequence, hash, tokens)."""
        self.runs = Runs()
        self.owed: Owed | None = None
        """The newest compaction that was queued from here."""
        self.lock = asyncio.Lock()
        self.compaction = asyncio.Lock()
        self.users = 0
        self.size = 0

    @property
    def revision(self) -> int:
        """The revision in memory; 0: there is no such session yet."""
        return self.head.revision if self.head is not None else 0

    def place(
        self,
        head: SessionHead | None,
        state: SessionState,
        view: View,
        summaries: list[Summary],
        reach: int | None,
    ) -> None:
        """Takes over what was read."""
        self.live_summaries = summaries
        self.head, self.state, self.view, self.reach = head, state, view, reach
        self.runs.clear()
        self.owed = None
        self.ids = {
            entry.id: (entry.sequence, entry.hash, entry.tokens)
            for atom in (*view.anchors.values(), *view.atoms)
            for entry in (*atom.entries, *(dropped for dropped, _ in atom.dropped))
            if entry.id
        }
        self.measure()

    def own_items(self) -> dict[str | bytes, Slot]:
        """Our items in this session that stand for messages (summaries, late results as notes), by
        id and by content."""
        own: dict[str | bytes, Slot] = {}
        for summary in self.live_summaries:
            own[summary_item_id(summary.id)] = own[summary.slot.hash] = summary.slot
        for atom in (*self.view.anchors.values(), *self.view.atoms):
            if atom.note:
                for slot in atom.slots:
                    if slot.form is Form.NOTE:
                        own[note_item_id(slot.sequence)] = own[slot.hash] = slot
        return own

    def mark_own(self, incoming: Sequence[Incoming], *, listed: bool = False) -> None:
        """Marks items of ours that came back without their ids: they are known by their content.
        `listed`: a whole list came back, in which late results may stand as notes; to look for
        these takes time in proportion to the window."""
        own: set[str | bytes] = set()
        if any(text.startswith(OPENING) for message in incoming for text in message.texts):
            own.update(summary.slot.hash for summary in self.live_summaries)
        if listed:
            own.update(self.own_items())
        for firsts in self.view.abandoned.values():
            for first in firsts:
                atom = self.view.find(first)
                own.update(
                    slot.hash for slot in (atom.slots if atom is not None else ()) if slot.synthetic
                )
        if own:
            for message in incoming:
                message.own = message.own or message.hash in own

    def advance(self, head: SessionHead, state: SessionState) -> None:
        """Memory follows a commit."""
        self.head, self.state = head, state
        self.view.revision, self.view.incarnation = head.revision, head.incarnation

    def measure(self) -> None:
        """Works out how many bytes the session takes, about."""
        frames = sum(
            len(s.frame)
            for atom in (*self.view.anchors.values(), *self.view.atoms)
            for s in atom.slots
        )
        summaries = sum(len(s.slot.frame) * 2 for s in self.view.summaries)
        self.size = (
            4096 + 2 * frames + ENTRY_OVERHEAD * len(self.view.atoms) + summaries + self.runs.size
        )

    def holds(self, reach: int | None) -> bool:
        """True where the window is long enough."""
        if self.view.base == 0 or self.reach is None:
            return True
        return reach is not None and reach <= self.reach


class WarmSessions:
    """The warm sessions, bounded by their bytes; the least recently used leaves first, but none
    that is in use."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.bytes = 0
        self._sessions: OrderedDict[Scope, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def enter(self, scope: Scope) -> Session:
        """The session's place in memory, in use until `leave`."""
        session = self._sessions.get(scope)
        if session is None:
            session = self._sessions[scope] = Session(scope)
        else:
            self._sessions.move_to_end(scope)
        session.users += 1
        return session

    def leave(self, session: Session) -> None:
        """Ends a use."""
        session.users -= 1
        if session.head is None:
            self.drop(
                session.scope
            )  # nothing is kept for sessions that do not exist, however many are asked for
        if self.bytes > self.capacity:
            self.shrink()

    def grown(self, session: Session, size: int) -> None:
        """Notes that a session takes another number of bytes now."""
        self.bytes += size - session.size
        session.size = size

    def shrink(self) -> None:
        """Lets sessions go until the rest fits."""
        for scope, session in list(self._sessions.items()):
            if self.bytes <= self.capacity:
                break
            if not session.users:
                self.drop(scope)

    def drop(self, scope: Scope) -> bool:
        """Lets a session go, unless it is in use; True where something was held."""
        session = self._sessions.get(scope)
        if session is None or session.users:
            return False
        del self._sessions[scope]
        self.bytes -= session.size
        return True

    def held(self, scope: Scope) -> Session | None:
        """The session, where it is warm."""
        return self._sessions.get(scope)

    def all(self) -> list[Session]:
        """Every warm session."""
        return list(self._sessions.values())
