"""What the core knows of a message: its traits, and what it shows.

The core never looks inside encoded bytes. `wire/` reads the traits out of a message once, when it
arrives, and encodes what is shown (`Shaper`).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Protocol

import msgspec


class Role(IntEnum):
    """The roles of the wire, by their numbers. Unknown numbers are treated as a role that means
    nothing here."""

    UNSPECIFIED = 0
    USER = 1
    ASSISTANT = 2
    TOOL = 3
    SYSTEM = 4
    DEVELOPER = 5
    CUSTOM = 6


class Form(IntEnum):
    """How a message is shown, by the wire's numbers."""

    VERBATIM = 0
    HEAD_TAIL = 1
    PLACEHOLDER = 2
    STRIPPED_TAGS = 3
    WITHOUT_REASONING = 4
    SOME_PARTS = 5
    NOTE = 6


HASH_BYTES = 16
"""The length of a hash, of a message's content as of a whole list."""

NO_RESULT = "No result was recorded for this tool call."
"""The text of the result that is made up for a call without one, an error
(docs/semantics.md#calls-and-results)."""

MIN_CAP_CHARS = 12_000
"""No cap on a message's texts is lower, whatever the budget (see `engines.bounds.cap_chars`)."""


class Traits(msgspec.Struct, frozen=True):
    """What the laws must know of a message's content."""

    role: int
    part_count: int = 0
    calls: tuple[str, ...] = ()
    """The ids of its tool calls, in order. Ids repeat in real sessions."""
    results: tuple[tuple[int, str], ...] = ()
    """(part index, call id) of its tool results, in order."""
    sealed: bool = False
    """Holds signed or redacted reasoning: byte-identical or absent (law 3)."""
    only_reasoning: bool = False
    """Holds reasoning and nothing else: stands with what it produced."""
    pinned: bool = False
    excluded: bool = False
    """The harness keeps it and shows it to no model."""

    @property
    def only_results(self) -> bool:
        """True where every part answers a call."""
        return bool(self.results) and len(self.results) == self.part_count

    @property
    def says(self) -> bool:
        """True where it is a message of a user, and not merely the carrier of results (Anthropic's
        form)."""
        return self.role == Role.USER and not self.only_results

    @property
    def instructs(self) -> bool:
        """True for system and developer messages; leading ones are always shown."""
        return self.role in (Role.SYSTEM, Role.DEVELOPER)


class Entry(msgspec.Struct, frozen=True, eq=False):
    """A message of a session, as the core holds it."""

    sequence: int
    """Its position; for a message of a `live` list that is not stored, a position behind the newest
    stored one."""
    id: str
    traits: Traits
    tokens: int
    hash: bytes
    body: bytes
    """The encoded message, opaque here."""
    created: int
    """The revision that stored it; for one that is not stored, the next revision."""
    time_ms: int | None = None
    live_index: int = -1
    """Its index in the call's `live` list where it is not stored."""
    damaged: bool = False
    """True where its row is not what its hash names: it is a gap that says so, and `hash` is what
    the row should be."""


class Slot(msgspec.Struct, frozen=True, eq=False):
    """One item of an assembly, encoded once."""

    sequence: int
    """The message it shows; 0 for a synthetic item or a summary."""
    form: Form
    tokens: int
    hash: bytes
    frame: bytes
    """The encoded item with its field tag: a reply is written by joining frames."""
    call_id: str = ""
    """For a synthetic result: the call it answers."""
    synthetic: bool = False
    bounded: Callable[[int], Slot | None] | None = None
    """Shows no more than so many characters of its texts, from their head and tail; None where they
    have no more. No such function: its texts are short for every cap, or must be verbatim whatever
    their length."""


class Shaper(Protocol):
    """Encodes what is shown. Pure: equal arguments, equal slots."""

    def whole(self, entry: Entry) -> Slot:
        """The message as it came."""

    def parts(self, entry: Entry, indexes: tuple[int, ...]) -> Slot:
        """Only these parts of the message, in order, and no native form."""

    def no_result(self, entry: Entry, call: int) -> Slot:
        """The synthetic result of the message's n-th call: an error that says that no result was
        recorded."""

    def head_and_tail(self, entry: Entry, chars: int) -> Slot | None:
        """No more than so many characters of the message's texts, around a marker that says so.
        None where they have no more."""

    def note(self, entry: Entry, indexes: tuple[int, ...]) -> Slot:
        """Late results as a labelled note of the user's role."""
