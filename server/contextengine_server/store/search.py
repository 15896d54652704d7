"""What a search index is: texts of messages and summaries, found by words, by parts of words, or
gone through in order.

It is filled after the acknowledgement, from a stored cursor for each session, and can be made again
from the rows at any time. A store that cannot have one says so (`available`), and everything else
works.

A document is a passage of one message, or of one summary: `place` is the message's sequence, or the
summary's ordinal in the order of creation (created revision, then id), from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from enum import IntEnum
from typing import Protocol

import msgspec

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import SummaryRow

MAX_PLACE = 2**23 - 1
"""The greatest sequence or ordinal that an index holds: 8,388,607. What lies behind is not searched
by words."""

MAX_PARTS = 4096
"""The most passages of one message."""

MAX_LANES = 60
"""The most ways to match in one look-up: each has a bit of an integer."""


class DocumentKind(IntEnum):
    """What a document is a passage of."""

    MESSAGE = 0
    SUMMARY = 1


class Cursor(msgspec.Struct, frozen=True):
    """How far the index has come with a session."""

    sequence: int = 0
    """Messages up to this one are in it."""
    parts: int = 0
    """And so many passages of the next."""
    summaries: int = 0
    """And so many summaries, in the order of creation."""
    revision: int = 0
    """Everything that the session brought up to this revision is in it."""


class Progress(msgspec.Struct, frozen=True):
    """A session's cursor, and what there is to be indexed; one state of both."""

    cursor: Cursor
    incarnation: str
    revision: int
    first_sequence: int
    last_sequence: int
    """Of the session's own messages, retired ones included; both 0: it has none."""
    summaries: int
    """How many summaries it has, retired ones included."""

    @property
    def done(self) -> bool:
        """True where nothing is left to be indexed."""
        return (
            self.cursor.sequence >= self.last_sequence and self.cursor.summaries >= self.summaries
        )


class Document(msgspec.Struct, frozen=True):
    """One passage to be found."""

    kind: DocumentKind
    place: int
    part: int
    text: str


class Advance(msgspec.Struct, frozen=True):
    """One step of a session's cursor, and the documents that it brings."""

    scope: Scope
    incarnation: str
    before: Cursor
    after: Cursor
    documents: Sequence[Document]


class Lane(msgspec.Struct, frozen=True):
    """One way to match a text: by its words in this order, or as a part of anything."""

    text: str
    substring: bool = False
    """True: wherever the characters of `text` stand, in any case. What is found may only resemble
    it."""
    weight: int = 1
    """What it adds to the rank of a document."""


class SearchSpan(msgspec.Struct, frozen=True):
    """Where to look: places of one kind in one session, as of a revision."""

    scope: Scope
    kind: DocumentKind
    first: int
    last: int
    revision: int
    """Only rows that were created by then."""
    retired: bool = False
    """True: also rows that were retired by then."""
    roles: tuple[int, ...] = ()
    """Only messages of these roles; empty: of all."""
    start_ms: int | None = None
    """Only messages that were made from this time on."""
    end_ms: int | None = None
    """Only messages that were made before this time."""
    places: Collection[int] | None = None
    """Only these places; None: all. Summaries are chosen by it."""


class Match(msgspec.Struct, frozen=True, gc=False):
    """A document that was found, with what its message's row says."""

    span: SearchSpan
    place: int
    part: int
    text: str
    lanes: int = 0
    """A bit for every lane that matched, the first lane's the lowest."""
    role: int = 0
    time_ms: int | None = None
    host_id: str = ""


Asking = Generator[Sequence[Lane], list[int], Sequence[Lane]]
"""Which lanes are worth looking into, where that depends on how much they match: yields lanes, is
sent how many documents each of them matches, whatever their rows say, and returns those to look
into. It runs where the database is read, so it only reckons."""


class IndexFilling(Protocol):
    """How the search index comes to what it holds."""

    noted: Callable[[Scope], None]
    """Called on the event loop for each session that brought messages or summaries, or was erased,
    once that is durable. To be set."""

    async def progress(self, scope: Scope) -> Progress | None:
        """How far the index has come with a session; None where there is none of this name, or its
        rows are in the archive: a step that found nothing there could be written once they are
        back, and they would never be found."""

    async def behind(self, limit: int) -> list[Scope]:
        """Sessions of every tenant that have revisions which the index has not seen."""

    async def advance(self, steps: Sequence[Advance]) -> None:
        """Writes documents and moves cursors, all or none. A session that is gone, or whose cursor
        is not where the step begins, is passed over."""

    async def summaries(self, scope: Scope, skip: int) -> list[tuple[int, SummaryRow]]:
        """(ordinal, row) of the session's summaries in the order of creation, behind the first
        `skip`. One that another of its own generation took the place of never comes back, and has
        no text."""


class IndexUpkeep(Protocol):
    """How the search index gets rid of what it held."""

    async def renew(self, scope: Scope) -> None:
        """Gives up what the index holds of a session, and begins with it anew."""

    async def erase(self) -> bool:
        """One short piece of erasing what deleted sessions left; False where nothing is left. A
        deletion is over when this answers False, and goes on after a restart."""

    async def tidy(self) -> bool:
        """One short piece of upkeep, erasure included. True where there is more to do."""


class IndexLookup(Protocol):
    """What the search index finds. A span whose scope is incomplete, or whose session is not
    there, holds nothing."""

    async def look(self, spans: Sequence[SearchSpan], asking: Asking, limit: int) -> list[Match]:
        """What `find` answers for the lanes that come of `asking`, all of it from one state: a
        question that would be two or three look-ups is one. Where nothing is indexed it is not
        asked at all."""

    async def find(
        self, spans: Sequence[SearchSpan], lanes: Sequence[Lane], limit: int
    ) -> list[Match]:
        """At most `limit` places, the heaviest first and of equals the newest; of each place its
        heaviest passage."""

    async def scan(
        self, span: SearchSpan, limit: int, *, below: int | None = None, containing: str = ""
    ) -> tuple[list[Match], int | None]:
        """Passages from the newest place down, those of places below one given, at most about
        `limit` of them; with `containing` only those that may contain it (three characters or
        more). With them the place below which to go on; None at the end."""


class SearchIndex(IndexFilling, IndexUpkeep, IndexLookup, Protocol):
    """Texts of messages and summaries, found by words, by parts of words, or gone through in
    order."""

    available: bool
    """False where the database has no full-text search: nothing is indexed then, and nothing
    found."""
