"""A session in memory: its head, its view and what was joined for it. The store can rebuild all of
it."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any

import msgspec

from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.message import NOBODY, Addressee, Entry, Form, Slot
from contextengine_server.context.prefix import PrefixCache
from contextengine_server.context.scope import Scope
from contextengine_server.context.summary_text import OPENING, is_sealed
from contextengine_server.context.view import Summary, View
from contextengine_server.context.work import Work
from contextengine_server.slices import let_go
from contextengine_server.store.rows import MessageRow, SessionHead
from contextengine_server.tokens import profile
from contextengine_server.wire.message import Incoming
from contextengine_server.wire.slots import note_item_id, summary_item_id
from contextengine_server.wire.thoughts import model_name

from .address import not_found
from .encoding import Encoding
from .state import SessionState

SESSION_OVERHEAD = 4_096
"""Bytes of a session in memory besides its messages, about: 1,900 that Python's allocator sees, and
what gRPC, the head in the cache of heads and fragmentation add."""
ENTRY_OVERHEAD = 1_400
"""Bytes of a message in memory besides its encoded forms, about: 1,370 that Python's allocator
sees, 160 more in each list that is joined, and less where messages are late results, of which many
stand in one step (tests/integration/load/test_sizes.py)."""

REASONING_OPTIONAL = frozenset({"anthropic", "openai", "google"})
"""Providers that accept an assistant message without its reasoning, outside the open tool loop."""
RETRY_GROWTH = 16
"""A compaction that found nothing to do is not queued again until the session has grown by its
budget divided by this."""


@dataclass(slots=True)
class PendingCompaction:
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
        grown = total - self.total > self.available // RETRY_GROWTH
        return generation == self.generation and available >= self.available and not grown


def reader_of(model: str, provider: str) -> Addressee:
    """A model as the reader of what is shown."""
    provider = provider or profile(model).provider
    return Addressee(model, provider, model_name(model), provider in REASONING_OPTIONAL)


class KnownMessage(msgspec.Struct, frozen=True, gc=False):
    """A stored message by its host id. The collector need not look at it: there are many."""

    sequence: int
    hash: bytes
    tokens: int


class Survey(msgspec.Struct, frozen=True):
    """What must be known of everything that a view holds."""

    ids: dict[str, KnownMessage] = {}
    """By host id."""
    size: int = 0
    """How many bytes the session takes with it, about."""
    damaged: Sequence[int] = ()
    """The sequences of messages that are not what their hashes name, of the window."""


def survey(view: View) -> Work[Survey]:
    """Looks at everything that a view holds."""
    ids: dict[str, KnownMessage] = {}
    size, damaged = SESSION_OVERHEAD, set[int]()
    for summary in view.summaries:
        size += 2 * len(summary.slot.frame)
    for atom in chain(view.anchors.values(), view.atoms):
        for entry in (*atom.entries, *(dropped for dropped, _ in atom.dropped)):
            size += ENTRY_OVERHEAD + 2 * len(entry.body)
            if entry.id:
                ids[entry.id] = KnownMessage(entry.sequence, entry.hash, entry.tokens)
            if entry.damaged and atom.step >= view.base:
                damaged.add(entry.sequence)
        yield
    return Survey(ids, size, sorted(damaged))


def contents(view: View) -> tuple[list[Any] | dict[Any, Any], ...]:
    """All that a view holds much of, for whoever lets go of it."""
    parts = view, view.observations, view.replies
    held = [getattr(part, field.name) for part in parts for field in fields(part)]
    return tuple(each for each in held if isinstance(each, (list, dict)))


class Session:
    """One session in memory. Whoever writes holds `lock`; whoever uses it counts in `users`."""

    __slots__ = (
        "assembled_for",
        "compaction",
        "damaged",
        "encoding",
        "head",
        "ids",
        "live_summaries",
        "lock",
        "objective",
        "pending",
        "prefixes",
        "reach",
        "readings",
        "reminders",
        "scope",
        "size",
        "state",
        "users",
        "view",
    )

    def __init__(self, scope: Scope, encoding: Encoding) -> None:
        self.scope = scope
        self.encoding = encoding
        """What its messages are counted in."""
        self.head: SessionHead | None = None
        """None: there is no such session yet."""
        self.state = SessionState(encoding=encoding.name)
        self.view = View(scope=scope)
        self.reach: int | None = 0
        """How many uncovered tokens the window was loaded for; None: all."""
        self.live_summaries: list[Summary] = []
        """Every live summary, of all depths."""
        self.ids: dict[str, KnownMessage] = {}
        """The messages in the window by host id."""
        self.damaged: Sequence[int] = ()
        """The sequences of messages that came damaged, some of them perhaps gone from the view."""
        self.prefixes = PrefixCache(let_go)
        self.pending: PendingCompaction | None = None
        """The newest compaction that was queued from here."""
        self.readings: dict[tuple[int, int], str] = {}
        """What results say that come back behind the summaries, by sequence and part."""
        self.objective: str | None = None
        """What it is to do, as it was said when it was spawned; None: not read yet."""
        self.reminders: tuple[Hashable, Any] | None = None
        """What comes back behind the summaries as items, and what decided them."""
        self.assembled_for = ReferenceTokens(0)
        """What the newest Assemble had for messages; 0: none was made since it is in memory."""
        self.lock = asyncio.Lock()
        self.compaction = asyncio.Lock()
        self.users = 0
        self.size = 0

    def require(self) -> SessionHead:
        """The session's head. Raises SessionNotFound."""
        if self.head is None:
            raise not_found(self.scope)
        return self.head

    def is_at(self, head: SessionHead | None) -> bool:
        """True where memory is at this head."""
        known = self.head
        if head is None or known is None:
            return head is known
        return head.same_as(known)

    def note_rows(self, rows: Iterable[MessageRow]) -> None:
        """Remembers the host ids of stored messages before the window."""
        self.ids.update(
            {r.host_id: KnownMessage(r.sequence, r.content_hash, r.tokens) for r in rows}
        )

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
        encoding: Encoding,
        survey: Survey,
    ) -> None:
        """Takes over what was read; `survey`: of the view."""
        self.let_go()
        self.live_summaries, self.encoding = summaries, encoding
        self.head, self.state, self.view, self.reach = head, state, view, reach
        view.reader = reader_of(head.model, head.provider) if head is not None else NOBODY
        self.pending = None
        self.readings, self.reminders, self.objective = {}, None, None
        view.channel = state.channel
        self.ids, self.damaged = survey.ids, survey.damaged

    def let_go(self) -> None:
        """Has the loop free what the session holds some at a time. It is not used after this."""
        let_go(*contents(self.view), self.ids)
        self.prefixes.clear()

    def own_items(self) -> dict[str | bytes, Slot]:
        """Our items in this session that stand for messages (summaries, late results as notes), by
        id and by content."""
        own: dict[str | bytes, Slot] = {}
        for summary in self.live_summaries:
            own[summary_item_id(summary.id)] = own[summary.slot.hash] = summary.slot
        for atom in chain(self.view.anchors.values(), self.view.atoms):
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
        for message in incoming:
            # Whatever says so of itself, and does: earlier ones come back as well.
            message.own = message.own or (len(message.texts) == 1 and is_sealed(message.texts[0]))
        for firsts in self.view.abandoned.values():
            for first in firsts:
                atom = self.view.find(first)
                own.update(
                    slot.hash for slot in (atom.slots if atom is not None else ()) if slot.synthetic
                )
        if own:
            for message in incoming:
                message.own = message.own or message.hash in own

    def advance(
        self, head: SessionHead, state: SessionState, entries: Sequence[Entry] = ()
    ) -> None:
        """Memory follows a commit, which brought these messages into the window."""
        known, self.head, self.state = self.head, head, state
        if known is None or (known.model, known.provider) != (head.model, head.provider):
            self.view.reader = reader_of(head.model, head.provider)
        for entry in entries:
            if entry.id:
                self.ids[entry.id] = KnownMessage(entry.sequence, entry.hash, entry.tokens)
        self.view.revision, self.view.incarnation = head.revision, head.incarnation
        self.view.commit_id = head.commit_id
        self.view.channel = state.channel

    def holds(self, reach: int | None) -> bool:
        """True where the window is long enough."""
        if self.view.base == 0 or self.reach is None:
            return True
        return reach is not None and reach <= self.reach
