"""Escalation, failover, breaker and caps together: who is asked how often, and what each outcome
counts for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from contextengine_server.summarize import (
    BreakerLimits,
    EscalatingSummarizer,
    Failover,
    GuardedSummarizer,
    GuardState,
    MeteredSummarizer,
    SourceMessage,
    SpendLimits,
    Summarizer,
    SummarizerChain,
    SummarizerFailed,
    SummaryPolicy,
    SummaryRequest,
    SummaryResult,
    TooLong,
    Unacceptable,
)
from contextengine_server.summarize.guards.guarded import estimate
from contextengine_server.tokens import TokenCounter
from tests.states import MemoryStates

COUNT = TokenCounter("o200k_base").count_text
REQUEST = SummaryRequest(
    (SourceMessage("user", "Where is the report? " * 40, 1),),
    source_tokens=200,
    target_tokens=100,
    tenant="acme",
)
GOOD = SummaryResult("The report is in reports/2024.", 8, "model", spent=300)
DOWN = SummarizerFailed("503")
POLICY = SummaryPolicy()


class Clock:
    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def __call__(self) -> int:
        return self.ms


@dataclass
class Model:
    """A summarizer that answers, one after the other, what it was given; the last for ever."""

    answers: Sequence[SummaryResult | BaseException | Callable[[], Awaitable[SummaryResult]]]
    name: str = "model"
    forms: list[bool] = field(default_factory=list)

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        answer = self.answers[min(len(self.forms), len(self.answers) - 1)]
        self.forms.append(request.aggressive)
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, SummaryResult) else await answer()


@dataclass
class House:
    """Models wired as a server wires them."""

    models: list[Model]
    policy: SummaryPolicy = POLICY
    states: MemoryStates = field(default_factory=MemoryStates)
    clock: Clock = field(default_factory=Clock)
    last: tuple[Summarizer, ...] = ()

    def chain(self) -> SummarizerChain:
        asked = [
            EscalatingSummarizer(MeteredSummarizer(model, self.states, self.clock, self.policy))
            for model in self.models
        ]
        models = Failover(asked, COUNT)
        guarded = GuardedSummarizer(models, self.states, self.clock, self.policy)
        return SummarizerChain([guarded, *self.last], COUNT)

    async def ask(self, times: int = 1, **changes: Any) -> SummaryResult:
        chain = self.chain()
        for _ in range(times):
            result = await chain.summarize(replace(REQUEST, **changes))
        return result

    async def state(self, tenant: str = "acme") -> GuardState:
        return await self.states.state(tenant)

    async def spent(self, tenant: str = "acme") -> int:
        return (await self.state(tenant)).status(self.policy, self.clock()).spent_hour


@pytest.mark.parametrize(
    ("answers", "forms"),
    [
        ([GOOD], [False]),
        ([Unacceptable("empty"), GOOD], [False, False]),
        ([Unacceptable("empty")] * 3 + [GOOD], [False, False, False, True]),
        ([TooLong("context"), GOOD], [False, True]),
        ([Unacceptable("empty"), TooLong("context"), GOOD], [False, False, True]),
    ],
)
async def test_a_model_is_asked_again_and_then_for_less(
    answers: list[SummaryResult | BaseException], forms: list[bool]
) -> None:
    model = Model(answers)
    result = await EscalatingSummarizer(model).summarize(REQUEST)
    assert result.text == GOOD.text
    assert model.forms == forms
    assert [reason for _, reason in result.refused] == [str(answer) for answer in answers[:-1]]


@pytest.mark.parametrize(
    ("answers", "forms"),
    [
        ([DOWN], [False]),
        ([Unacceptable("empty"), DOWN], [False, False]),
        ([TooLong("context"), DOWN], [False, True]),
        ([TooLong("context")], [False, True]),
        ([Unacceptable("empty")], [False, False, False, True]),
    ],
)
async def test_what_does_not_help_ends_it(answers: list[BaseException], forms: list[bool]) -> None:
    model = Model(answers)
    with pytest.raises(SummarizerFailed) as caught:
        await EscalatingSummarizer(model).summarize(REQUEST)
    assert model.forms == forms
    assert len(caught.value.refused) == len(forms)


async def test_one_who_is_asked_aggressively_at_once_is_asked_once() -> None:
    model = Model([Unacceptable("empty")])
    with pytest.raises(SummarizerFailed):
        await EscalatingSummarizer(model).summarize(replace(REQUEST, aggressive=True))
    assert model.forms == [True]


async def test_the_next_model_is_asked_where_the_first_is_down() -> None:
    house = House([Model([DOWN], "first"), Model([GOOD], "second")])
    result = await house.ask()
    assert (result.text, result.refused) == (GOOD.text, (("first", "503"),))
    assert (await house.state()).breaker.failures == 0


async def test_an_exhausted_chain_is_one_failure_and_ends_in_the_note_that_counts() -> None:
    house = House([Model([DOWN], "first"), Model([Unacceptable("empty")], "second")])
    result = await house.ask()
    assert result.fallback
    assert [name for name, _ in result.refused] == ["first"] + ["second"] * 4
    assert (await house.state()).breaker.failures == 1


async def test_what_the_chain_finds_no_summary_is_a_failure_too() -> None:
    house = House([Model([replace(GOOD, text="word " * 500)])])
    assert (await house.ask()).fallback
    assert (await house.state()).breaker.failures == 1


async def test_after_five_failures_nobody_is_asked_and_the_reason_is_given() -> None:
    model = Model([DOWN])
    house = House([model], last=(Model([replace(GOOD, summarizer="extractive")], "extractive"),))
    await house.ask(5)
    result = await house.ask()
    assert len(model.forms) == 5
    assert result.summarizer == "extractive"
    assert result.refused == (("models", "the circuit breaker is open for another 60 s"),)
    assert (await house.ask(tenant="other")).refused == (("model", "503"),)


async def test_one_trial_after_the_reset_closes_it_or_not() -> None:
    house = House([Model([DOWN] * 6 + [GOOD])])
    await house.ask(5)
    house.clock.ms += 60_000
    assert (await house.ask()).fallback
    assert (await house.state()).status(POLICY, house.clock()).phase == "open"
    house.clock.ms += 60_000
    assert (await house.state()).status(POLICY, house.clock()).phase == "half_open"
    assert not (await house.ask()).fallback
    assert (await house.state()).status(POLICY, house.clock()).phase == "closed"


async def test_while_a_trial_is_out_others_go_round_it() -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow() -> SummaryResult:
        entered.set()
        await leave.wait()
        return GOOD

    model = Model([*[DOWN] * 5, slow])
    house = House([model])
    await house.ask(5)
    house.clock.ms += 60_000
    trial = asyncio.create_task(house.ask())
    await entered.wait()
    assert (await house.ask()).fallback
    assert len(model.forms) == 6
    leave.set()
    assert not (await trial).fallback


async def test_a_trial_that_hangs_is_cut_off_and_has_failed() -> None:
    async def hang() -> SummaryResult:
        await asyncio.Event().wait()
        return GOOD

    policy = SummaryPolicy(breaker=BreakerLimits(1, 1_000, 20))
    house = House([Model([DOWN, hang])], policy)
    await house.ask()
    house.clock.ms += 1_000
    result = await house.ask()
    assert result.refused == (("models", "the breaker's trial took longer than 20 ms"),)
    assert (await house.state()).status(policy, house.clock()).phase == "open"


async def test_a_cancelled_trial_leaves_its_place() -> None:
    entered = asyncio.Event()

    async def hang() -> SummaryResult:
        entered.set()
        await asyncio.Event().wait()
        return GOOD

    house = House([Model([*[DOWN] * 5, hang, GOOD])])
    await house.ask(5)
    house.clock.ms += 60_000
    trial = asyncio.create_task(house.ask())
    await entered.wait()
    trial.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trial
    assert not (await house.ask()).fallback


async def test_where_nobody_was_asked_nothing_failed() -> None:
    house = House([Model([SummarizerFailed("no key", asked=False)])])
    result = await house.ask(9)
    assert result.refused == (("model", "no key"),)
    assert (await house.state()).breaker.failures == 0
    assert await house.spent() == 0


async def test_what_is_spent_is_what_the_provider_said_failed_tries_included() -> None:
    house = House([Model([Unacceptable("empty", spent=200), GOOD])])
    result = await house.ask()
    assert result.spent == 500
    assert await house.spent() == 500
    assert await house.spent("other") == 0


async def test_over_the_cap_nobody_is_asked_until_the_hour_is_over() -> None:
    needs = estimate(REQUEST)
    model = Model([replace(GOOD, spent=needs)])
    house = House([model], SummaryPolicy(spend=SpendLimits(per_hour=2 * needs, per_day=0)))
    assert not (await house.ask(2)).fallback
    result = await house.ask()
    assert result.refused == (
        (
            "model",
            (
                f"over the cap: {2 * needs:,} of {2 * needs:,} tokens an hour are spent, and it"
                f" needs {needs:,}"
            ),
        ),
    )
    assert len(model.forms) == 2
    assert (await house.state()).breaker.failures == 0
    assert not (await house.ask(tenant="other")).fallback
    house.clock.ms += 3_600_000
    assert not (await house.ask()).fallback


async def test_calls_at_once_do_not_share_the_same_room() -> None:
    leave = asyncio.Event()

    async def slow() -> SummaryResult:
        await leave.wait()
        return GOOD

    house = House(
        [Model([slow])], SummaryPolicy(spend=SpendLimits(per_hour=2 * estimate(REQUEST), per_day=0))
    )
    calls = [asyncio.create_task(house.ask()) for _ in range(5)]
    while sum(call.done() for call in calls) < 3:
        await asyncio.sleep(0.001)
    leave.set()
    assert sorted(result.fallback for result in await asyncio.gather(*calls)) == [
        False,
        False,
        True,
        True,
        True,
    ]


async def test_a_further_attempt_must_fit_the_cap_as_well() -> None:
    model = Model([Unacceptable("empty", spent=estimate(REQUEST))])
    house = House(
        [model], SummaryPolicy(spend=SpendLimits(per_hour=2 * estimate(REQUEST), per_day=0))
    )
    result = await house.ask()
    assert len(model.forms) == 2
    assert "over the cap" in result.refused[-1][1]
    assert (await house.state()).breaker.failures == 1


async def test_of_a_call_that_was_cancelled_the_estimate_stays_spent() -> None:
    entered = asyncio.Event()

    async def hang() -> SummaryResult:
        entered.set()
        await asyncio.Event().wait()
        return GOOD

    house = House([Model([hang])])
    call = asyncio.create_task(house.ask())
    await entered.wait()
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert await house.spent() == estimate(REQUEST)


async def test_a_sessions_own_limits_win() -> None:
    house = House([Model([DOWN])])
    policy = SummaryPolicy(breaker=BreakerLimits(failure_threshold=1))
    await house.ask(policy=policy)
    assert "open" in (await house.ask(policy=policy)).refused[0][1]
    house = House([Model([GOOD])])
    result = await house.ask(policy=SummaryPolicy(spend=SpendLimits(per_hour=1)))
    assert "over the cap" in result.refused[0][1]


async def test_the_state_survives_being_written_down() -> None:
    house = House([Model([DOWN])])
    await house.ask(5)
    written = (await house.state()).encode()
    again = House([Model([GOOD])], clock=house.clock)
    await again.states.change("acme", lambda _: (GuardState.decode(written), None))
    assert (await again.ask()).fallback
    house.clock.ms += 60_000
    assert not (await again.ask()).fallback
    assert GuardState.decode("") == GuardState()


@pytest.mark.parametrize(
    "text", ["null", "[]", "{}", '{"breaker": {}}', '{"breaker": {}, "spend": [], "x": 1}', "{"]
)
def test_what_is_no_state_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not the state|Expecting"):
        GuardState.decode(text)


async def test_a_store_that_fails_lets_nothing_through_and_loses_no_summary() -> None:
    class Fails(MemoryStates):
        left = 0

        async def change(self, tenant, step):
            if self.left <= 0:
                raise OSError("the disk is full of a message's text")
            self.left -= 1
            return await super().change(tenant, step)

    states = Fails()
    house = House([Model([GOOD])], states=states)
    result = await house.ask()
    assert result.refused == (("models", "OSError"),)
    states.left = 2  # admitted by both guards; what became of it cannot be written
    assert (await house.ask()).text == GOOD.text


async def test_a_summary_that_repeats_its_instructions_is_refused() -> None:
    focus = "dwell on the migration of the billing tables"
    told = replace(GOOD, text=f"As asked to {focus.upper()}: the report moved.")
    assert (await House([Model([told])]).ask(focus=focus)).refused == (
        ("model", "repeats the focus"),
    )
    assert not (
        await House([Model([replace(GOOD, text="The billing tables moved.")])]).ask(
            focus="billing tables"
        )
    ).fallback
    said = (SourceMessage("user", f"Please {focus}. " * 20, 1),)
    assert not (await House([Model([told])]).ask(focus=focus, messages=said)).fallback
