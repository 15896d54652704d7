"""Learning from what providers bill how their tokens compare with those of the reference
encoding.

A bill holds more than the messages: a system prompt, tools, what a provider adds. Where all of that
is known, one bill tells the factor. Where it is not, a bill tells nothing, but two of them do: what
stands outside is in both, and falls out of their difference.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

MIN_FACTOR = 0.5
MAX_FACTOR = 3.0
"""The bounds of a factor. No tokenizer in use is outside them on prose or code; what is, is a
report that is wrong."""

WEIGHT = 0.2
"""How much one report moves the factor: after ten alike, nine tenths of the way."""

MIN_SAMPLE = 500
"""Reports on fewer reference tokens teach nothing: framing and hidden prompts outweigh the text."""

MIN_BASELINE = 2_000
"""Two bills that are fewer reference tokens apart teach nothing. On the coding session of the tests
neighbouring bills differ by a few hundred tokens, and their ratios by the factor ten."""

SUDDEN = 1_000
"""A bill that differs from the one before it by so many tokens more than any factor explains is for
a prompt with something else outside: it is the first of its kind."""


class Bill(msgspec.Struct, frozen=True):
    """What was sent and what was billed for it."""

    sent: int
    """Everything that was counted here, in tokens of the reference encoding with no factor."""
    billed: int
    """What the provider counted for the same input, cached parts included, without what is known of
    it in the provider's own tokens."""
    named: int = 0
    """What of the prompt is in `sent` or taken off `billed`; of unlike bills the difference tells
    nothing."""


class Calibration(msgspec.Struct, frozen=True):
    """What bills taught, and what of them the next one is compared with."""

    factor: float = 1.0
    """The model's tokens per reference token."""
    first: Bill | None = None
    """The first bill with what stands outside now."""
    newest: Bill | None = None


def calibrate(previous_factor: float, estimated: int, billed: int) -> float:
    """The factor after one report on a prompt of which all is known, a moving average with bounds.

    `estimated` is what was sent, in tokens of the reference encoding with no factor applied;
    `billed` is what the provider counted for the same input, cached parts included. The factor is
    the model's tokens per reference token. A report on fewer than MIN_SAMPLE tokens, or of nothing
    billed, leaves it as it is.
    """
    previous = _bounded(previous_factor)
    if estimated < MIN_SAMPLE or billed <= 0:
        return previous
    return previous + WEIGHT * (_bounded(billed / estimated) - previous)


def from_difference(known: Calibration, bill: Bill) -> Calibration:
    """What is known after a bill for a prompt with more in it than is known: learned from how it
    differs from the first of its kind."""
    first, newest = known.first, known.newest
    if first is None or newest is None or newest.named != bill.named:
        return replace(known, first=bill, newest=bill)
    step = bill.sent - newest.sent
    least, most = sorted((MIN_FACTOR * step, MAX_FACTOR * step))
    if not least - SUDDEN <= bill.billed - newest.billed <= most + SUDDEN:
        return replace(known, first=bill, newest=bill)
    apart = bill.sent - first.sent
    if abs(apart) < MIN_BASELINE:
        return replace(known, newest=bill)
    ratio = (bill.billed - first.billed) / apart
    if not MIN_FACTOR <= ratio <= MAX_FACTOR:
        return replace(known, first=bill, newest=bill)
    previous = _bounded(known.factor)
    return replace(known, factor=previous + WEIGHT * (ratio - previous), newest=bill)


def _bounded(factor: float) -> float:
    return min(max(factor, MIN_FACTOR), MAX_FACTOR)
