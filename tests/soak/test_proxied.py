"""Agents behind the proxy, many of them, with the SDKs of OpenAI and Anthropic: they ask again for
what they did not like, go back and say other things, branch, fold what is old into words of their
own, and meet failures of the provider and of the service.

Whatever they do, each is shown what it said last, no call is parted from its result, nobody is
shown what another said, and at last its session holds its list.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from starlette.responses import JSONResponse

from contextengine import Message
from contextengine import name_by_content as name
from tests.hosts.gate import Gate, Way, gate
from tests.hosts.providers import Answer, Json
from tests.hosts.sdk_hosts import Agent, AnthropicAgent, ChatAgent, ResponsesAgent
from tests.hosts.stage import Stage, proxied, soon, staged
from tests.integration.harness import ref

KINDS: list[Any] = [ChatAgent, ResponsesAgent, AnthropicAgent]
STEPS = 40
FOLDED = "Summary of what is old"


class Life:
    """An agent at random."""

    def __init__(self, agent: Agent, label: str, chance: random.Random) -> None:
        self.agent, self.label, self.random = agent, label, chance
        self.serial = 0
        self.folded = False
        """It has folded what is old: its session holds more than its list."""

    def words(self) -> str:
        self.serial += 1
        if self.random.random() < 0.15:
            return "continue"
        return f"{self.label} question {self.serial} {'please ' * self.random.choice((3, 60, 300))}"

    async def say(self) -> None:
        await self.agent.say(self.words())

    def starts(self) -> list[int]:
        """Where its turns begin."""
        found = []
        for at, one in enumerate(self.agent.messages):
            asked = isinstance(one, dict) and one.get("role") == "user"
            if asked and isinstance(one.get("content"), str):
                found.append(at)
        return found

    async def regenerate(self) -> None:
        """The last turn again, as it was asked."""
        at = self.starts()[-1]
        asked = self.agent.messages[at]["content"]
        del self.agent.messages[at:]
        await self.agent.say(asked)

    async def edit(self) -> None:
        """Goes back some turns and says another thing."""
        del self.agent.messages[self.random.choice(self.starts()[-4:]) :]
        await self.say()

    async def fold(self) -> None:
        """Older turns become words of its own."""
        starts = self.starts()
        if len(starts) > 5:
            kept = self.random.choice(starts[3:-1])
            first = 1 if isinstance(self.agent, ChatAgent) else 0
            told = {"role": "user", "content": f"{FOLDED} {self.serial}: {self.label} was busy."}
            self.agent.messages[first:kept] = [told]
            self.folded = True
        await self.say()

    async def give_up(self) -> None:
        """Breaks a turn off, whatever is on its way; keeps what was asked, or takes it back."""
        turn = asyncio.create_task(self.say())
        await asyncio.sleep(self.random.choice((0.002, 0.01, 0.02, 0.05)))
        turn.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await turn
        if turn.cancelled():
            del self.agent.messages[self.starts()[-1] + self.random.randint(0, 1) :]
            if isinstance(self.agent, AnthropicAgent):
                self.agent.results = []

    async def tries(self, what: str) -> bool:
        """Does it. False: the provider failed, and the turn is taken back."""
        try:
            await getattr(self, what)()
        except (openai.APIStatusError, anthropic.APIStatusError):
            del self.agent.messages[self.starts()[-1] :]
            if isinstance(self.agent, AnthropicAgent):
                self.agent.results = []
            return False
        return True


def said(messages: Sequence[Message]) -> list[str]:
    """What tells each message from others, but for the words into which an agent folded others:
    where summaries stand in their place they come last."""
    named = [(name([one])[0], str(one.parts)) for one in messages]
    return [one for one, parts in named if FOLDED not in parts]


def broken(body: Json) -> list[str]:
    """Calls and results that do not belong together, of any provider's list."""
    listed = body.get("messages") or body["input"]
    waiting: set[str] = set()
    wrong = []
    for one in listed:
        results = set(_results(one))
        if waiting and not results and one.get("type") != "function_call":
            wrong.append(f"{sorted(waiting)} stand open before {str(one)[:80]}")
            waiting = set()
        if results - waiting:
            wrong.append(f"{sorted(results - waiting)} answer nothing")
        waiting -= results
        waiting |= set(_calls(one))
    return wrong + [f"{sorted(waiting)} stand open"] * bool(waiting)


