"""What the core knows of a message: its traits, and what it shows.

The core never looks inside encoded bytes. `wire/` reads the traits out of a message once, when it
arrives, and encodes what is shown (`Shaper`).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Protocol

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

OFFLOADED_HEAD, OFFLOADED_TAIL = 1_500, 500
"""The characters of an offloaded result that are still shown, as in Comis
(packages/agent/src/context-engine/constants.ts); no tail where it has no more than both."""

MIN_LONG_CHARS = 4_000
"""No result of a tool is long in fewer characters, whatever the options of an engine say."""


class ReadKey(msgspec.Struct, frozen=True):
    """What a tool call reads."""

    target: bytes
    """Names the file, the command or the address."""
    extent: bytes = b""
    """Names how much of it; empty: all of it."""


class Gone(IntEnum):
    """Why what a result says is left out."""

    SUPERSEDED = 0
    """A later result says the same anew."""
    OLD_IMAGE = 1
    OLD_ERROR = 2
    MASKED = 3
    """It is old."""
    TRIMMED = 4
    """It is old and long: its head and tail are left."""
    CLEARED = 5
    """It is old, and the context is full."""
    OFFLOADED = 6
    """It is long: head, tail and how to read it stand in its place from its arrival on."""
    SILENT = 7
    """It says nothing, which is said."""
    CUT = 8
    """The results of its step are too long together: it is cut to its share."""
    SEEN = 9
    """The model has seen its pictures long ago; what it says stays."""


ON_ARRIVAL = frozenset({Gone.OFFLOADED, Gone.SILENT, Gone.CUT})
"""What follows from the results of a step alone."""


class Replacement(msgspec.Struct, frozen=True):
    """A result of a message, or a picture in it, in place of which a marker is shown."""

    part: int
    why: Gone = Gone.SUPERSEDED
    by: int = 0
    """The sequence of the result that stands for it; 0: none does."""
    tool: str = ""
    """What was called, where the marker says so."""
    head: int = 0
    """Characters that are left of its beginning, where it is trimmed."""
    tail: int = 0
    """Characters that are left of its end."""
    text: str = ""
    """What the marker begins with, where an operator says so."""
    reader: str = ""
    """The tool of the engine that reads it again, which the marker names; empty: it names none."""
    chars: int = 0
    """For one that is cut: its share."""


Replacements = tuple[Replacement, ...]
"""By part."""


MadeBy = tuple[str, str, str]
"""The provider, the model and the API dialect that made a message; empty: not known."""


class Thinking(msgspec.Struct, frozen=True):
    """The reasoning in a message of a model, by part index."""

    plain: tuple[int, ...] = ()
    """Reasoning that is neither signed nor redacted."""
    signed: tuple[int, ...] = ()
    redacted: tuple[int, ...] = ()
    """Reasoning that only the provider can read."""
    damaged: tuple[int, ...] = ()
    """Signed reasoning whose text is not what was signed any more: it was no valid Unicode."""
    marked: tuple[int, ...] = ()
    """Parts that a signature binds to reasoning, and that are none themselves."""
    tagged: tuple[int, ...] = ()
    """Texts with tags of reasoning in them."""


class Stripped(msgspec.Struct, frozen=True):
    """What of a message's reasoning is left out, by part index."""

    reasoning: tuple[int, ...] = ()
    unsigned: tuple[int, ...] = ()
    """Parts that lose a signature and stay."""
    untagged: tuple[int, ...] = ()
    """Texts that lose their tags of reasoning, with what these hold."""


class Addressee(msgspec.Struct, frozen=True):
    """The model that is to read an assembly: that of a request, else of its session. Empty: not
    known."""

    model: str = ""
    provider: str = ""
    name: str = ""
    """The model as in `MadeBy`."""
    reasoning_may_go: bool = False
    """True where the provider accepts a message without its signed reasoning (law 3)."""

    def is_another(self, name: str) -> bool:
        """True where the model of this name is another one; one that is not known is none."""
        return bool(name and self.name) and name != self.name


NOBODY = Addressee()
"""Nothing is known of it."""


