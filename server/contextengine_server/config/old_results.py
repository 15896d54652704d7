"""Settings of session pruning: old results of tools are shown in short once a provider's cache has
ended.

Names, defaults and meanings are OpenClaw's `agents.defaults.contextPruning`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from contextengine_server.config.group import Group
from contextengine_server.config.schema import Duration, OrOff, Ratio, Whole
from contextengine_server.context.carried import LEAST_PAUSE_MS
from contextengine_server.engines.pruned import PruningRules
from contextengine_server.engines.pruned.rules import CLEARED


class SoftTrimSettings(Group):
    """What is left of a long result."""

    max_chars: Whole = Field(
        4_000,
        ge=1,
        le=1_000_000,
        description="A result that says more is trimmed, if it says more than what is left of it.",
    )
    head_chars: Whole = Field(
        1_500, ge=0, le=1_000_000, description="Characters that are left of its beginning."
    )
    tail_chars: Whole = Field(
        1_500, ge=0, le=1_000_000, description="Characters that are left of its end."
    )


class HardClearSettings(Group):
    """What stands in place of results once trimming is not enough."""

    enabled: bool = Field(True, description="Clear results.")
    placeholder: str = Field(
        CLEARED,
        min_length=1,
        max_length=1_000,
        description="What stands in place of one; how to read it is said behind that.",
    )


class PrunedToolsSettings(Group):
    """Whose results are pruned, by globs over names of tools: `*` stands for any characters, and
    case is not looked at."""

    allow: tuple[str, ...] = Field((), description="Only these tools'; none: every tool's.")
    deny: tuple[str, ...] = Field((), description="Never these tools', whatever `allow` says.")


class ContextPruningSettings(Group):
    """Session pruning, whichever engine serves: once the provider's cache has ended, what is sent
    is paid for anew, and old results of tools are shown in short from then on. What is stored stays
    as it is."""

    mode: Annotated[Literal["off", "cache-ttl"], OrOff] = Field(
        "off", description="cache-ttl: prune at messages that come when the cache has ended."
    )
    ttl: Duration = Field(
        timedelta(minutes=5),
        ge=timedelta(milliseconds=LEAST_PAUSE_MS),
        description=(
            "How long the cache lasts after the model has spoken, by the messages' own times:"
            " messages without a timestamp end none. 1h where the long retention is paid for."
        ),
    )
    keep_last_assistants: Whole = Field(
        3,
        ge=1,
        le=1_000,
        description=(
            "Nothing is pruned from so many of the newest messages of the model on; while there are"
            " fewer, nothing is."
        ),
    )
    soft_trim_ratio: Ratio = Field(
        0.3,
        ge=0,
        le=1,
        description="Share of what the budget leaves for messages from which on results are cut.",
    )
    hard_clear_ratio: Ratio = Field(
        0.5,
        ge=0,
        le=1,
        description="Share from which on results are cleared, the oldest first, until it is less.",
    )
    min_prunable_tool_chars: Whole = Field(
        50_000,
        ge=0,
        le=100_000_000,
        description=(
            "Nothing is cleared while what may be pruned has fewer characters. A picture counts"
            " 8,000."
        ),
    )
    soft_trim: SoftTrimSettings = SoftTrimSettings()
    hard_clear: HardClearSettings = HardClearSettings()
    tools: PrunedToolsSettings = PrunedToolsSettings()
    picture_turns: Whole = Field(
        0,
        ge=0,
        le=1_000,
        description=(
            "Whatever `mode` says: pictures of users and tools stay for so many of the newest turns"
            " that the model has answered, and a marker stands in their place from then on. 0: they"
            " stay for good. OpenClaw's own is 3."
        ),
    )

    @property
    def rules(self) -> PruningRules:
        """What pruning keeps to."""
        return PruningRules(
            on=self.mode == "cache-ttl",
            ttl_ms=int(self.ttl / timedelta(milliseconds=1)),
            keep_last_assistants=self.keep_last_assistants,
            soft_trim_ratio=self.soft_trim_ratio,
            hard_clear_ratio=self.hard_clear_ratio,
            min_prunable_chars=self.min_prunable_tool_chars,
            max_chars=self.soft_trim.max_chars,
            head_chars=self.soft_trim.head_chars,
            tail_chars=self.soft_trim.tail_chars,
            clears=self.hard_clear.enabled,
            placeholder=self.hard_clear.placeholder,
            allow=self.tools.allow,
            deny=self.tools.deny,
            picture_turns=self.picture_turns,
        )