def _calls(one: Json) -> Iterator[str]:
    if one.get("type") == "function_call":
        yield one["call_id"]
    for call in one.get("tool_calls") or ():
        yield call["id"]
    if isinstance(one.get("content"), list):
        yield from (part["id"] for part in one["content"] if part["type"] == "tool_use")


def _results(one: Json) -> Iterator[str]:
    if one.get("type") == "function_call_output":
        yield one["call_id"]
    if one.get("role") == "tool":
        yield one["tool_call_id"]
    if isinstance(one.get("content"), list):
        for part in one["content"]:
            if part["type"] == "tool_result":
                yield part["tool_use_id"]


@pytest.mark.parametrize("seed", range(24))
async def test_agents_behind_the_proxy(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    kind = KINDS[seed % 3]
    named = chance.random() < 0.5

    def answer(number: int, given: Json) -> Any:
        if chance.random() < 0.03:
            return JSONResponse({"error": {"message": "overloaded", "type": "x"}}, 503)
        last = (given.get("messages") or given["input"])[-1]
        asked = last.get("role") == "user" and isinstance(last.get("content"), str)
        if asked and chance.random() < 0.4:
            calls = [{"of": f"{number}-{at}"} for at in range(chance.randint(1, 3))]
            return Answer("Let me see." * chance.randint(0, 1), calls=calls)
        return Answer(f"Answer {number}: {'well ' * chance.choice((3, 60, 200))}")

    async with (
        staged(tmp_path, answer) as stage,
        gate(stage.home.app.address) as door,
        proxied(stage.home, stage.there, address=door.address, patience=0.5) as (_, base),
    ):
        lives = [
            Life(
                kind(base, stream=chance.random() < 0.5, session=f"talk{number}" * named),
                f"L{number}x",
                chance,
            )
            for number in range(2)
        ]
        happened = await played(stage, door, lives, chance)
        for life in lives:
            if life.starts():
                await at_last(stage, life, happened)
            await life.agent.close()


async def played(stage: Stage, door: Gate, lives: list[Life], chance: random.Random) -> list[str]:
    """What happened."""
    happened: list[str] = []
    names = ["say"] * 6 + ["regenerate", "edit", "fold", "away", "back", "forget"]
    names += ["give_up"] * 3
    for _ in range(STEPS):
        life, what = chance.choice(lives), chance.choice(names)
        happened.append(f"{life.label} {what}")
        match what:
            case "away":
                door.turn(Way.CLOSED)
            case "back":
                door.turn(Way.OPEN)
            case "forget":
                stage.home.forget()
            case _:
                seen = len(stage.upstream.seen)
                if not await life.tries(what if life.starts() else "say"):
                    happened.append("failed")
                for one in stage.upstream.seen[seen:]:
                    assert broken(one.json) == [], happened
                    # What was given up may come behind what another says.
                    heard = [who for who in lives if f"{who.label} question" in one.body.decode()]
                    assert len(heard) <= 1, happened
    door.turn(Way.OPEN)
    return happened


async def at_last(stage: Stage, life: Life, happened: list[str]) -> None:
    """The agent says one thing more, and its session holds its list."""
    while not await life.tries("say"):
        pass
    listed = life.agent.read()

    async def holds() -> bool:
        for one in await stage.sessions():
            rows = await stage.home.rows(ref(one, agent="proxy"))
            stored = said([row.message for row in rows])
            if stored[-len(said(listed)) :] == said(listed):
                return life.folded or len(rows) == len(listed)
        return False

    try:
        await soon(holds)
    except TimeoutError:
        pytest.fail(f"{happened}: {len(listed)} of {life.label} are in no session")
