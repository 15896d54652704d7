"""How far apart the ticks are at which masks and evictions move."""

from __future__ import annotations

from .options import PipelineOptions

CHARS_A_TOKEN = 3.5
"""As Comis counts (packages/agent/src/context-engine/constants.ts)."""
RESULTS_COUNT = 2
"""Characters of results count twice there."""


def interval(options: PipelineOptions) -> int:
    """How many tokens of results lie between two ticks."""
    trigger = options.observation_trigger_chars
    chars = trigger - options.observation_deactivation_chars
    if chars <= 0:
        chars = trigger // 3
    return int(chars / CHARS_A_TOKEN / RESULTS_COUNT)
