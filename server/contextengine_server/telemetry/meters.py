"""What is counted of sessions: plain integers, read by whoever exports them."""

from __future__ import annotations

from contextengine_server.telemetry.metrics import Counter, Metrics

_OUTCOMES = {1: "fits", 2: "over_budget", 3: "degraded"}
_DEGRADED = ("breaker_open", "spend_cap", "summarizer_fallback", "summarizers_exhausted")
_COMPACTIONS = ("committed", "no_progress", "failed", "remade")
_SUBAGENTS = ("forked", "isolated", "started", "rolled_back", "ended", "expired")

_REPORTED = {
    "input_tokens": "input_uncached",
    "cache_read_tokens": "input_cache_read",
    "cache_write_tokens": "input_cache_write",
    "output_tokens": "output",
}


class Meters:
    """The counters of the session and of what serves it."""

    def __init__(self, metrics: Metrics) -> None:
        self.assembled: dict[int, Counter] = {
            number: metrics.counter(
                "contextengine.assemblies", "Assemblies by outcome", {"outcome": name}, "{assembly}"
            )
            for number, name in _OUTCOMES.items()
        }
        self.messages = metrics.counter(
            "contextengine.messages.stored", "Messages stored", unit="{message}"
        )
        self.tokens_in = metrics.counter(
            "contextengine.tokens.stored", "Tokens stored, reference encoding", unit="{token}"
        )
        self.tokens_sent = metrics.counter(
            "contextengine.tokens.assembled", "Tokens of assemblies", unit="{token}"
        )
        self.tokens_reused = metrics.counter(
            "contextengine.tokens.reused",
            "Tokens of assemblies that the caller held already",
            unit="{token}",
        )
        self.compacted: dict[str, Counter] = {
            name: metrics.counter(
                "contextengine.compactions",
                "Compaction passes by outcome",
                {"outcome": name},
                "{pass}",
            )
            for name in _COMPACTIONS
        }
        self.degraded: dict[str, Counter] = {
            name: metrics.counter(
                "contextengine.summaries.degraded",
                "Summaries by another than was asked first",
                {"reason": name},
                "{summary}",
            )
            for name in _DEGRADED
        }
        self.subagents: dict[str, Counter] = {
            name: metrics.counter(
                "contextengine.subagents",
                "Children by what became of them",
                {"outcome": name},
                "{child}",
            )
            for name in _SUBAGENTS
        }
        self.tokens_granted = metrics.counter(
            "contextengine.tokens.granted",
            "Tokens that children recalled of their parents",
            unit="{token}",
        )
        self.reported: dict[str, Counter] = {
            field: metrics.counter(
                "contextengine.tokens.reported",
                "Tokens that providers billed, as ReportUsage and AfterTurn tell; the parts of the"
                " input do not overlap",
                {"kind": kind},
                "{token}",
            )
            for field, kind in _REPORTED.items()
        }
