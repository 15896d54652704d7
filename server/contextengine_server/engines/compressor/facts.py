"""What hosts of Hermes read of its compressor, by the names that they know."""

from __future__ import annotations

from contextengine_server.context.view import View

from .options import CompressorOptions
from .sizes import most_of_summary, tail_budget, threshold_in


def facts(view: View, available: int, options: CompressorOptions) -> dict[str, object]:
    """Its budgets for a view, tokens in the reference encoding, and the options that they go by."""
    limit = threshold_in(view, available, options)
    return {
        "threshold_tokens": limit,
        "threshold_percent": round(limit / max(1, available), 4),
        "threshold_tokens_cap": options.threshold_tokens,
        "tail_token_budget": tail_budget(available, options),
        "tail_mode": options.tail_mode,
        "summary_target_ratio": options.target_ratio,
        "max_summary_tokens": most_of_summary(available),
        "protect_first_n": 0 if view.summaries else options.protect_first_n,
        "protect_last_n": options.protect_last_n,
        "min_tail_user_messages": options.min_tail_user_messages,
        "abort_on_summary_failure": options.abort_on_summary_failure,
    }
