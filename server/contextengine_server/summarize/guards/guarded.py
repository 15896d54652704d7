"""What guards a tenant's model: a breaker around the whole chain of models, a cap on tokens around
each call.

The state is one small value a tenant. Where it is kept is handed in; every change is a pure
function of the state, so a store can apply it within a transaction, and again after a lost race.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from contextengine_server.summarize.chain.chain import first_acceptable
from contextengine_server.summarize.guards.breaker import Breaker, Phase, Ticket
from contextengine_server.summarize.guards.spend import DAY_MS, HOUR_MS, Spend
from contextengine_server.summarize.models.prompts import TEMPLATE_TOKENS
from contextengine_server.summarize.request import (
    Summarizer,
    SummarizerFailed,
    SummaryPolicy,
    SummaryRequest,
    SummaryResult,
)

T = TypeVar("T")

# Not structlog: worker processes load this room, and start sooner without.
log = logging.getLogger("contextengine.summarize")


class GuardState(msgspec.Struct, frozen=True):
    """All that is remembered of a tenant's summarizers."""

    breaker: Breaker = msgspec.field(default_factory=Breaker)
    spend: Spend = msgspec.field(default_factory=Spend)

    def status(self, policy: SummaryPolicy, now_ms: int) -> GuardStatus:
        """What to show of it."""
        return GuardStatus(
            self.breaker.phase(policy.breaker, now_ms),
            self.breaker.failures,
            self.breaker.wait_ms(policy.breaker, now_ms),
            self.spend.within(HOUR_MS, now_ms),
            self.spend.within(DAY_MS, now_ms),
        )

    def encode(self) -> str:
        """The state as JSON, at most 10 KB."""
        return json.dumps(
            {"breaker": self.breaker.encode(), "spend": self.spend.encode()}, separators=(",", ":")
        )

    @classmethod
    def decode(cls, text: str) -> GuardState:
        """The state that `encode` gave; of an empty text, that of a tenant never seen. Raises
        ValueError."""
        if not text:
            return cls()
        values = json.loads(text)
        if not isinstance(values, dict) or values.keys() != {"breaker", "spend"}:
            raise ValueError("is not the state of a guard: expected breaker and spend")
        return cls(Breaker.decode(values["breaker"]), Spend.decode(values["spend"]))


class GuardStatus(msgspec.Struct, frozen=True):
    """A tenant's guards, for people."""

    phase: Phase
    failures: int
    """In a row."""
    wait_ms: int
    """How long until the breaker lets a call through."""
    spent_hour: int
    """Tokens in the last hour."""
    spent_day: int


class GuardStates(Protocol):
    """Keeps the states. Raises what its store raises; a guard then lets nothing through."""

    async def change(self, tenant: str, step: Callable[[GuardState], tuple[GuardState, T]]) -> T:
        """Replaces the tenant's state by the first that `step` gives, and answers the second. No
        two changes of a tenant overlap; `step` may be called more than once, and not on the event
        loop."""

    async def state(self, tenant: str) -> GuardState:
        """The tenant's state."""
        ...


class Failover:
    """Several summarizers as one: the first of them whose summary is acceptable."""

    name = "models"

    def __init__(self, summarizers: Sequence[Summarizer], count: Callable[[str], int]) -> None:
        self._summarizers = summarizers
        self._count = count

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """The summary. Raises SummarizerFailed, with every reason, where none of them gave one."""
        done = await first_acceptable(self._summarizers, request, self._count)
        # One of them managed: that another did not is no failure of theirs.
        return replace(done, failure=None)


