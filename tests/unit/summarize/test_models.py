"""Who is asked for a request, in which order, with sources that come and go among them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from msgspec import structs

from contextengine_server.summarize import (
    NobodyThere,
    SourceMessage,
    Summarizer,
    SummarizerFailed,
    SummaryPolicy,
    SummaryRequest,
    SummaryResult,
)
from contextengine_server.summarize.chain.models import Models
from contextengine_server.tokens import TokenCounter
from tests.states import MemoryStates

COUNT = TokenCounter("o200k_base").count_text
REQUEST = SummaryRequest(
    (SourceMessage("user", "Where is the report? " * 40, 1),),
    source_tokens=200,
    target_tokens=100,
    tenant="acme",
)


@dataclass
class Model:
    name: str
    says: str = ""

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        if not self.says:
            raise SummarizerFailed("down")
        return SummaryResult(self.says, COUNT(self.says), self.name)


@dataclass
class Source:
    name: str
    model: str = "own"
    passing: bool = False
    here: bool = True
    room: int | None = 1_000
    says: str = ""
    closed: bool = False

    async def there(self, request: SummaryRequest, model: str) -> bool:
        return self.here

    def summarizer(self, model: str) -> Summarizer:
        return Model(f"{self.name}:{model}", self.says)

    def capacity(self, request: SummaryRequest, previous: int) -> int | None:
        return None if self.room is None else self.room - previous

    async def close(self) -> None:
        self.closed = True


class Counting(MemoryStates):
    """States that know how often they were looked at."""

    changes = 0

    async def change(self, tenant, step):
        self.changes += 1
        return await super().change(tenant, step)


def models(*sources: Source, states: MemoryStates | None = None) -> Models:
    by_name = {source.name: source for source in sources}
    return Models(
        by_name, states or MemoryStates(), lambda: 1_700_000_000_000, SummaryPolicy(), COUNT
    )


async def order(made: Models, policy: SummaryPolicy | None = None) -> list[str]:
    return [one.name for one in await made.order(structs.replace(REQUEST, policy=policy))]


RUNTIME = Source("runtime", "", passing=True)
A, B = Source("a"), Source("b")


@pytest.mark.parametrize(
    ("policy", "asked"),
    [
        (None, ["runtime:", "a:own", "b:own"]),
        (SummaryPolicy(model="b"), ["b:own", "runtime:", "a:own"]),
        (SummaryPolicy(model="runtime:big"), ["runtime:big", "runtime:", "a:own", "b:own"]),
        # Who comes and goes does not take the place of the first that is always there.
        (SummaryPolicy(fallbacks=("b",)), ["runtime:", "a:own", "b:own"]),
        (SummaryPolicy(model="a", fallbacks=("runtime",)), ["a:own", "runtime:"]),
        (SummaryPolicy(model="a:own", fallbacks=("a", "a:own")), ["a:own"]),
        (SummaryPolicy(model="c", fallbacks=("b",)), ["c", "b:own"]),
    ],
)
async def test_the_order(policy: SummaryPolicy | None, asked: list[str]) -> None:
    assert await order(models(RUNTIME, A, B), policy) == asked


async def test_who_is_not_there_is_passed_over() -> None:
    gone = replace(RUNTIME, here=False)
    assert await order(models(gone, A, B)) == ["a:own", "b:own"]
    assert await order(models(gone, A, B), SummaryPolicy(fallbacks=("b",))) == ["a:own", "b:own"]
    assert await order(models(A, RUNTIME)) == ["a:own", "runtime:"]


async def test_with_nobody_there_no_guard_is_looked_at() -> None:
    states = Counting()
    with pytest.raises(NobodyThere):
        await models(replace(RUNTIME, here=False), states=states).summarize(REQUEST)
    assert states.changes == 0
    await models(
        replace(RUNTIME, here=False), replace(A, says="It moved."), states=states
    ).summarize(REQUEST)
    assert states.changes


async def test_the_first_that_knows_says_how_much_is_taken() -> None:
    assert models(RUNTIME, A).capacity(REQUEST) == 1_000
    silent = replace(RUNTIME, room=None)
    assert models(silent, replace(A, room=500), B).capacity(REQUEST, 100) == 400
    assert models(silent).capacity(REQUEST) is None
    assert (
        models(A).capacity(
            structs.replace(REQUEST, policy=SummaryPolicy(model="c", fallbacks=("d",)))
        )
        is None
    )


async def test_all_are_closed() -> None:
    sources = [Source("a"), Source("b")]
    await models(*sources).close()
    assert all(source.closed for source in sources)
