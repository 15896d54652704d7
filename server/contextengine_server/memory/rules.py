"""What is remembered, and how much of it, from the settings."""

from __future__ import annotations

import msgspec

from contextengine_server.memory.extraction.extract import MAX_CHARS
from contextengine_server.memory.extraction.fact import FactKind

MAX_FACTS = 1_000
"""About 300 KB an agent, and what a search goes through in a few ms."""
MAX_FACT_CHARS = 300
SHOWN = 12
"""About 300 tokens of a prompt."""
SHOWN_KINDS = (FactKind.NAME, FactKind.PREFERENCE, FactKind.DECISION)
"""What an answer should heed without being asked for it. The other kinds are looked up."""


class MemoryRules(msgspec.Struct, frozen=True):
    """What is remembered, and how much of it."""

    kinds: frozenset[str] = frozenset(FactKind)
    max_facts: int = MAX_FACTS
    """Of one agent; those that hold no more go first, then the oldest."""
    max_fact_chars: int = MAX_FACT_CHARS
    """Longer ones are not kept; the sentence beside one is cut to it."""
    max_message_chars: int = MAX_CHARS
    """Of each message so many are read."""
    shown: int = SHOWN
    """How many facts stand in the addition to the system prompt."""