class GuardedSummarizer:
    """Asks `inner` while its tenant's breaker lets it, and tells the breaker how it went.

    `inner` is a whole chain of models with all that each tries: only when it is exhausted is that
    one failure. Where nobody was asked (no key, no room, over the cap) that is none. `policy` is
    for requests that bring none of their own.
    """

    def __init__(
        self,
        inner: Summarizer,
        states: GuardStates,
        clock_ms: Callable[[], int],
        policy: SummaryPolicy,
    ) -> None:
        self.name = inner.name
        self._inner = inner
        self._states = states
        self._clock_ms = clock_ms
        self._policy = policy

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """The summary. Raises SummarizerFailed, at once where the breaker is open."""
        limits = (request.policy or self._policy).breaker

        def admit(state: GuardState) -> tuple[GuardState, tuple[Ticket | None, int]]:
            now_ms = self._clock_ms()
            breaker, ticket = state.breaker.admit(limits, now_ms)
            return replace(state, breaker=breaker), (ticket, breaker.wait_ms(limits, now_ms))

        ticket, wait_ms = await self._states.change(request.tenant, admit)
        if ticket is None:
            raise SummarizerFailed(
                f"the circuit breaker is open for another {wait_ms / 1000:.0f} s",
                asked=False,
                causes=("breaker_open",),
            )
        try:
            async with asyncio.timeout(
                limits.half_open_timeout_ms / 1000 if ticket.trial else None
            ):
                result = await self._inner.summarize(request)
        except BaseException as error:
            # A call that its caller cancelled, or that was never made, is no sign of how the
            # service is.
            made = error.asked if isinstance(error, SummarizerFailed) else True
            judged = made and isinstance(error, Exception)
            await self._tell(
                request.tenant,
                lambda breaker: (
                    breaker.failed(ticket, limits, self._clock_ms())
                    if judged
                    else breaker.released(ticket)
                ),
            )
            if ticket.trial and isinstance(error, TimeoutError):
                raise SummarizerFailed(
                    f"the breaker's trial took longer than {limits.half_open_timeout_ms} ms",
                    kind="timeout",
                ) from None
            raise
        await self._tell(
            request.tenant, lambda breaker: breaker.succeeded(ticket, limits, self._clock_ms())
        )
        return result

    async def _tell(self, tenant: str, step: Callable[[Breaker], Breaker]) -> None:
        await _settle(
            self._states, tenant, lambda state: (replace(state, breaker=step(state.breaker)), None)
        )


class MeteredSummarizer:
    """Asks `inner` while its tenant's caps leave room for one more call, and counts what the call
    took."""

    def __init__(
        self,
        inner: Summarizer,
        states: GuardStates,
        clock_ms: Callable[[], int],
        policy: SummaryPolicy,
    ) -> None:
        self.name = inner.name
        self._inner = inner
        self._states = states
        self._clock_ms = clock_ms
        self._policy = policy

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """The summary. Raises SummarizerFailed, at once where the call would be over a cap."""
        limits = (request.policy or self._policy).spend
        needs, began_ms = estimate(request), self._clock_ms()

        def reserve(state: GuardState) -> tuple[GuardState, str | None]:
            refusal = state.spend.refusal(needs, limits, began_ms)
            if refusal is not None:
                return state, refusal
            return replace(state, spend=state.spend.add(needs, began_ms, began_ms)), None

        refusal = await self._states.change(request.tenant, reserve)
        if refusal is not None:
            raise SummarizerFailed(refusal, asked=False, causes=("spend_cap",))
        # Of a call that ended in any other way it is not known what it took: the estimate stands.
        took = needs
        try:
            result = await self._inner.summarize(request)
            took = result.spent
            return result
        except SummarizerFailed as error:
            took = error.spent
            raise
        finally:
            await _settle(
                self._states,
                request.tenant,
                partial(_put_right, tokens=took - needs, at_ms=began_ms, now_ms=self._clock_ms()),
            )


def estimate(request: SummaryRequest) -> int:
    """About what a call for a request takes, tokens of prompt and answer, before either is
    known."""
    return (
        TEMPLATE_TOKENS
        + request.source_tokens
        + request.target_tokens
        + len(request.previous_summary) // 4
    )


def _put_right(
    state: GuardState, *, tokens: int, at_ms: int, now_ms: int
) -> tuple[GuardState, None]:
    return replace(state, spend=state.spend.add(tokens, at_ms, now_ms)), None


async def _settle(
    states: GuardStates, tenant: str, step: Callable[[GuardState], tuple[GuardState, None]]
) -> None:
    """Records how a call went. A summary that is there is not lost because this cannot be
    written."""
    try:
        await states.change(tenant, step)
    except Exception as error:
        log.warning("the state of a summarizer's guard was not written: %s", type(error).__name__)
