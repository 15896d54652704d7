"""What a projection answers, whatever its target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from .model import Loss
from .thread import Action, Binding


class Stats(msgspec.Struct):
    """What was made of the records of a thread's context. Characters are code points."""

    records: int = 0
    inlined: int = 0
    stubbed: int = 0
    omitted: int = 0
    context_chars: int = 0
    prompt_chars: int = 0
    prompt_units: int = 0
    """The prompt's size in UTF-16 units."""
    instructions_chars: int = 0
    redactions: int = 0


class Parts(Protocol):
    """Of what a request is made: the parts of a projection, or of the answer on the wire."""

    @property
    def instructions(self) -> str:
        """Developer instructions, or the system prompt as one text."""

    @property
    def prompt(self) -> str:
        """The turn's text with the context in it."""

    @property
    def messages_json(self) -> bytes:
        """A JSON list of messages, input items or contents."""

    @property
    def system_json(self) -> bytes:
        """The system part as JSON, where the form keeps it apart. Empty: there is none."""

    @property
    def inject_items_json(self) -> Sequence[bytes]:
        """Items to inject into a thread, each one JSON."""

    @property
    def turn_input_json(self) -> bytes:
        """The turn's input as JSON where it is more than the text `prompt`."""


class Projection(msgspec.Struct, frozen=True, kw_only=True):
    """A context in a target's form, and what the harness does with it. Of the texts and JSON
    fields a target fills those that its form has."""

    instructions: str = ""
    prompt: str = ""
    messages_json: bytes = b""
    system_json: bytes = b""
    inject_items_json: Sequence[bytes] = ()
    turn_input_json: bytes = b""
    context_range: tuple[int, int] | None = None
    """Where the context stands in `prompt`, in UTF-16 units. None: it is not in it."""
    action: Action = Action.NOTHING
    reason: str = ""
    """Why this action."""
    binding: Binding | None = None
    """What to keep with the native thread. None: the target has no threads."""
    losses: Sequence[Loss] = ()
    warnings: Sequence[str] = ()
    stats: Stats | None = None
    estimated_tokens: int = 0
    """What the target's tokens are estimated at."""
    message_count: int = 0
    """How many messages of the session or list stood before this turn's prompt."""
