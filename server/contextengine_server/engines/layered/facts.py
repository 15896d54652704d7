"""What the layered engine says of a session: by which plan it goes, and what its layers take."""

from __future__ import annotations

from contextengine_server.context.view import View

from .layers import Layer
from .options import LayeredOptions
from .sizes import limit_of, tail_tokens


def facts(view: View, available: int, options: LayeredOptions) -> dict[str, object]:
    """Its budgets for a view, tokens in the reference encoding. What is kept wins over its layer's
    tokens: here it is said by how much."""
    leading = sum(view.atom(step).tokens for step in range(view.leading))
    kept, most = leading + kept_between(view), options.layers.critical.max_tokens
    return {
        "strategy": options.compaction.strategy,
        "threshold_tokens": limit_of(available, options),
        "tail_token_budget": tail_tokens(available, options),
        "layers": {
            layer.name.lower(): {
                "strategy": options.strategy_of(layer),
                "max_tokens": options.tokens_for(layer),
            }
            for layer in Layer
        },
        "kept_tokens": kept,
        "kept_over_layer_tokens": 0 if options.linear else max(0, kept - most),
        "summary_tokens": sum(summary.tokens for summary in view.summaries),
    }


def kept_between(view: View) -> int:
    """The tokens of what stands between the leading messages, the summaries and the newest
    history."""
    if not view.summaries:
        return 0
    leading = sum(
        view.atom(step).tokens for step in range(view.leading) if view.covering(step) is None
    )
    gaps = sum(tokens for _, last, tokens in view.uncovered() if last < view.raw_from)
    return max(0, gaps - leading)
