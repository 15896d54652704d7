"""Learning from what providers bill how their tokens compare with those of the reference
encoding."""

from __future__ import annotations

MIN_FACTOR = 0.5
MAX_FACTOR = 3.0
"""The bounds of a factor. No tokenizer in use is outside them on prose or code; what is, is a
report that is wrong."""

WEIGHT = 0.2
"""How much one report moves the factor: after ten alike, nine tenths of the way."""

MIN_SAMPLE = 500
"""Reports on fewer reference tokens teach nothing: framing and hidden prompts outweigh the text."""


def calibrate(previous_factor: float, estimated: int, billed: int) -> float:
    """The factor after one report, a moving average with bounds.

    `estimated` is what was sent, system prompt and tools included, in tokens of the reference
    encoding with no factor applied; `billed` is what the provider counted for the same input,
    cached parts included. The factor is the model's tokens per reference token. A report on fewer
    than MIN_SAMPLE tokens, or of nothing billed, leaves it as it is.
    """
    previous = _bounded(previous_factor)
    if estimated < MIN_SAMPLE or billed <= 0:
        return previous
    return previous + WEIGHT * (_bounded(billed / estimated) - previous)


def _bounded(factor: float) -> float:
    return min(max(factor, MIN_FACTOR), MAX_FACTOR)
