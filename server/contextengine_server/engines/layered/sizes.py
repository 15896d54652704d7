"""When a compaction is due, and how large what it leaves may be. All tokens are in the reference
encoding."""

from __future__ import annotations

from .options import LayeredOptions

TAIL_TOKENS = 20_000
"""The newest history that `hybrid` and `linear` leave as it is, as in PyClaw 0.3.0
(tail_token_budget)."""
TAIL_SHARE = 0.25
"""It takes no more than this share of what is shown without a compaction."""

LEAST_TOLD = 300
"""Summaries may take so many whatever the layers may: what says more than its facts is told of, and
what is kept and has no room."""


def limit_of(available: int, options: LayeredOptions) -> int:
    """Above how many tokens of messages a compaction is due: max_tokens less the reserve. It comes
    before eviction: where the budget is less than max_tokens, the reserve is of the budget."""
    compaction = options.compaction
    return max(1, round(min(compaction.max_tokens, available) * (1 - compaction.reserve_ratio)))


def tail_tokens(available: int, options: LayeredOptions) -> int:
    """How many of the newest tokens stay as they are, besides the newest step."""
    if options.compaction.strategy == "dag":
        return 0
    return min(TAIL_TOKENS, int(limit_of(available, options) * TAIL_SHARE))


def facts_tokens(options: LayeredOptions) -> int:
    """How many tokens facts may take, in all summaries together."""
    return 0 if options.linear else options.tokens_of("extract_facts")


def told_tokens(options: LayeredOptions) -> int:
    """How many tokens summaries may take besides, together."""
    told = options.tokens_of("summarize")
    if options.linear:
        told += options.tokens_of("extract_facts")
    return max(LEAST_TOLD, told)
