"""How much users said, from what the core knows of messages: what a summary of them needs beside
its notes, so that an engine can size it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from .message import Entry

MAX_USER_TOKENS = 300
"""Of a user's message at most so many tokens are kept word for word in a summary made without a
model; of a longer one, a paste as a rule, the head and the tail."""

LINE_TOKENS = 6
"""What a user's message costs in a summary besides its text: its number, who speaks."""


def user_tokens(entries: Iterable[Entry]) -> int:
    """The tokens that users' words take in a summary of these messages, about, where all are kept:
    an engine that adds them to the room of the notes keeps what users said.

    Beside the messages' own frames, which make it a little more than is needed; pictures and files
    count no more than the bound.
    """
    return sum(
        min(entry.tokens, MAX_USER_TOKENS) + LINE_TOKENS
        for entry in entries
        if entry.traits.says and not entry.traits.pinned
    )
