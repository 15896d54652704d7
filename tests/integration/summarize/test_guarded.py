"""The whole chain against services that fail: forms, fall-back, breaker and caps, as a server wires
them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio
from msgspec.structs import replace

from contextengine_server.summarize import (
    BreakerLimits,
    ExtractiveSummarizer,
    SourceMessage,
    SpendLimits,
    SummarizerChain,
    SummaryPolicy,
    SummaryRequest,
    WorkerPool,
)
from contextengine_server.summarize.chain.models import Models
from contextengine_server.summarize.models.openai import Endpoint, EndpointSource
from contextengine_server.telemetry.metrics import Metrics
from contextengine_server.tokens import TokenCounter
from tests.states import MemoryStates

from ..harness import Clock
from .provider import GOOD, Provider, Request, answer, error, provider, reset

pytestmark = pytest.mark.asyncio(loop_scope="module")

COUNT = TokenCounter("o200k_base").count_text
REQUEST = SummaryRequest(
    tuple(
        SourceMessage("user", f"Rename flag {n} in cli/main.py. Do not touch the docs.", n)
        for n in range(40)
    ),
    source_tokens=600,
    target_tokens=150,
    tenant="acme",
)
ENCODING = "o200k_base"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[WorkerPool]:
    made = WorkerPool()
    yield made
    await made.close()


def models_of(
    pool: WorkerPool, endpoints: Sequence[Endpoint], clock: Clock, policy: SummaryPolicy
) -> Models:
    sources = {
        endpoint.name: EndpointSource(endpoint, pool, ENCODING, COUNT, Metrics())
        for endpoint in endpoints
    }
    return Models(sources, MemoryStates(), clock, policy, COUNT)


class House:
    """A chain over services: the models first, then extraction, then the note that counts."""

    def __init__(
        self, pool: WorkerPool, services: dict[str, Provider], policy: SummaryPolicy
    ) -> None:
        self.clock = Clock()
        endpoints = [
            Endpoint(name, made.base_url, f"{name}-model", timeout=60, retries=0)
            for name, made in services.items()
        ]
        self.models = models_of(pool, endpoints, self.clock, policy)
        self.chain = SummarizerChain([self.models, ExtractiveSummarizer(pool, ENCODING)], COUNT)


async def asked(
    pool: WorkerPool, request: SummaryRequest, policy: SummaryPolicy, **services: Provider
) -> list:
    house = House(pool, services, policy)
    try:
        result = await house.chain.summarize(request)
    finally:
        await house.models.close()
    return [result.summarizer, *result.refused]


def forms(made: Provider) -> list[bool]:
    return [request.aggressive for request in made.requests]


async def test_normal_three_times_then_aggressive_then_the_next(pool: WorkerPool) -> None:
    async with provider(answer("")) as first, provider(answer()) as second:
        found = await asked(pool, REQUEST, SummaryPolicy(), first=first, second=second)
        assert found == ["second:second-model", *[("first:first-model", "empty")] * 4]
        assert forms(first) == [False, False, False, True]
        assert forms(second) == [False]


async def test_the_aggressive_form_follows_a_context_error_at_once(pool: WorkerPool) -> None:
    async with provider(error(400, "x", "context_length_exceeded"), answer()) as first:
        found = await asked(pool, REQUEST, SummaryPolicy(), first=first)
        assert found[0] == "first:first-model"
        assert forms(first) == [False, True]


async def test_a_service_that_is_down_is_asked_once_and_extraction_stands_in(
    pool: WorkerPool,
) -> None:
    async with provider(error(503)) as first, provider(reset) as second:
        found = await asked(pool, REQUEST, SummaryPolicy(), first=first, second=second)
        assert found[0] == "extractive"
        assert found[1:] == [
            ("first:first-model", "503 error"),
            ("second:second-model", "the connection failed"),
        ]
        assert (forms(first), forms(second)) == ([False], [False])


@pytest.mark.parametrize(
    ("policy", "models"),
    [
        (SummaryPolicy(), ["a:a-model", "b:b-model", "c:c-model"]),
        (SummaryPolicy(model="b"), ["b:b-model", "a:a-model", "c:c-model"]),
        (SummaryPolicy(model="b:big:free"), ["b:big:free", "a:a-model", "b:b-model", "c:c-model"]),
        (SummaryPolicy(fallbacks=("c", "a:other", "c")), ["a:a-model", "c:c-model", "a:other"]),
        (SummaryPolicy(model="z:x", fallbacks=("b",)), ["z", "b:b-model"]),
    ],
)
async def test_a_policy_says_who_is_asked_and_in_which_order(
    pool: WorkerPool, policy: SummaryPolicy, models: list[str]
) -> None:
    async with provider(error(500)) as a, provider(error(500)) as b, provider(error(500)) as c:
        found = await asked(pool, REQUEST, policy, a=a, b=b, c=c)
        assert [name for name, _ in found[1:]] == models
        sent = [str(request.body["model"]) for made in (a, b, c) for request in made.requests]
        assert sorted(sent) == sorted(name.partition(":")[2] for name in models if name != "z")
        # The session's own policy wins over the server's.
        own = await asked(pool, replace(REQUEST, policy=policy), SummaryPolicy(), a=a, b=b, c=c)
        assert own == found


async def test_five_exhausted_chains_open_the_breaker_and_one_trial_closes_it(
    pool: WorkerPool,
) -> None:
    def times(request: Request) -> str:
        return str(request.body["model"])

    async with provider(*[error(500)] * 5, answer()) as first, provider(error(500)) as second:
        house = House(pool, {"first": first, "second": second}, SummaryPolicy())
        for _ in range(7):
            await house.chain.summarize(REQUEST)
        assert [times(request) for request in first.requests] == ["first-model"] * 5
        assert len(second.requests) == 5
        skipped = await house.chain.summarize(REQUEST)
        assert skipped.refused == (("models", "the circuit breaker is open for another 60 s"),)
        assert skipped.summarizer == "extractive"
        house.clock.advance(60)
        assert (await house.chain.summarize(REQUEST)).text == GOOD
        assert (await house.chain.summarize(REQUEST)).text == GOOD
        await house.models.close()


async def test_a_tenant_over_its_cap_costs_nothing_more_and_others_go_on(pool: WorkerPool) -> None:
    policy = SummaryPolicy(spend=SpendLimits(per_hour=2_500, per_day=0), breaker=BreakerLimits(1))
    async with provider(answer(usage={"total_tokens": 2_000})) as first:
        house = House(pool, {"first": first}, policy)
        assert (await house.chain.summarize(REQUEST)).spent == 2_000
        over = await house.chain.summarize(REQUEST)
        assert over.summarizer == "extractive"
        assert over.refused[0][1].startswith(
            "over the cap: 2,000 of 2,500 tokens an hour are spent"
        )
        assert len(first.requests) == 1
        assert (await house.chain.summarize(replace(REQUEST, tenant="other"))).text == GOOD
        house.clock.advance(3_600)
        assert (await house.chain.summarize(REQUEST)).text == GOOD
        await house.models.close()


async def test_the_model_asked_first_says_how_much_it_takes(pool: WorkerPool) -> None:
    def takes(*endpoints: Endpoint, previous: int = 0, model: str = "") -> int | None:
        policy = SummaryPolicy(model=model) if model else None
        request = replace(REQUEST, target_tokens=1_200, policy=policy)
        return models_of(pool, endpoints, Clock(), SummaryPolicy()).capacity(request, previous)

    small = Endpoint("small", "http://127.0.0.1:9/v1", "m", window=16_000)
    large = Endpoint("large", "http://127.0.0.1:9/v1", "m", window=200_000)
    assert takes() is None
    room = int((16_000 - 1_200 - 2_048) / 1.1) - 700
    assert takes(small, large) == room
    assert takes(small, large, previous=500) == room - 500
    assert (takes(small, large, model="large:x") or 0) > 170_000
    assert takes(small, previous=100_000) == 0
