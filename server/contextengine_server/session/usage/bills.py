"""What providers billed, priced and added to the session's own sums
(docs/semantics.md#cost-and-savings)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from contextengine_server.context.budget import ModelTokens
from contextengine_server.session.assembly.pressure import messages_in
from contextengine_server.session.model import MOST, Report, noting
from contextengine_server.session.state import SessionState, Spending, UsageFacts
from contextengine_server.session.usage.escalation import escalates
from contextengine_server.store.charges import Charge
from contextengine_server.store.rows import (
    SessionHead,
)
from contextengine_server.telemetry.meters import Meters
from contextengine_server.tokens import profile
from contextengine_server.usage.rates import CallTokens, RateCatalogue

_CHARGED = 2**53
"""No charge counts for more in any of its sums: what a request may say of one."""


MOST_CHANNELS = 32
"""Kinds of channels whose costs a session keeps apart; those of further ones count as of none."""


class Billing(msgspec.Struct, frozen=True):
    """Prices reports and counts them."""

    rates: RateCatalogue
    clock_ms: Callable[[], int]
    meters: Meters

    def charge(self, head: SessionHead | None, report: Report | None) -> Charge | None:
        """What a report is charged with, in the session as it stands; None where nothing was
        billed."""
        if report is None or not report.billed:
            return None
        model = report.ran or ("" if head is None else head.model)
        provider = "" if head is None else head.provider
        # What ran beside the session's own model may be another provider's.
        if not provider or (report.ran and head is not None and report.ran != head.model):
            provider = profile(model).provider or provider
        priced = self.rates.priced(
            provider,
            model,
            CallTokens(
                report.input_tokens,
                report.output_tokens,
                report.cache_read_tokens,
                report.cache_write_tokens,
                report.cache_write_1h_tokens,
                report.cost_micro_usd,
            ),
        )
        return Charge(
            self.clock_ms(),
            min(report.all_tokens, _CHARGED),
            provider,
            model,
            report.input_tokens,
            report.output_tokens,
            report.cache_read_tokens,
            report.cache_write_tokens,
            min(priced.cost_micro_usd, _CHARGED),
            max(-_CHARGED, min(priced.saved_micro_usd, _CHARGED)),
            unpriced=0 if priced.known or priced.cost_micro_usd else 1,
        )

    def noting(
        self, head: SessionHead, state: SessionState, report: Report, charge: Charge | None
    ) -> SessionState:
        """The state with a report and its charge added."""
        longer = escalates(state)
        state = self._judged(head, noting(head, state, report), report)
        if charge is None:
            return state
        usage = _charged(state, charge)
        usage = replace(
            usage,
            length_stop=report.stopped_for_length,
            compactions=state.compactions,
            escalated=usage.turn if longer else usage.escalated,
        )
        read, written = charge.cache_read_tokens, charge.cache_write_tokens
        cache = state.cache.reported(usage.turn, read, written, charge.time_ms)
        return replace(state, usage=usage, cache=cache)

    def _judged(self, head: SessionHead, state: SessionState, report: Report) -> SessionState:
        """The state with what a report says of the newest compaction."""
        attempts = state.attempts
        if not attempts.limit or report.ran not in ("", head.model):
            return state
        told = messages_in(
            ModelTokens(report.prompt_tokens), report.sent.outside, state.model, state.model.factor
        )
        # What the provider refused has not become small enough.
        tokens = attempts.limit if report.overflow_limit else told if report.prompt_tokens else 0
        attempts = attempts.billed(tokens, head.message_tokens, self.clock_ms())
        return replace(state, attempts=attempts)

    def meter(self, report: Report | None, charge: Charge | None) -> None:
        """Counts what was billed, once it is stored."""
        if report is None:
            return
        for name, counter in self.meters.reported.items():
            counter.value += getattr(report, name)
        if charge is not None:
            self.meters.cost.value += charge.cost_micro_usd
            self.meters.saved += charge.saved_micro_usd


def _charged(state: SessionState, charge: Charge) -> UsageFacts:
    """The sums with a charge. A turn begins with what a user says, and its tokens with it."""
    usage, turn = state.usage, state.view.user_first
    same = usage.turn == turn
    before = usage.turn_tokens if same else 0
    execution = usage.execution if same else Spending()
    channel = state.channel
    if channel not in usage.channels and len(usage.channels) >= MOST_CHANNELS:
        channel = ""
    of_channel = usage.channels.get(channel, Spending()).plus(charge, MOST)
    return replace(
        usage,
        priced_micro_usd=min(usage.priced_micro_usd + charge.cost_micro_usd, MOST),
        saved_micro_usd=max(-MOST, min(usage.saved_micro_usd + charge.saved_micro_usd, MOST)),
        unpriced=usage.unpriced + charge.unpriced,
        turn=turn,
        turn_tokens=min(before + charge.tokens, MOST),
        execution=execution.plus(charge, MOST),
        channels={**usage.channels, channel: of_channel},
    )
