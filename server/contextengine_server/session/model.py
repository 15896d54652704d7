"""The session's model, and what its provider billed or refused (contract §3): counted at once, in
force only with a compaction or UpdateModel."""

from __future__ import annotations

from dataclasses import dataclass, replace

from contextengine_server.session.append import Request
from contextengine_server.session.cache import Session
from contextengine_server.session.change import Changed, Draft, change
from contextengine_server.session.core import Address, SessionCore
from contextengine_server.session.state import SessionState
from contextengine_server.store.rows import SessionHead
from contextengine_server.tokens import calibrate, profile


def set_model(
    head: SessionHead,
    state: SessionState,
    model: str,
    provider: str,
    window: int | None,
    max_output: int | None,
) -> SessionHead:
    """The head with another model; the factor that usage taught comes into force, or the new
    model's own."""
    if model and model != head.model:
        known = profile(model)
        head = replace(head, model=model, provider=provider or known.provider)
        state.model.window = known.window or 0
        state.model.max_output = known.max_output or 0
        state.model.factor = state.model.learned = known.factor
        state.model.served_window = 0
    elif provider:
        head = replace(head, provider=provider)
    if window is not None:
        state.model.window = window
    if max_output is not None:
        state.model.max_output = max_output
    return head


async def update_model(
    core: SessionCore,
    session: Session,
    address: Address,
    model: str,
    provider: str,
    window: int | None,
    max_output: int | None,
    request: Request | None,
) -> Changed:
    """Sets the session's model. What usage taught comes into force."""

    def edit(session: Session, head: SessionHead, state: SessionState) -> Draft:
        head = set_model(head, state, model, provider, window, max_output)
        state.model.factor = state.model.learned
        return Draft(state, head)

    return await change(core, session, address, edit, request=request)


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


@dataclass(slots=True, frozen=True)
class Report:
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


async def report_usage(
    core: SessionCore, session: Session, address: Address, report: Report, request: Request | None
) -> Changed:
    """Counts what was billed and learns from it; nothing of it changes an assembly before a
    compaction or UpdateModel."""

    def edit(session: Session, head: SessionHead, state: SessionState) -> Draft:
        note_usage(state, report)
        return Draft(state, head)

    done = await change(core, session, address, edit, request=request)
    if not done.repeated:
        meter_usage(core, report)
    return done


def meter_usage(core: SessionCore, report: Report) -> None:
    """Counts what was billed, once it is stored."""
    for name, counter in core.meters.reported.items():
        counter.value += getattr(report, name)


def note_usage(state: SessionState, report: Report) -> None:
    """Adds a report to what was billed, and learns from it."""
    usage = state.usage
    if report.billed:
        for name in SUMMED:
            setattr(usage, name, min(getattr(usage, name) + getattr(report, name), MOST))
        usage.reports += 1
        usage.last_prompt = report.prompt_tokens
        usage.last_completion = report.output_tokens
        usage.last_total = report.total_tokens or report.prompt_tokens + report.output_tokens
        if report.sent:
            state.model.learned = calibrate(state.model.learned, report.sent, report.prompt_tokens)
    if report.overflow_limit:
        known = state.model.served_window
        state.model.served_window = (
            min(known, report.overflow_limit) if known else report.overflow_limit
        )
