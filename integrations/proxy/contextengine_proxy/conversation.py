"""Which conversation of a client's a list of messages is, where its header does not say. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from contextengine import text_of
from contextengine.naming import digest
from contextengine.types import ROLE_ASSISTANT, ROLE_USER, Message, Part

_SAID_FOR_IT = (
    "Got it. Thanks for the context!",  # Qwen Code, gemini-cli once
    # Aider, behind the map of a repository, its files and its pictures
    "Ok.",
    "Ok, I won't try and edit those files without asking first.",
    "Ok, I will use these files as references.",
    "Ok, I will use these images as references.",
    "Ok, I will use that as the true, current contents of the files.",
    "Ok, any changes I propose will be to those files.",
    "Ok, based on your requests I will suggest which files need to be edited and then stop and"
    " wait for your approval.",
)
"""What hosts say in the model's name before it has said anything, behind what they tell of the
folder: all conversations in it begin so."""
_ENDS_EXAMPLES = "I switched to a new code base."
"""What hosts say behind made-up talks that show the model what is wanted (aider)."""
_EXAMPLES = 32
"""Messages within which such talks end."""


def opening(messages: Sequence[Message]) -> int | None:
    """How many messages make a conversation known: those up to the model's first words or call,
    before which many conversations are alike. What only a provider can read, such as the summary
    that a list begins with after a compaction of the provider's, tells none from another, nor does
    what a host says in its name, or has it say in an example. None: it has said nothing yet."""
    known: int | None = None
    for at, message in enumerate(messages):
        if known is not None and at >= _EXAMPLES:
            break
        if message.role == ROLE_USER and text_of(message).startswith(_ENDS_EXAMPLES):
            known = None
        elif known is None and message.role == ROLE_ASSISTANT and any(map(_says, message.parts)):
            known = None if text_of(message).strip() in _SAID_FOR_IT else at + 1
    return known


def _says(part: Part) -> bool:
    return part.WhichOneof("kind") not in ("opaque", "reasoning")


def session_of(last_id: str, credentials: Iterable[str]) -> str:
    """The session of a conversation that begins with the message of this id. The same words of
    another user's are another conversation."""
    return f"proxy-{digest(last_id, *credentials)}"
