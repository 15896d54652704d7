"""When the compressor compacts, and which of its options change nothing."""

from __future__ import annotations

from collections.abc import Iterator

from ..registration import Finding, Surroundings
from .hosts import without_effect
from .options import CompressorOptions
from .sizes import tail_budget, threshold_of


def findings(options: CompressorOptions, beside: Surroundings) -> Iterator[Finding]:
    """Every check; one that is well says when the compressor compacts."""
    due, room = threshold_of(beside.available, options), beside.available
    if options.enabled:
        yield Finding(
            "engine.compressor.threshold",
            f"compacts at {due:,} of {room:,} tokens in the default window, down to a tail of"
            f" {tail_budget(room, options):,}",
        )
    else:
        yield Finding(
            "engine.compressor.enabled",
            "nothing is compacted by itself: what has no room is left out",
            "Let hosts call Compact with force, or set it to true.",
        )
    for name in without_effect(options):
        yield Finding(
            f"engine.compressor.{name}",
            "is set, and changes nothing",
            "Leave it out; docs/compressor.md says what does it here.",
        )
