"""Whether the pipeline's options go together."""

from __future__ import annotations

from collections.abc import Iterator

from ..registration import Finding, Surroundings
from .compaction import THRESHOLD
from .options import PipelineOptions


def findings(options: PipelineOptions, beside: Surroundings) -> Iterator[Finding]:
    """Every check; one that is well says when the pipeline compacts."""
    yield Finding(
        "engine.pipeline.compactionCooldownTurns",
        f"compacts at {int(THRESHOLD * beside.available):,} of {beside.available:,} tokens in the"
        f" default window, at most every {options.compaction_cooldown_turns} turns while all fits",
    )
    if options.observation_deactivation_chars >= options.observation_trigger_chars:
        yield Finding(
            "engine.pipeline.observationDeactivationChars",
            f"{options.observation_deactivation_chars:,} is not below the trigger at"
            f" {options.observation_trigger_chars:,}: masks move by a third of the trigger",
            "Lower it below observationTriggerChars.",
        )
