"""What a call costs more through the proxy than without it, against what Assemble costs by itself:
run by `make test-hosts`, and by no other test.

All of it runs in one process, so the times hold the work of both sides; the median of each over the
same conversation is what is compared.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2

from contextengine import assistant, user
from contextengine.types import Budget, WindowBudget
from tests.hosts.stage import Stage, staged
from tests.hosts.upstream import Answer, Json

WINDOW = 32_000


def answer(number: int, given: Json) -> Answer:
    """Says as much as a model does."""
    return Answer(f"Reply {number}: {'well ' * 150}")


async def compared(turns: int) -> None:
    """Prints the figures of a conversation of so many turns."""
    with tempfile.TemporaryDirectory() as scratch:
        async with staged(Path(scratch), answer, WINDOW) as stage:
            direct = await _talked(stage, stage.there, turns)
            through = await _talked(stage, stage.base, turns)
            assembled = await _assembled(stage, turns)
    half = turns // 2  # the longer ones
    plain, proxied, alone = (
        statistics.median(times[half:]) * 1_000 for times in (direct, through, assembled)
    )
    added = proxied - plain
    print(
        f"{turns} turns: direct {plain:.1f} ms, through the proxy {proxied:.1f} ms: {added:.1f} ms"
        f" added, {added / alone:.2f} of Assemble's {alone:.1f} ms"
    )


async def _talked(stage: Stage, base: str, turns: int) -> list[float]:
    talk: list[Any] = []
    took = []
    async with httpx2.AsyncClient() as client:
        for turn in range(turns):
            talk.append({"role": "user", "content": f"Question {turn}? {'please ' * 60}"})
            body = json.dumps({"model": "m", "messages": talk}).encode()
            began = time.perf_counter()
            reply = await client.post(
                f"{base}/v1/chat/completions",
                content=body,
                headers={"x-contextengine-session": "talk"},
            )
            took.append(time.perf_counter() - began)
            talk.append(reply.json()["choices"][0]["message"])
            await asyncio.sleep(0.02)  # a model thinks longer; what is recorded is recorded then
    return took


async def _assembled(stage: Stage, turns: int) -> list[float]:
    session = stage.home.client.session(agent_id="proxy", session_id="alone")
    budget = Budget(window=WindowBudget(window=WINDOW, system_prompt_tokens=0, tool_tokens=0))
    took = []
    for turn in range(turns):
        asked = user(f"Question {turn}? {'please ' * 60}")
        began = time.perf_counter()
        await session.assemble(ingest=[asked], budget=budget, model="m")
        took.append(time.perf_counter() - began)
        await session.ingest(assistant(answer(turn, {}).words))
        await asyncio.sleep(0.02)
    return took


if __name__ == "__main__":
    asyncio.run(compared(200))
