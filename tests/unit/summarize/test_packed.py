"""How messages go to the worker that summarizes them: in parts, between which the loop runs."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from typing import Any

from contextengine_server.summarize.extractive import summarizer
from contextengine_server.summarize.extractive.summarizer import ExtractiveSummarizer
from contextengine_server.summarize.request import SourceMessage, SummaryRequest, SummaryResult


class HereAndNow:
    """A pool that works in this process, and tells how much it was handed as objects."""

    def __init__(self) -> None:
        self.handed: list[int] = []

    async def run(
        self, tenant: str, function: Callable[..., SummaryResult], *given: Any
    ) -> SummaryResult:
        assert tenant == "tenant"
        parts, request = given[:2]
        assert not request.messages
        self.handed = [len(pickle.loads(part)) for part in parts]
        return function(*given)


async def test_messages_are_packed_in_parts_and_all_of_them_arrive() -> None:
    messages = tuple(
        SourceMessage(role="user", text=f"Word {number} of what was said.", sequence=number)
        for number in range(1, 101)
    )
    request = SummaryRequest(
        tenant="tenant", messages=messages, source_tokens=1_000, target_tokens=200
    )
    pool: Any = HereAndNow()
    turns, loop = [0], asyncio.get_running_loop()

    def turn() -> None:
        turns[0] += 1
        loop.call_soon(turn)

    loop.call_soon(turn)
    found = await ExtractiveSummarizer(pool, "o200k_base").summarize(request)
    assert turns[0] >= 4
    assert found == summarizer.extract_in_worker(request, "o200k_base")
    assert "of what was said" in found.text
    assert pool.handed == [32, 32, 32, 4]
