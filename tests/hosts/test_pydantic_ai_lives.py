"""Random lives of an agent of Pydantic AI: after each turn that went well the session is what the
run's history says, and whatever the model is sent pairs calls with results. Runs where Pydantic AI
is installed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("pydantic_ai.capabilities", exc_type=ImportError)

from pydantic_ai import Agent, ModelRetry, capture_run_messages
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import (
    AgentInfo,
    DeltaThinkingPart,
    DeltaToolCall,
    FunctionModel,
)

from contextengine import AsyncClient, text_of
from contextengine.errors import SessionNotFound
from contextengine.naming import said
from contextengine.types import ROLE_ASSISTANT
from contextengine_pydantic_ai import Contextengine
from contextengine_pydantic_ai.history import read
from tests.hosts.gate import Gate, Way, gate
from tests.integration.harness import House, house, ref

SAME = ("yes", "go on", "yes")


class ModelDown(Exception):
    """The provider failed."""


class Life:
    """An agent, its caller and its model."""

    def __init__(self, seed: int, home: House, way: Gate) -> None:
        self.random, self.home, self.way = Random(seed), home, way
        self.numbers = count()
        self.history: list[ModelMessage] = []
        self.before: list[ModelMessage] = []
        """What the caller cut off at the beginning."""
        self.failing = False
        self.hanging: asyncio.Event | None = None
        self.log: list[str] = []
        self.begin()

    def begin(self) -> None:
        """A process of its own, which knows nothing of before."""
        self.client = AsyncClient(self.way.address, breaker=True)
        self.agent: Any = Agent(
            FunctionModel(self.model, stream_function=self.stream),
            instructions="Be careful.",
            capabilities=[Contextengine(self.client, window=2_000_000, patience=1.0)],
            retries=3,
        )
        self.agent.tool_plain(self.look)

    async def look(self, of: str) -> str:
        if self.hanging is not None and self.random.random() < 0.5:
            self.hanging.set()
            await asyncio.sleep(60)
        if self.random.random() < 0.2:
            raise ModelRetry(self.random.choice(("again", f"no {next(self.numbers)}")))
        return self.random.choice(("found", "", f"found {next(self.numbers)}"))

    def reply(self, messages: list[ModelMessage]) -> list[Any]:
        """What the model answers."""
        paired(messages)
        if self.failing and self.random.random() < 0.7:
            raise ModelDown
        parts: list[Any] = []
        if self.random.random() < 0.3:
            parts.append(ThinkingPart("hm", signature="s"))
        if self.random.random() < 0.55:
            again = self.random.random() < 0.3
            if self.random.random() < 0.3:
                parts.append(TextPart("I look"))
            for at in range(self.random.randint(1, 3)):
                name = f"call_{at if again else next(self.numbers)}"
                args = {"of": self.random.choice("ab")}
                if self.random.random() < 0.1:
                    args = {"wrong": "x"}
                parts.append(ToolCallPart("look", args, tool_call_id=name))
        else:
            parts.append(TextPart(self.random.choice(("done", f"answer {next(self.numbers)}"))))
        return parts

    async def model(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts = self.reply(messages)
        if self.hanging is not None and self.random.random() < 0.5:
            self.hanging.set()
            await asyncio.sleep(60)
        return ModelResponse(parts=parts)

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        for at, part in enumerate(self.reply(messages)):
            match part:
                case ThinkingPart():
                    yield {at: DeltaThinkingPart(content=part.content, signature="s")}
                case TextPart():
                    for piece in part.content.split(" "):
                        yield piece + " "
                        if self.hanging is not None and self.random.random() < 0.3:
                            self.hanging.set()
                            await asyncio.sleep(60)
                case ToolCallPart():
                    yield {
                        at: DeltaToolCall(
                            name=part.tool_name,
                            json_args=part.args_as_json_str(),
                            tool_call_id=part.tool_call_id,
                        )
                    }

    def words(self) -> Any:
        if self.random.random() < 0.1:
            return [
                "see",
                BinaryContent(
                    b"\x89PNG" + bytes([next(self.numbers) % 200]), media_type="image/png"
                ),
            ]
        return self.random.choice((*SAME, f"question {next(self.numbers)}"))

    async def turn(self) -> bool:
        """Whether it went well."""
        words = self.words()
        asked = {"message_history": self.history or None, "conversation_id": "talk"}
        kind = self.random.choice(("run", "run", "stream", "events", "iter"))
        self.log.append(f"{kind} {words!r} failing={self.failing} hang={self.hanging is not None}")
        match kind:
            case "run":
                result = await self.agent.run(words, **asked)
                self.history = result.all_messages()
            case "stream":
                async with self.agent.run_stream(words, **asked) as streamed:
                    leave = self.random.random() < 0.3
                    async for _ in streamed.stream_text(delta=True, debounce_by=None):
                        if leave:
                            break
                    self.log.append(f"left={leave}")
                    self.history = streamed.all_messages()
                # Results beside an answer are the caller's alone until it goes on.
                return not leave and isinstance(self.history[-1], ModelResponse)
            case "events":
                async with self.agent.run_stream_events(words, **asked) as events:
                    async for event in events:
                        if event.event_kind == "agent_run_result":
                            self.history = event.result.all_messages()
            case "iter":
                async with self.agent.iter(words, **asked) as run:
                    async for _ in run:
                        pass
                self.history = run.result.all_messages()
        return True

    async def live(self) -> None:
        for _ in range(14):
            self.edit()
            if self.random.random() < 0.1:
                await self.client.close()
                self.begin()
                self.log.append("begin")
            self.failing = self.random.random() < 0.15
            self.hanging = asyncio.Event() if self.random.random() < 0.15 else None
            away = self.random.random() < 0.12
            if away:
                self.log.append("away")
                self.way.turn(Way.CLOSED)
            well = await self.tried()
            if away:
                self.way.turn(Way.OPEN)
                await asyncio.sleep(0)
            if well and not away:
                await self.agrees()
            if self.random.random() < 0.3:
                # As callers keep it.
                raw = ModelMessagesTypeAdapter.dump_json(self.history)
                self.history = ModelMessagesTypeAdapter.validate_json(raw)
        await self.client.close()

    async def tried(self) -> bool:
        with capture_run_messages() as captured:
            try:
                if self.hanging is None:
                    return await self.turn()
                task = asyncio.ensure_future(self.turn())
                hung = asyncio.ensure_future(self.hanging.wait())
                await asyncio.wait([task, hung], return_when=asyncio.FIRST_COMPLETED)
                hung.cancel()
                if not task.done():
                    self.log.append("cancelled")
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task
                    keep = self.random.random() < 0.6
                else:
                    return await task
            except (ModelDown, UnexpectedModelBehavior) as error:
                self.log.append(f"failed {error!r}"[:200])
                keep = self.random.random() < 0.5
        if keep and captured:
            self.log.append("captured")
            self.history = list(captured)
        return False

    def edit(self) -> None:
        """What a caller does to the history that it keeps."""
        asked = [
            at
            for at, one in enumerate(self.history)
            if all(isinstance(part, UserPromptPart) for part in one.parts)
        ]
        if len(asked) < 2:
            return
        match self.random.choice(("",) * 9 + ("undo", "cut")):
            case "undo":
                at = self.random.choice(asked[1:][-3:])
                self.log.append(f"undo to {at} of {len(self.history)}")
                self.history = self.history[:at]
            case "cut":
                at = self.random.choice(asked[: len(asked) // 2 + 1])
                if len(self.history) - at > 5:
                    self.log.append(f"cut {at} of {len(self.history)}")
                    self.before += self.history[:at]
                    self.history = self.history[at:]

    async def agrees(self) -> None:
        wanted = [said(one) for one in read(self.history).kept]
        whole = [*(said(one) for one in read(self.before).kept), *wanted]
        for _ in range(60):  # what failed is stored beside the host
            rows = []
            with suppress(SessionNotFound):
                rows = await self.home.rows(ref("talk", agent="pydantic-ai"))
            found = [said(row.message) for row in rows if not row.retired_revision]
            if self.before and len(self.history) < 6 and found == wanted:
                self.before = []  # too short to be known: a conversation of its own
                return
            if found == whole:
                return
            await asyncio.sleep(0.05)
        assert found == whole, self.log


def paired(messages: list[ModelMessage]) -> None:
    """Each call has its result in what follows, and each result its call."""
    open_calls: list[str] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                open_calls.append(part.tool_call_id)
            elif isinstance(part, ToolReturnPart) or (
                isinstance(part, RetryPromptPart) and part.tool_name
            ):
                assert part.tool_call_id in open_calls, (part, messages)
                open_calls.remove(part.tool_call_id)
                assert "No result was recorded" not in str(part.content), messages
        if isinstance(message, ModelResponse):
            continue
        assert not open_calls, messages
    assert not isinstance(messages[-1], ModelResponse), messages


@pytest.mark.parametrize("seed", [2, 5])
async def test_the_session_is_what_the_history_says(tmp_path: Path, seed: int) -> None:
    async with house(tmp_path) as home, gate(home.app.address) as way:
        await Life(seed, home, way).live()


async def test_what_follows_a_run_that_failed_is_stored_once(tmp_path: Path) -> None:
    """Pydantic AI makes one request of two that follow each other, with the next run."""
    fails = [False, True, False, False]

    async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if fails.pop(0):
            raise ModelDown
        return ModelResponse(parts=[TextPart("done")])

    history: list[ModelMessage] = []
    async with house(tmp_path) as home:
        here = Contextengine(home.client, window=100_000)
        agent = Agent(FunctionModel(model), instructions="Be careful.", capabilities=[here])
        for words in ("one", "two", "three", "four"):
            with capture_run_messages() as captured, suppress(ModelDown):
                await agent.run(words, message_history=history, conversation_id="talk")
            history = list(captured)
        rows = await home.rows(ref("talk", agent="pydantic-ai"), include_retired=True)
    told = [text_of(row.message) for row in rows if row.message.role == ROLE_ASSISTANT]
    assert told == ["done"] * 3
