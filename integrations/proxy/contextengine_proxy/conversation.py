"""Which conversation of a client's a list of messages is, where its header does not say. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from contextengine import text_of
from contextengine.naming import digest
from contextengine.types import ROLE_ASSISTANT, Message, Part

_SAID_FOR_IT = ("Got it. Thanks for the context!",)
"""What hosts say in the model's name before it has said anything (Qwen Code, gemini-cli once),
behind what they tell of the folder: all conversations in it begin so."""


def opening(messages: Sequence[Message]) -> int | None:
    """How many messages make a conversation known: those up to the model's first words or call,
    before which many conversations are alike. What only a provider can read, such as the summary
    that a list begins with after a compaction of the provider's, tells none from another, nor does
    what a host says in its name. None: it has said nothing yet."""
    for at, message in enumerate(messages):
        if message.role != ROLE_ASSISTANT or not any(map(_says, message.parts)):
            continue
        if text_of(message).strip() not in _SAID_FOR_IT:
            return at + 1
    return None


def _says(part: Part) -> bool:
    return part.WhichOneof("kind") not in ("opaque", "reasoning")


def session_of(last_id: str, credentials: Iterable[str]) -> str:
    """The session of a conversation that begins with the message of this id. The same words of
    another user's are another conversation."""
    return f"proxy-{digest(last_id, *credentials)}"
