"""Options of the shipped engines.

Names and ranges of the dag's options are those of the Comis configuration, so that a file carries
over. In a file both the published name (`freshTailTurns`) and the Python name (`fresh_tail_turns`)
are understood.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from contextengine_server.config.schema import Ratio, Whole


class Options(BaseModel):
    """Options of one engine: immutable, closed, published in camel case."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        allow_inf_nan=False,
    )


class DagOptions(Options):
    """Options of the dag engine, by the names, defaults and ranges of the Comis dag."""

    context_threshold: Ratio = Field(
        0.75,
        ge=0.1,
        le=0.95,
        description="The share of the budget for messages above which a compaction is due.",
    )
    fresh_tail_turns: Whole = Field(
        8,
        ge=1,
        le=50,
        description=(
            "The newest steps (an assistant message with its tool round trip) that are always"
            " verbatim."
        ),
    )
    leaf_chunk_tokens: Whole = Field(
        20_000,
        ge=1_000,
        le=100_000,
        description="The most tokens of messages that one leaf summary covers.",
    )
    leaf_target_tokens: Whole = Field(
        1_200, ge=96, le=5_000, description="The target size of a leaf summary."
    )
    condensed_min_fanout: Whole = Field(
        4,
        ge=2,
        le=20,
        description="How many neighbouring summaries of one depth are folded into a deeper one.",
    )
    condensed_target_tokens: Whole = Field(
        2_000, ge=256, le=10_000, description="The target size of a condensed summary."
    )
    max_expand_tokens: Whole = Field(
        4_000,
        ge=500,
        le=50_000,
        description=(
            "The most tokens that ctx_expand brings back at once, and Expand where a request does"
            " not say."
        ),
    )
    defer_compaction: bool = Field(
        True,
        description=(
            "Compact in the background after the turn. False: inline, so that AfterTurn waits"
            " for it."
        ),
    )


class LegacyOptions(Options):
    """Options of the legacy engine's built-in compaction, which runs where the harness does not
    compact itself.

    Defaults are those of the runtime whose compaction this stands for: 20,000 tokens kept, a
    summary of at most 16,000 characters.
    """

    keep_recent_tokens: Whole = Field(
        20_000,
        ge=1_000,
        le=1_000_000,
        description="The newest tokens that stay verbatim; never more than half of the budget.",
    )
    summary_max_tokens: Whole = Field(
        4_000, ge=96, le=16_000, description="The target size of the one summary."
    )
