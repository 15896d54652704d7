"""The settings of what model calls use: what they cost, what may be spent, how long answers are."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from contextengine_server.config.group import Group
from contextengine_server.config.schema import Ratio, Whole
from contextengine_server.usage.caps import Caps
from contextengine_server.usage.deferral import DeferralRules
from contextengine_server.usage.retention import RetentionRules
from contextengine_server.usage.rules import UsageRules


class GuardSettings(Group):
    """The guard over the tokens of an agent: an Assemble for a call that would pass a cap is
    refused. What counts is what hosts report."""

    engines: tuple[str, ...] = Field(
        ("pipeline",),
        description="The engines whose sessions it watches over; `*` means every one.",
    )
    per_execution: Whole = Field(
        2_000_000, ge=1, description="Tokens of one turn, from a user message to the next."
    )
    per_hour: Whole = Field(10_000_000, ge=1, description="Tokens of a rolling hour.")
    per_day: Whole = Field(100_000_000, ge=1, description="Tokens of a rolling day.")


class OutputEscalationSettings(Group):
    """A longer answer once a turn: after a compaction, and after the model stopped for length."""

    enabled: bool = Field(True, description="Suggest it (suggested_max_output_tokens).")
    max_tokens: Whole = Field(
        32_768, ge=4_096, le=128_000, description="Its tokens; never more than the model's most."
    )


class CacheRetentionSettings(Group):
    """How long the provider is asked to keep a session's prefix, where a request does not say."""

    adaptive: bool = Field(
        True,
        description="Short for a new session, long for one that has proved that it goes on.",
    )
    fixed: Literal["none", "short", "long"] = Field(
        "long", description="What is suggested where it is not adaptive."
    )


class ToolDeferralSettings(Group):
    """Where the definitions of tools take too much of the window, those of MCP servers stand behind
    one tool that finds them. The host runs that tool by CallTool."""

    engines: tuple[str, ...] = Field(
        ("pipeline",), description="The engines that defer; `*` means every one."
    )
    window_share: Ratio = Field(
        0.10, ge=0, lt=1, description="Of the window; definitions that take more are deferred."
    )
    recent_messages: Whole = Field(
        20,
        ge=1,
        le=1_000,
        description="A tool that was called in at least so many of the newest messages stays.",
    )
    demote_after: Whole = Field(
        20,
        ge=0,
        le=100_000,
        description=(
            "A tool that was found more turns ago, and not called lately, is deferred again; 0:"
            " never."
        ),
    )
    never: tuple[str, ...] = Field((), description="Tools that always stay.")
    always: tuple[str, ...] = Field(
        (), description="Tools that are always deferred, until they are found."
    )
    results: Whole = Field(10, ge=1, le=100, description="The most tools that one search finds.")
    least_score: Ratio = Field(
        0.8,
        ge=0,
        le=1,
        description="A hit of a search in words is at least this share of the best one; 0: any.",
    )


class UsageSettings(Group):
    """What is made of the usage that hosts report."""

    rates: str = Field(
        "",
        description=(
            "A YAML file of what models cost, in the place of the catalogue that is shipped"
            " (usage/rates.yaml), which is its form."
        ),
    )
    guard: GuardSettings = GuardSettings()
    output_escalation: OutputEscalationSettings = OutputEscalationSettings()
    cache_retention: CacheRetentionSettings = CacheRetentionSettings()
    tool_deferral: ToolDeferralSettings = ToolDeferralSettings()

    @field_validator("rates")
    @classmethod
    def _is_a_catalogue(cls, path: str) -> str:
        # Whoever only reads the settings waits for no parser.
        from contextengine_server.usage.rates import UnusableRates, rates_file

        try:
            rates_file(path)
        except UnusableRates as error:
            raise ValueError(str(error)) from error
        return path

    @property
    def rules(self) -> UsageRules:
        """What is done about usage."""
        guard, escalation = self.guard, self.output_escalation
        return UsageRules(
            rates=self.rates,
            caps=Caps(guard.per_execution, guard.per_hour, guard.per_day),
            guarded=guard.engines,
            deferral=DeferralRules(**self.tool_deferral.model_dump()),
            retention=RetentionRules(**self.cache_retention.model_dump()),
            escalated_output=escalation.max_tokens if escalation.enabled else 0,
        )
