"""What a projection is asked for, whatever its target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

import msgspec

from .model import Item, Part
from .thread import Binding, Mode, ThreadEvent


class Payload(Enum):
    """What is shown of tool payloads."""

    PRESERVE = "preserve"
    SHAPE = "shape"
    ELIDE = "elide"


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A context to project, what is known of where it comes from, and how it should be shown. Texts
    hold no lone surrogates, but for what an item of the caller brings."""

    items: Sequence[Item]
    prompt: Sequence[Part] = ()
    """This turn's prompt. Empty: it may be among the items."""
    current_id: str = ""
    """The id of the item that is this turn's prompt. Empty: none is named."""
    prompt_sequence: int = 0
    """The prompt's sequence where it is a stored message that was taken out of the items: the
    harness's thread has it from now on."""
    message_count: int = 0
    """How many messages the session or the list has."""
    addition: str = ""
    """The engine's addition to the system prompt."""
    base: str = ""
    """The harness's own developer instructions, or system prompt."""
    preamble: str = ""
    """What is said of this turn alone: stands before the context (OpenClaw) or behind it, as data
    (jsonl)."""
    renderer: str = ""
    """One of the target's. Empty: its first."""
    mode: Mode | None = None
    """None: the renderer's own."""
    payload: Payload | None = None
    """None: the renderer's own."""
    epoch: str = ""
    fingerprint: str = ""
    engine_id: str = ""
    engine_version: str = ""
    owns_compaction: bool = False
    bootstraps: bool = True
    """False where the harness cannot keep a context in its thread: every turn gets it anew."""
    budget: int | None = None
    """In tokens. None: unknown."""
    reserve: int | None = None
    """Tokens of the budget that are left to the rest of the turn. None: the target's own."""
    max_chars: int | None = None
    """In UTF-16 units; None: from the budget."""
    breakpoints: int | None = None
    """The most cache breakpoints. None: as many as the provider takes."""
    keep_long: bool = False
    """True where what stays in the provider's cache is to be kept for its longest time."""
    product: str = "OpenClaw"
    """The product's name in frames."""
    tools: str = ""
    """The fingerprint of the harness's dynamic tools."""
    provider: str = ""
    model: str = ""
    """Who will be called. Reasoning is kept only where both are known to have made it."""
    bound: int | None = None
    """The sequence of the stored message that the binding names by its id; 0: it is none; None: the
    items are all there is."""
    binding: Binding | None = None
    """What the harness kept with its native thread. None: no thread is bound."""
    events: Sequence[ThreadEvent] = ()
    inject: bool = False
    """Items to inject instead of a framed prompt, where the target can do both."""
    redact: Callable[[str], str] = str
    """Takes secrets out of a text."""
    turn_chars: int = 1 << 20
    """The most characters of one turn's text."""

    @property
    def happened(self) -> frozenset[ThreadEvent]:
        """The events, each once."""
        return frozenset(self.events)