class Traits(msgspec.Struct, frozen=True, gc=False):
    """What the laws must know of a message's content."""

    role: int
    part_count: int = 0
    calls: tuple[str, ...] = ()
    """The ids of its tool calls, in order. Ids repeat in real sessions."""
    results: tuple[tuple[int, str], ...] = ()
    """(part index, call id) of its tool results, in order."""
    tools: tuple[str, ...] = ()
    """The names of the tools that it calls, in order."""
    asked: tuple[bytes, ...] = ()
    """Names each of its calls, tool and arguments, in order."""
    reads: tuple[ReadKey | None, ...] = ()
    """What each of its calls reads, in order; empty: none of them reads anything."""
    failed: tuple[int, ...] = ()
    """Those of its results that are errors, by part index."""
    pictured: tuple[int, ...] = ()
    """Those of its results that hold a picture, by part index."""
    images: tuple[int, ...] = ()
    """Those of its parts that are pictures themselves, by part index."""
    chars: tuple[int, ...] = ()
    """The characters of the texts of each of its tool results, in order."""
    texts: tuple[bytes, ...] = ()
    """Names the text of each of its tool results, in order; empty of one that is short, or that is
    more than text."""
    silent: tuple[int, ...] = ()
    """Those of its results that say nothing and are no errors, by part index."""
    sealed: bool = False
    """Holds signed or redacted reasoning: byte-identical or absent (law 3)."""
    only_reasoning: bool = False
    """Holds reasoning and nothing else: stands with what it produced."""
    pinned: bool = False
    excluded: bool = False
    """The harness keeps it and shows it to no model."""
    thinking: Thinking | None = None
    """The reasoning of a model's message; None: it has none."""
    made_by: MadeBy = ("", "", "")
    """Of a model's message."""
    notices: bool = False
    """Beside its results it holds what a harness tells the model, and not a word of a user's."""
    heartbeat: bool = False
    """A heartbeat's prompt, or what acknowledges one and does nothing else."""

    @property
    def only_results(self) -> bool:
        """True where every part answers a call."""
        return bool(self.results) and len(self.results) == self.part_count

    @property
    def carries(self) -> bool:
        """True where it is nobody's message, but the carrier of results (Anthropic's form), or of
        results and a harness's notices (Claude Code's)."""
        return self.only_results or self.notices

    @property
    def says(self) -> bool:
        """True where it is a message of a user, and not merely a carrier."""
        return self.role == Role.USER and not self.carries

    @property
    def instructs(self) -> bool:
        """True for system and developer messages; leading ones are always shown."""
        return self.role in (Role.SYSTEM, Role.DEVELOPER)


class Entry(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A message of a session, as the core holds it. It names nothing that could name it, so the
    collector need not look at it."""

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
    plain: bool = False
    """True where its encoding is known to hold no base64: a large one need not be looked through
    again."""


class Answer(msgspec.Struct, frozen=True):
    """A result of a message."""

    part: int
    chars: int
    """Its characters, base64 as what it is; other than text is taken for so many as well."""
    text: int
    """Those of its texts alone."""
    silent: bool
    """It says nothing and is no error."""
    recovered: bool = False
    """It is a part of a result that was put away, read again."""


class Answers(Protocol):
    """The results of a message, where some are long or say nothing."""

    decided: dict[Any, Any]
    """What was decided of them, by who decided: it follows from them, and is worked out once."""

    @property
    def results(self) -> Sequence[Answer]:
        """In order."""

    def shown(self, parts: Replacements) -> Slot:
        """The message with a marker in place of what these of its results say."""


class Bound(Protocol):
    """Shows no more than so many characters of a message's texts, from their head and tail: of all
    together, or of `each` result and of what is said beside them. None where they have no more."""

    def __call__(self, chars: int, each: bool = False) -> Slot | None: ...


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
    bounded: Bound | None = None
    """Shows it in short. None: its texts are short for every cap, or must be verbatim whatever
    their length."""
    answers: Answers | None = None
    """Its results, where some may be long or say nothing and may be shown otherwise."""


class Shaper(Protocol):
    """Encodes what is shown. Pure: equal arguments, equal slots."""

    def whole(self, entry: Entry) -> Slot:
        """The message as it came."""

    def parts(self, entry: Entry, indexes: tuple[int, ...]) -> Slot:
        """Only these parts of the message, in order, and no native form."""

    def no_result(self, entry: Entry, call: int) -> Slot:
        """The synthetic result of the message's n-th call: an error that says that no result was
        recorded."""

    def head_and_tail(self, entry: Entry, chars: int, each: bool = False) -> Slot | None:
        """No more than so many characters of the message's texts, around markers that say so (see
        `Bound`). None where they have no more."""

    def replaced(self, entry: Entry, parts: Replacements) -> Slot:
        """The message with a marker in place of what these of its results say, or of these
        pictures."""

    def stripped(self, entry: Entry, how: Stripped) -> Slot:
        """The message without this of its reasoning, and no native form."""

    def note(self, entry: Entry, indexes: tuple[int, ...]) -> Slot:
        """Late results as a labelled note of the user's role."""
