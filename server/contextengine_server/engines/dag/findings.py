"""Whether the dag's options go together, with each other and with what is around them."""

from __future__ import annotations

from collections.abc import Iterator

from ..registration import Finding, Surroundings
from .options import DagOptions

PROMPT = 8_000
"""Tokens that a summarizer's prompt, its thoughts and differences in counting may take beside the
chunk and the target."""


def findings(options: DagOptions, beside: Surroundings) -> Iterator[Finding]:
    """Every check; one that is well says when the dag compacts."""
    budget = beside.available
    trigger = int((options.context_threshold or 1.0) * budget)
    yield Finding(
        "engine.dag.contextThreshold",
        f"compacts at {trigger:,} of {budget:,} tokens in the default window, earlier where the"
        " next step would have no room",
    )
    yield from _summaries(options, trigger)
    for path, window in beside.windows.items():
        if window < options.leaf_chunk_tokens + (options.leaf_target_tokens or 0) + PROMPT:
            yield Finding(
                path,
                f"a chunk of {options.leaf_chunk_tokens:,} tokens does not fit {window:,}: where it"
                " is asked first, chunks are smaller; where it stands in, they are shortened",
                "Lower engine.dag.leafChunkTokens, or use a model with a larger window.",
            )


def _summaries(options: DagOptions, trigger: int) -> Iterator[Finding]:
    """Summaries shrink what they are made of."""
    leaf, condensed = options.leaf_target_tokens, options.condensed_target_tokens
    if leaf is not None and leaf * 2 > options.leaf_chunk_tokens:
        yield Finding(
            "engine.dag.leafTargetTokens",
            f"a summary of {leaf:,} tokens hardly shrinks a chunk of {options.leaf_chunk_tokens:,}",
            "Set it to at most half of leafChunkTokens.",
        )
    together = options.condensed_min_fanout * leaf if leaf is not None else None
    if condensed is not None and together is not None and condensed >= together:
        yield Finding(
            "engine.dag.condensedTargetTokens",
            f"{options.condensed_min_fanout} leaves of {leaf:,} tokens do not shrink to"
            f" {condensed:,}",
            "Set it below condensedMinFanout times leafTargetTokens.",
        )
    if options.leaf_chunk_tokens > trigger:
        yield Finding(
            "engine.dag.leafChunkTokens",
            f"a chunk of {options.leaf_chunk_tokens:,} tokens is never full before the trigger at"
            f" {trigger:,}",
            "Lower it below the trigger.",
        )
