"""What is counted of sessions: plain integers, read by whoever exports them."""

from __future__ import annotations

from contextengine_server.telemetry.metrics import Counter, Metrics

_OUTCOMES = {1: "fits", 2: "over_budget", 3: "degraded"}
_DEGRADED = ("breaker_open", "spend_cap", "summarizer_fallback", "summarizers_exhausted")
_COMPACTIONS = ("committed", "no_progress", "failed", "remade")
_SUBAGENTS = ("forked", "isolated", "started", "rolled_back", "ended", "expired")

_CHANGES = ("rehydrated", "masked", "evicted", "reread", "overflow")
_FACTS = (
    "name",
    "email",
    "date",
    "preference",
    "decision",
    "address",
    "identifier",
    "entity",
)
_CAPS = ("per-execution", "per-hour", "per-day")

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
        self.flushed: dict[str, Counter] = {
            name: metrics.counter(
                "contextengine.memory.flushes",
                "Ranges handed over to memory before they are summarized, by outcome",
                {"outcome": name},
                "{range}",
            )
            for name in ("kept", "missed")
        }
        self.facts: dict[str, Counter] = {
            kind: metrics.counter(
                "contextengine.memory.facts",
                "Facts found and remembered, by kind",
                {"kind": kind},
                "{fact}",
            )
            for kind in _FACTS
        }
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
        self.changes: dict[str, Counter] = {
            kind: metrics.counter(
                "contextengine.context.changes",
                "Lists that began anew with messages masked or evicted or something brought back,"
                " or did not fit, and messages of the model's with calls that it had made before",
                {"kind": kind},
                "{change}",
            )
            for kind in _CHANGES
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
        self.refused: dict[str, Counter] = {
            scope: metrics.counter(
                "contextengine.guard.refused",
                "Assemblies refused because the agent's tokens would pass a cap",
                {"reason": scope},
                "{assembly}",
            )
            for scope in _CAPS
        }
        self.cost = metrics.counter(
            "contextengine.cost",
            "What model calls cost, as reports say or else by the catalogue of rates, in millionths"
            " of a US dollar",
            unit="{microdollar}",
        )
        self.saved = 0
        metrics.gauge(
            "contextengine.cache.saved",
            lambda: self.saved,
            "What prompt caches saved against plain input since the start, in millionths of a US"
            " dollar; negative while writing has cost more than reading saved",
            unit="{microdollar}",
        )
        metrics.gauge(
            "contextengine.cache.hit_ratio",
            self._hit_ratio,
            "Share of the reported input that was read from prompt caches since the start",
            unit="1",
        )

    def _hit_ratio(self) -> float:
        """Of the input that was reported, the share that came from a cache; 0 without any."""
        read = self.reported["cache_read_tokens"].value
        kinds = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
        return read / max(1, sum(self.reported[kind].value for kind in kinds))
