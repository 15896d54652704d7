"""The session's model, and what its provider billed or refused: counted at once, in force only with
a compaction or UpdateModel (docs/semantics.md#models-and-usage)."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace
from msgspec.structs import replace as changed

from contextengine_server.session.state import ModelFacts, SessionState
from contextengine_server.store.rows import SessionHead
from contextengine_server.telemetry.meters import Meters
from contextengine_server.tokens import calibrate, profile


def set_model(
    head: SessionHead,
    state: SessionState,
    model: str,
    provider: str,
    window: int | None,
    max_output: int | None,
) -> tuple[SessionHead, SessionState]:
    """The head and the state with another model; the factor that usage taught comes into force, or
    the new model's own."""
    facts = state.model
    if model and model != head.model:
        known = profile(model)
        head = changed(head, model=model, provider=provider or known.provider)
        facts = ModelFacts(known.window or 0, known.max_output or 0, known.factor, known.factor)
    elif provider:
        head = changed(head, provider=provider)
    if window is not None:
        facts = replace(facts, window=window)
    if max_output is not None:
        facts = replace(facts, max_output=max_output)
    return head, replace(state, model=facts)


SUMMED = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "cost_micro_usd",
)
MOST = 2**63 - 1
"""Sums stop here: the wire's integers hold no more."""


class Report(msgspec.Struct, frozen=True):
    """What the provider billed, or refused. Tokens are the model's."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_micro_usd: int = 0
    total_tokens: int = 0
    billed: bool = False
    """True where usage was reported at all."""
    sent: int = 0
    """What the named assembly was estimated at, in the reference encoding with no factor; 0: none
    was named."""
    overflow_limit: int = 0
    """The limit that the provider named when it refused; 0: none."""

    @property
    def prompt_tokens(self) -> int:
        """All input, cached or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


def meter_usage(meters: Meters, report: Report) -> None:
    """Counts what was billed, once it is stored."""
    for name, counter in meters.reported.items():
        counter.value += getattr(report, name)


def noting(state: SessionState, report: Report) -> SessionState:
    """The state with a report added to what was billed, and what it teaches."""
    usage, model = state.usage, state.model
    if report.billed:
        sums = {name: min(getattr(usage, name) + getattr(report, name), MOST) for name in SUMMED}
        usage = replace(
            usage,
            **sums,
            reports=usage.reports + 1,
            last_prompt=report.prompt_tokens,
            last_completion=report.output_tokens,
            last_total=report.total_tokens or report.prompt_tokens + report.output_tokens,
        )
        if report.sent:
            learned = calibrate(model.learned, report.sent, report.prompt_tokens)
            model = replace(model, learned=learned)
    if report.overflow_limit:
        known = model.served_window
        limit = min(known, report.overflow_limit) if known else report.overflow_limit
        model = replace(model, served_window=limit)
    return replace(state, usage=usage, model=model)
