"""Options of the compressor, by the names, defaults and ranges of Hermes's block `compression`, so
that a file carries over (docs/compressor.md#options-of-hermes)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from contextengine_server.config.schema import Ratio, Whole

from .hosts import HostOptions

Share = Annotated[Ratio, Field(gt=0, le=1)]

RATIOS = 0.10, 0.80
"""`target_ratio` is brought between these."""


class CompressorOptions(HostOptions):
    """Options of the compressor engine."""

    enabled: bool = Field(
        True, description="False: nothing is compacted by itself; Compact with force still is."
    )
    threshold: Ratio = Field(
        0.50,
        gt=0,
        le=1,
        description=(
            "The share of the budget for messages from which on a compaction is due: below 512,000"
            " tokens at least 0.75, and 64,000 tokens unless that is more than 0.85."
        ),
    )
    model_thresholds: dict[str, Share] = Field(
        {},
        description=(
            "The threshold by model: a part of the model's name, or `provider:part`; the longest"
            " that fits holds."
        ),
    )
    threshold_tokens: Whole | None = Field(
        None, ge=1, description="A compaction is due no later than at so many tokens."
    )
    tail_mode: Literal["lean", "legacy"] = Field(
        "lean",
        description=(
            "How much of the newest history stays as it is. `lean`: 2.5 % of the budget, 10,000 to"
            " 25,000 tokens and at most 20 %, of which large results stay whole in the newest six"
            " rounds of tool calls. `legacy`: targetRatio of the threshold."
        ),
    )
    target_ratio: Ratio = Field(
        0.20,
        description="In the mode `legacy` the tail's share of the threshold, 0.10 to 0.80.",
    )
    protect_last_n: Whole = Field(
        20,
        ge=0,
        description=(
            "So many of the newest messages stay as they are, 3 to 8 and while they take no more"
            " than a quarter of the budget."
        ),
    )
    protect_first_n: Whole = Field(
        3,
        ge=0,
        description=(
            "So many messages behind the leading ones stay as they are until the first compaction,"
            " while they take no more than a tenth of the budget."
        ),
    )
    abort_on_summary_failure: bool = Field(
        False,
        description=(
            "True: where models fail, nothing is compacted, whatever they fail with. False: so it"
            " is only where the failure says nothing of the messages (credentials, connection,"
            " overload); else extraction stands in."
        ),
    )
    proactive_prune_tokens: Whole = Field(
        0,
        ge=0,
        description=(
            "From so many tokens on large results of tools behind the newest protectLastN messages"
            " are shown in short before a compaction. 0: with compactions only."
        ),
    )
    proactive_prune_min_result_chars: Whole = Field(
        8_000, ge=200, description="Results of so many characters are large."
    )
    proactive_prune_min_reclaim_tokens: Whole = Field(
        4_096,
        ge=0,
        description="By so many tokens results must have grown until more of them are short.",
    )
    min_tail_user_messages: Whole = Field(
        1, ge=1, description="So many of the newest messages of the user stay as they are."
    )
    tail_assistant_max_chars: Whole = Field(
        0,
        ge=0,
        description=(
            "In the mode `lean` what the assistant said is shown head and tail from a compaction on"
            " where it has more characters, 12,000 at least. 0: by the budget's cap alone."
        ),
    )
