"""What a harness that keeps a native thread of its own says of it, and is told to do with it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import msgspec


class Mode(Enum):
    """When the context is sent: with every turn, or once for a native thread and epoch."""

    PER_TURN = "per_turn"
    THREAD_BOOTSTRAP = "thread_bootstrap"


class ThreadEvent(Enum):
    """What happened in the harness since the last projection; the value is the wire's number."""

    NATIVE_COMPACTED = 1
    THREAD_LOST = 2
    OVERFLOW = 3
    MODEL_CHANGED = 4


class Action(Enum):
    """What the harness does next; the value is the wire's number."""

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
    """How far the context was cut then, as the target's renderer counts it."""
