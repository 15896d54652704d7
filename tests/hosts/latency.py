"""What a call costs more through the proxy than without it, against what Assemble costs by itself:
run by `make test-hosts`, and by no other test.

The service and the proxy are processes of their own, as they are for users; the agent and its
provider are in this one. Each turn is measured in all three ways before the next one, so that a
machine which is slower for a while is slower for all.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx2

from contextengine import AsyncClient, assistant, user
from contextengine.types import Budget, WindowBudget
from tests.acceptance.shell import serving
from tests.hosts.providers import Answer, Json
from tests.hosts.stage import apart
from tests.hosts.upstream import Upstream
from tests.hosts.upstream import serving as hosting

WINDOW = 32_000
THINKS_S = 0.05
"""What a model takes at least: what is recorded is recorded then."""


def answer(number: int, given: Json) -> Answer:
    """Says as much as a model does."""
    return Answer(f"Reply {number}: {'well ' * 150}")


def question(turn: int) -> str:
    return f"Question {turn}? {'please ' * 60}"


async def compared(turns: int) -> None:
    """Prints the figures of a conversation of so many turns."""
    took: list[list[float]] = [[], [], []]
    with tempfile.TemporaryDirectory() as scratch, serving(Path(scratch)) as server:
        async with (
            hosting(Upstream(answer).application) as there,
            apart(there, server.address, Path(scratch), "--window", f"*={WINDOW}") as (_, base),
            AsyncClient(server.address, retry_for=0) as client,
            aclosing(_talked(there)) as direct,
            aclosing(_talked(base)) as through,
            aclosing(_assembled(client)) as assembled,
        ):
            for _ in range(turns):
                for times, talk in zip(took, (direct, through, assembled), strict=True):
                    times.append(await anext(talk))
    later = [sorted(times[turns // 2 :]) for times in took]  # the longer ones
    for share, said in ((0.5, "half"), (0.1, "the quickest tenth")):
        plain, proxied, alone = (times[int(share * len(times))] * 1_000 for times in later)
        added = proxied - plain
        print(
            f"{turns} turns, {said} of the calls within: direct {plain:.1f} ms, through the proxy"
            f" {proxied:.1f} ms: {added:.1f} ms added, {added / alone:.2f} of Assemble's"
            f" {alone:.1f} ms"
        )


async def _talked(base: str) -> AsyncGenerator[float]:
    """The seconds of each turn."""
    talk: list[Any] = []
    async with httpx2.AsyncClient() as client:
        while True:
            talk.append({"role": "user", "content": question(len(talk) // 2)})
            body = json.dumps({"model": "m", "messages": talk}).encode()
            began = time.perf_counter()
            reply = await client.post(
                f"{base}/v1/chat/completions",
                content=body,
                headers={"x-contextengine-session": "talk"},
            )
            took = time.perf_counter() - began
            talk.append(reply.json()["choices"][0]["message"])
            await asyncio.sleep(THINKS_S)
            yield took


async def _assembled(client: AsyncClient) -> AsyncGenerator[float]:
    """The seconds of each Assemble of the same conversation, which is handed over as it grows."""
    session = client.session(agent_id="proxy", session_id="alone")
    budget = Budget(window=WindowBudget(window=WINDOW, system_prompt_tokens=0, tool_tokens=0))
    turn = 0
    while True:
        asked = user(question(turn))
        began = time.perf_counter()
        await session.assemble(ingest=[asked], budget=budget, model="m")
        took = time.perf_counter() - began
        await session.ingest(assistant(answer(turn, {}).words))
        await asyncio.sleep(THINKS_S)
        turn += 1
        yield took


if __name__ == "__main__":
    asyncio.run(compared(200))
