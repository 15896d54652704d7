"""Options of the dag, by the names and ranges of the Comis configuration, so that a file carries
over (docs/dag.md#options-of-comis)."""

from __future__ import annotations

from pydantic import Field

from contextengine_server.config.schema import Ratio, Whole

from ..options import Options


class DagOptions(Options):
    """Options of the dag engine."""

    context_threshold: Ratio | None = Field(
        None,
        ge=0.1,
        le=0.95,
        description=(
            "The share of the budget for messages above which a compaction is due. Unset: where the"
            " next steps would have no room any more."
        ),
    )
    fresh_tail_turns: Whole = Field(
        8,
        ge=1,
        le=50,
        description=(
            "The newest steps that are always verbatim: an assistant message with its tool round"
            " trip is one, and so is any other message, a user's too."
        ),
    )
    leaf_chunk_tokens: Whole = Field(
        20_000,
        ge=1_000,
        le=100_000,
        description="The most tokens of messages that one leaf summary covers.",
    )
    leaf_target_tokens: Whole | None = Field(
        None,
        ge=96,
        le=5_000,
        description=(
            "The most tokens of a leaf summary. Unset: as many as what it covers is worth and as"
            " the budget has room for."
        ),
    )
    condensed_min_fanout: Whole = Field(
        4,
        ge=2,
        le=20,
        description=(
            "How many neighbouring summaries of one depth are folded into a deeper one. Fewer are"
            " where none are so many and they take more than their room."
        ),
    )
    condensed_target_tokens: Whole | None = Field(
        None,
        ge=256,
        le=10_000,
        description=(
            "The most tokens of a condensed summary. Unset: as many as the budget has room for."
        ),
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
