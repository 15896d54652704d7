"""A short form of `make bench-recall`: what stays in context, what Search finds, what stays cached.
The bounds lie far below what was measured, so that only a regression meets them; the figures
themselves are the bench's."""

from __future__ import annotations

from pathlib import Path

from tests.bench.recall.caching import replay
from tests.bench.recall.memories import memories
from tests.bench.recall.quality import measure
from tests.integration.harness import House
from tests.integration.harness import house as living


async def test_facts_stay_in_context_and_are_found(house: House) -> None:
    """Of 30 answers that stand in a session of 109 messages. Measured: 27 and 29 in context, 30
    found; in the newest 18 and 22."""
    memory = next(one for one in memories() if one.name == "customer")
    result = await measure(house, memory)
    assert (result.questions, result.verbatim) == (30, 30)
    assert result.context[25] >= 20 > result.newest[25]
    assert result.context[50] >= 25 > result.newest[50]
    assert result.found >= 27
    assert result.reachable == 30


async def test_most_of_what_is_sent_was_sent_before(tmp_path: Path) -> None:
    """Measured: 95 % over these 500 messages, with six summaries on the way and 27 steps an
    epoch."""
    async with living(tmp_path) as house:
        result = await replay(house, 30_000, 500)
    assert result.steps > 200
    assert result.summaries
    assert result.share > 0.9
    assert result.steps_an_epoch > 15
