"""The session's model, and what its provider billed or refused: counted at once, in force only with
a compaction or UpdateModel (docs/semantics.md#models-and-usage)."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace
from msgspec.structs import replace as changed

from contextengine_server.context.budget import ModelTokens, ReferenceTokens, in_model
from contextengine_server.session.assembly.budget import Outside
from contextengine_server.session.state import ModelFacts, SessionState
from contextengine_server.store.rows import SessionHead
from contextengine_server.tokens import Bill, Calibration, calibrate, from_difference, profile


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


def switched(state: SessionState, *, route: bool) -> SessionState:
    """The state with nothing that was seen under the budget before: bills say nothing of this one,
    and nothing waits for any. `route`: it is another model, or reached in another way."""
    usage = replace(
        state.usage, last_prompt=0, last_completion=0, last_total=0, compactions=state.compactions
    )
    return replace(state, usage=usage, attempts=state.attempts.switched(route=route))


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


class Sent(msgspec.Struct, frozen=True):
    """What an assembly says of the prompt that it is sent in."""

    tokens: ReferenceTokens = ReferenceTokens(0)
    """Its items, the addition to the system prompt and this turn's prompt; 0: no assembly was
    named."""
    outside: Outside = Outside()
    """What its budget knew of the rest."""
    another_model: bool = False
    """True where it was not made for the session's model."""

    def estimated(self, factor: float) -> ModelTokens:
        """All that is known of the prompt."""
        counted = in_model(ReferenceTokens(self.tokens + self.outside.counted), factor)
        return ModelTokens(counted + self.outside.given)


class Report(msgspec.Struct, frozen=True):
    """What the provider billed, or refused. Tokens are the model's."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    """Of `cache_write_tokens`, those written for an hour."""
    reasoning_tokens: int = 0
    cost_micro_usd: int = 0
    total_tokens: int = 0
    billed: bool = False
    """True where usage was reported at all."""
    sent: Sent = Sent()
    """The assembly that was billed, as far as it is known."""
    other: int | None = None
    """The caller's count of all that was sent beside it; None: not said."""
    ran: str = ""
    """The model that was billed for; empty: the session's."""
    stopped_for_length: bool = False
    """True where the provider cut the answer off."""
    overflow_limit: int = 0
    """The limit that the provider named when it refused; 0: none."""

    @property
    def prompt_tokens(self) -> int:
        """All input, cached or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def all_tokens(self) -> int:
        """All that was billed, in and out."""
        return self.total_tokens or self.prompt_tokens + self.output_tokens


def noting(head: SessionHead, state: SessionState, report: Report) -> SessionState:
    """The state with a report added to what was billed, and what it teaches."""
    usage, model = state.usage, state.model
    # A bill of another model than the session's says nothing about the session's tokenizer.
    own = not report.sent.another_model and report.ran in ("", head.model)
    teaches = own and report.sent.tokens > 0
    if report.billed:
        sums = {name: min(getattr(usage, name) + getattr(report, name), MOST) for name in SUMMED}
        usage = replace(
            usage,
            **sums,
            reports=usage.reports + 1,
            last_prompt=report.prompt_tokens,
            last_completion=report.output_tokens,
            last_total=report.all_tokens,
        )
        if teaches:
            model = taught_by(model, report)
    if report.overflow_limit:
        known = model.served_window
        limit = min(known, report.overflow_limit) if known else report.overflow_limit
        model = replace(model, served_window=limit)
    return replace(state, usage=usage, model=model)


def taught_by(model: ModelFacts, report: Report) -> ModelFacts:
    """What a bill teaches: by itself where all of the prompt is known, else by how it differs from
    an earlier one."""
    sent, outside, billed = report.sent.tokens, report.sent.outside, report.prompt_tokens
    if report.other is not None:
        return _without_bills(model, calibrate(model.learned, sent, billed - report.other))
    sent = ReferenceTokens(sent + outside.counted)
    billed -= outside.given
    if outside.complete:
        return _without_bills(model, calibrate(model.learned, sent, billed))
    known = Calibration(model.learned, model.first_bill, model.newest_bill)
    known = from_difference(known, Bill(sent, billed, outside.named))
    return replace(model, learned=known.factor, first_bill=known.first, newest_bill=known.newest)


def _without_bills(model: ModelFacts, learned: float) -> ModelFacts:
    return replace(model, learned=learned, first_bill=None, newest_bill=None)
