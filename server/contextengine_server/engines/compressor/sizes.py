"""When a compaction is due, and what it leaves: the arithmetic of Hermes's
compressor, over what a budget leaves for messages.

Hermes takes a window and subtracts what is reserved for the answer; here the budget's algebra has
done so already. All tokens are in the reference encoding.
"""

from __future__ import annotations

from collections.abc import Mapping

from contextengine_server.context.view import View

from .options import RATIOS, CompressorOptions

LEAST_CONTEXT = 64_000
"""No threshold is lower, where the window has more than that to spare."""
FLOORED = 0.85
"""A threshold that the least context raised is at most this share of the window."""
SMALL, SMALL_SHARE = 512_000, 0.75
"""In smaller windows a compaction is never due below this share."""
LEAN_SHARE, LEAN_LEAST, LEAN_MOST, LEAN_CEILING = 0.025, 10_000, 25_000, 0.2
"""The tail of the mode `lean`: this share of the window, no less and no more than so many tokens,
never above the last share."""
SOFT = 1.5
"""A tail of whole steps may exceed its budget by half."""
SUMMARY_SHARE, SUMMARY_LEAST = 0.2, 2_000
"""A summary takes this share of what it is made of, and no less than so many tokens."""
SUMMARY_CEILING, SUMMARY_MOST = 0.05, 10_000
"""Of the window it takes no more than this share, and no more than so many tokens."""


def without_reply(window: int, reply: object) -> int:
    """What a window leaves beside the answer's reserve: all of it where that is not known, or would
    leave nothing."""
    if isinstance(reply, bool) or not isinstance(reply, int) or reply <= 0:
        return window
    return window - reply if reply < window else window


def share_for(model: str, provider: str, shares: Mapping[str, float], default: float) -> float:
    """The threshold of a model: that of the longest key which is part of its name, or
    `provider:part`; else the default."""
    found = [key for key in shares if _names(key.lower(), model.lower(), provider.lower())]
    return shares[max(found, key=len)] if found else default


def _names(key: str, model: str, provider: str) -> bool:
    owner, colon, part = key.partition(":")
    return bool(key) and (key in model or bool(colon and owner == provider and part in model))


def threshold_of(
    window: int, options: CompressorOptions, *, reply: object = None, share: float | None = None
) -> int:
    """The tokens from which on a compaction is due. `reply` is what of the window is reserved for
    the answer; `share` a threshold of the model's own."""
    room = without_reply(window, reply)
    wanted = options.threshold if share is None else share
    value = int(room * (max(wanted, SMALL_SHARE) if window < SMALL else wanted))
    if value < LEAST_CONTEXT:
        value = max(value, min(LEAST_CONTEXT, int(room * FLOORED)))
    if options.threshold_tokens is not None:
        value = min(value, options.threshold_tokens)
    return max(1, min(value, room))


def threshold_in(view: View, available: int, options: CompressorOptions) -> int:
    """The same for the model that a session runs on."""
    if not options.model_thresholds:
        return threshold_of(available, options)
    model, provider = view.reader.model, view.reader.provider
    share = share_for(model, provider, options.model_thresholds, options.threshold)
    return threshold_of(available, options, share=share)


def tail_budget(window: int, options: CompressorOptions) -> int:
    """How many of the newest tokens a compaction leaves as they are. It never falls where the
    window grows, as that of Hermes does where its threshold falls."""
    if options.tail_mode == "lean":
        lean = min(max(int(window * LEAN_SHARE), LEAN_LEAST), LEAN_MOST)
        return min(lean, int(window * LEAN_CEILING))
    least, most = RATIOS
    ratio = min(max(options.target_ratio, least), most)
    before = threshold_of(min(window, SMALL - 1), options)
    return int(max(threshold_of(window, options), before) * ratio)


def most_of_summary(window: int) -> int:
    """The tokens of a summary at most."""
    return min(int(window * SUMMARY_CEILING), SUMMARY_MOST)


def summary_budget(window: int, source: int) -> int:
    """The tokens of a summary that is made of so many."""
    return min(max(int(source * SUMMARY_SHARE), SUMMARY_LEAST), most_of_summary(window))
