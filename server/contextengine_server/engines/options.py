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


class SummarizerSpend(Options):
    """What a tenant's summaries may cost: tokens of prompts and answers. Deterministic summaries
    cost none."""

    max_tokens_per_tenant_per_hour: Whole = Field(
        500_000,
        ge=0,
        description="In any hour; beyond it summaries are made without a model. 0: no limit.",
    )
    max_tokens_per_tenant_per_day: Whole = Field(
        5_000_000,
        ge=0,
        description="In any day; beyond it summaries are made without a model. 0: no limit.",
    )


class SummarizerBreaker(Options):
    """When a tenant's failing models are let be for a while."""

    failure_threshold: Whole = Field(
        5,
        ge=1,
        description=(
            "Summaries in a row for which every model failed; then none is asked for a while."
        ),
    )
    reset_timeout_ms: Whole = Field(
        60_000,
        ge=1,
        description="How long none is asked, in milliseconds; then one summary is the trial.",
    )
    half_open_timeout_ms: Whole = Field(
        30_000,
        ge=1,
        description="How long that trial may take, in milliseconds; else it has failed.",
    )


class Compaction(Options):
    """Which models stand in for the first."""

    summarizer_fallback_providers: tuple[str, ...] = Field(
        (),
        description=(
            "The models asked when the first fails, in order, each in the same form as"
            " `compactionModel`. Empty: the others in their order."
        ),
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
    compaction_model: str = Field(
        "",
        description=(
            "The model asked first for a summary, as `endpoint:model`, or the name of one of"
            " `summarizer.endpoints` for its own model; `runtime`, or `runtime:model`, for one that"
            " a harness lends. Empty: as `summarizer.order` says."
        ),
    )
    compaction: Compaction = Compaction()
    summarizer_spend: SummarizerSpend = SummarizerSpend()
    summarizer_breaker: SummarizerBreaker = SummarizerBreaker()


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


def models_named(options: DagOptions) -> list[tuple[str, str]]:
    """The options that name models, each with one that it names: (published path, `endpoint:model`
    or an endpoint)."""
    fallbacks = options.compaction.summarizer_fallback_providers
    named = [("compactionModel", options.compaction_model)] if options.compaction_model else []
    return [*named, *(("compaction.summarizerFallbackProviders", model) for model in fallbacks)]
