"""When the layered engine compacts, and options of it that hardly go together."""

from __future__ import annotations

from collections.abc import Iterator

from ..registration import Finding, Surroundings
from .options import LayeredOptions
from .sizes import facts_tokens, limit_of, told_tokens


def findings(options: LayeredOptions, beside: Surroundings) -> Iterator[Finding]:
    """Every check; one that is well says when it compacts."""
    limit, room = limit_of(beside.available, options), beside.available
    left = facts_tokens(options) + told_tokens(options)
    if not options.compaction.enabled:
        yield Finding(
            "engine.layered.compaction.enabled",
            "nothing is compacted by itself: what has no room is left out",
            "Let hosts call Compact with force, or set it to true.",
        )
        return
    yield Finding(
        "engine.layered.compaction.reserveRatio",
        f"compacts above {limit:,} of {room:,} tokens in the default window,"
        f" by the strategy {options.compaction.strategy}",
    )
    if left >= limit:
        yield Finding(
            "engine.layered.layers",
            f"summaries and facts may take {left:,} tokens, and a compaction is due above"
            f" {limit:,}",
            "Give the layers less, or the compaction more.",
        )
