"""Settings of what agents remember."""

from __future__ import annotations

from pydantic import Field, field_validator

from contextengine_server.config.group import Group
from contextengine_server.config.schema import Whole
from contextengine_server.memory.extraction.extract import MAX_CHARS
from contextengine_server.memory.extraction.fact import FactKind
from contextengine_server.memory.rules import MAX_FACT_CHARS, MAX_FACTS, SHOWN, MemoryRules


class MemorySettings(Group):
    """Facts that agents remember beyond one session. They are found by rules, without a model, and
    go with the session that they were found in."""

    enabled: bool = Field(
        True,
        description=(
            "Find facts before a summary, when a session ends and when it is reset, and offer the"
            " tool memory_search. Off: nothing more is found or shown; what was found stays."
        ),
    )
    kinds: tuple[str, ...] = Field(
        tuple(FactKind),
        min_length=1,
        description=f"What is looked for, of {', '.join(FactKind)}.",
    )
    max_facts: Whole = Field(
        MAX_FACTS,
        ge=1,
        le=10_000,
        description="Of one agent; those that hold no more go first, then the oldest.",
    )
    max_fact_chars: Whole = Field(
        MAX_FACT_CHARS,
        ge=32,
        le=400,
        description="Of one fact; a longer one is not kept, and its sentence is cut.",
    )
    max_message_chars: Whole = Field(
        MAX_CHARS, ge=100, le=1_000_000, description="So much of each message is read."
    )
    shown: Whole = Field(
        SHOWN,
        le=100,
        description=(
            "The newest names, preferences and decisions that stand in the addition to the system"
            " prompt where a request names memory_search among its tools. 0: none, the tool alone"
            " is named."
        ),
    )

    @field_validator("kinds")
    @classmethod
    def _are_kinds(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [kind for kind in kinds if kind not in {*FactKind}]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is none: choose of {', '.join(FactKind)}")
        return kinds

    @property
    def rules(self) -> MemoryRules:
        """The same as values."""
        return MemoryRules(
            frozenset(self.kinds),
            self.max_facts,
            self.max_fact_chars,
            self.max_message_chars,
            self.shown,
        )
