"""Whether the dag's options go together, with each other and with what is around them."""

from __future__ import annotations

from collections.abc import Iterator

from ..registration import Finding, Surroundings
from .options import DagOptions

TURN = 2_000
"""Tokens that a turn with one tool call easily adds between two checks of the trigger."""

PROMPT = 8_000
"""Tokens that a summarizer's prompt, its thoughts and differences in counting may take beside the
chunk and the target."""


def findings(options: DagOptions, beside: Surroundings) -> Iterator[Finding]:
    """Every check; one that is well says when the dag compacts."""
    budget = beside.available
    trigger = int(options.context_threshold * budget)
    if budget - trigger < TURN:
        yield Finding(
            "engine.dag.contextThreshold",
            f"between the trigger at {trigger:,} and the limit of {budget:,} tokens there is hardly"
            " room for a turn",
            "Lower it, so that compaction comes before eviction.",
        )
    else:
        yield Finding(
            "engine.dag.contextThreshold",
            f"compacts at {trigger:,} of {budget:,} tokens in the default window",
        )
    yield from _summaries(options, trigger)
    for path, window in beside.windows.items():
        if window < options.leaf_chunk_tokens + options.leaf_target_tokens + PROMPT:
            yield Finding(
                path,
                f"a chunk of {options.leaf_chunk_tokens:,} tokens does not fit {window:,}: where it"
                " is asked first, chunks are smaller; where it stands in, they are shortened",
                "Lower engine.dag.leafChunkTokens, or use a model with a larger window.",
            )


def _summaries(options: DagOptions, trigger: int) -> Iterator[Finding]:
    """Summaries shrink what they are made of."""
    if options.leaf_target_tokens * 2 > options.leaf_chunk_tokens:
        yield Finding(
            "engine.dag.leafTargetTokens",
            f"a summary of {options.leaf_target_tokens:,} tokens hardly shrinks a chunk of"
            f" {options.leaf_chunk_tokens:,}",
            "Set it to at most half of leafChunkTokens.",
        )
    if options.condensed_target_tokens >= options.condensed_min_fanout * options.leaf_target_tokens:
        yield Finding(
            "engine.dag.condensedTargetTokens",
            f"{options.condensed_min_fanout} leaves of {options.leaf_target_tokens:,} tokens do not"
            f" shrink to {options.condensed_target_tokens:,}",
            "Set it below condensedMinFanout times leafTargetTokens.",
        )
    if options.leaf_chunk_tokens > trigger:
        yield Finding(
            "engine.dag.leafChunkTokens",
            f"a chunk of {options.leaf_chunk_tokens:,} tokens is never full before the trigger at"
            f" {trigger:,}",
            "Lower it below the trigger.",
        )
