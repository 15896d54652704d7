"""What a projection into Codex is asked for, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec

from ..model import Item, Loss, Part


class Mode(Enum):
    """When the context is sent: with every turn, or once for a native thread and epoch."""

    PER_TURN = "per_turn"
    THREAD_BOOTSTRAP = "thread_bootstrap"


class Payload(Enum):
    """What is shown of tool payloads."""

    PRESERVE = "preserve"
    SHAPE = "shape"
    ELIDE = "elide"


class ThreadEvent(Enum):
    """What happened in the harness since the last projection."""

    NATIVE_COMPACTED = 1
    THREAD_LOST = 2
    OVERFLOW = 3
    MODEL_CHANGED = 4


class Action(Enum):
    """What the harness does next."""

    START = 1
    RESUME = 2
    ROTATE = 3
    INJECT = 4
    NOTHING = 5


class Binding(msgspec.Struct, frozen=True):
    """What the harness keeps with its native thread: how the context stood when it was last
    projected into it."""

    thread_id: str = ""
    engine_id: str = ""
    policy: str = ""
    epoch: str = ""
    """Empty: the thread holds no projection."""
    fingerprint: str = ""
    tools: str = ""
    last_sequence: int = 0
    first_sequence: int = 0
    schema: int = 1
    mode: Mode = Mode.PER_TURN
    developer: str = ""
    """The digest of the developer instructions then."""
    cut: Mapping[str, int] = msgspec.field(default_factory=dict)
    """How far the context was cut then (see truncation.py)."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A context to project. Texts hold no lone surrogates, but for what an item of the caller
    brings: that is refused."""

    items: Sequence[Item]
    prompt: Sequence[Part] = ()
    prompt_sequence: int = 0
    """The prompt's sequence where it is a stored message: the thread has it from now on."""
    addition: str = ""
    """The engine's addition to the system prompt."""
    base: str = ""
    """The harness's own developer instructions."""
    preamble: str = ""
    """What is said of this turn alone: stands before the context (OpenClaw) or behind it, as data
    (jsonl)."""
    renderer: str = "jsonl"
    mode: Mode | None = None
    """None: the renderer's own."""
    payload: Payload | None = None
    epoch: str = ""
    fingerprint: str = ""
    engine_id: str = ""
    engine_version: str = ""
    owns_compaction: bool = False
    budget: int | None = None
    reserve: int | None = None
    max_chars: int | None = None
    """In UTF-16 units; None: from the budget."""
    product: str = "OpenClaw"
    tools: str = ""
    model: str = ""
    binding: Binding | None = None
    events: Sequence[ThreadEvent] = ()
    inject: bool = False
    """Items to inject instead of a framed prompt."""
    pre_prompt_count: int = 0
    redact: Callable[[str], str] = str
    turn_chars: int = 1 << 20

    @property
    def happened(self) -> frozenset[ThreadEvent]:
        """The events, each once."""
        return frozenset(self.events)


class Stats(msgspec.Struct):
    """What was made of the records. Characters are code points."""

    records: int = 0
    inlined: int = 0
    stubbed: int = 0
    omitted: int = 0
    context_chars: int = 0
    prompt_chars: int = 0
    prompt_units: int = 0
    instructions_chars: int = 0
    redactions: int = 0


class Projected(msgspec.Struct, frozen=True):
    """A context for Codex."""

    instructions: str
    prompt: str
    turn_input: list[dict[str, Any]]
    """The `input` of turn/start: the prompt's text, and the pictures of this turn."""
    items: list[dict[str, Any]]
    """What to inject before the turn."""
    context_range: tuple[int, int] | None
    """Where the context stands in `prompt`, in UTF-16 units."""
    action: Action
    reason: str
    binding: Binding
    losses: list[Loss]
    warnings: list[str]
    stats: Stats
    pre_prompt_count: int
