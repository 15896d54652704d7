"""Random lives of LangChain's agents: after each turn that went well the session is what the
graph's state says, and whatever a model is sent is what the agent would send it by itself, lawful.
Runs where LangChain is installed. `CONTEXTENGINE_LIVES` says which lives: `0-99`, say."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("langchain.agents")


from contextengine import AsyncClient, Client
from contextengine_langchain import ContextengineMiddleware
from tests.hosts.gate import Gate, Way, gate
from tests.hosts.langchain_talk import Talk
from tests.integration.harness import House, house

FIRST, _, LAST = os.environ.get("CONTEXTENGINE_LIVES", "").partition("-")
LIVES = range(int(FIRST), int(LAST or FIRST) + 1) if FIRST else (0, 4)
TALKS = (("langchain", "t0"), ("langchain", "t1"), ("other", "t0"))


class Life:
    """A process after the other, each with the same threads."""

    def __init__(self, seed: int, home: House, way: Gate) -> None:
        self.random, self.home, self.way = Random(seed), home, way
        self.talks = [Talk(self, f"{seed}-{one}", *one) for one in TALKS]
        self.blocks = False
        self.begin()

    def begin(self) -> None:
        """A process of its own, which knows nothing of before."""
        self.blocks = self.random.random() < 0.4
        make: Any = Client if self.blocks else AsyncClient
        self.client = make(self.way.address, breaker=True, retry_for=0)
        made = {
            agent: ContextengineMiddleware(
                self.client, agent_id=agent, window=2_000_000, patience=20.0
            )
            for agent, _ in TALKS
        }
        for talk in self.talks:
            talk.begin(made[talk.agent_id])
            talk.log.append(f"begin {self.blocks}")

    async def close(self) -> None:
        closed = self.client.close()
        if closed is not None:
            await closed

    async def live(self, rounds: int) -> None:
        for _ in range(rounds):
            if self.random.random() < 0.15:
                await self.close()
                self.begin()
            away = self.random.random() < 0.12
            if away:
                self.way.turn(Way.CLOSED)
            await asyncio.gather(*(talk.step(away) for talk in self.talks))
            if away:
                self.way.turn(Way.OPEN)
        await self.close()


@pytest.mark.parametrize("seed", LIVES)
async def test_the_session_is_what_the_state_says(tmp_path: Path, seed: int) -> None:
    async with house(tmp_path) as home, gate(home.app.address) as way:
        await Life(seed, home, way).live(10)
