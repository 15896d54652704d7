"""A talk with an agent of LangChain's, made up from a seed: what its user does, its model says and
its other middleware changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from itertools import count
from random import Random
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command

from contextengine.errors import SessionNotFound
from contextengine.naming import said
from contextengine_langchain.messages import kept
from tests.integration.harness import ref

MADE_UP = "No result was recorded"


class Down(Exception):
    """The provider or a tool failed."""


class Model(BaseChatModel):
    """A model that says what its talk has it say."""

    talk: Any

    @property
    def _llm_type(self) -> str:
        return "talk"

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self

    def _generate(self, messages: Any, *_: Any, **more: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.talk.reply(messages))])

    async def _agenerate(self, messages: Any, *_: Any, **more: Any) -> ChatResult:
        made = self._generate(messages)
        await self.talk.hang()
        return made

    def _stream(self, messages: Any, *_: Any, **more: Any) -> Iterator[ChatGenerationChunk]:
        yield from pieces(self.talk.reply(messages))

    async def _astream(self, messages: Any, *_: Any, **more: Any) -> AsyncIterator[Any]:
        for piece in pieces(self.talk.reply(messages)):
            yield piece
            await self.talk.hang()


def pieces(reply: AIMessage) -> Iterator[ChatGenerationChunk]:
    """A reply as it is streamed."""
    whole = isinstance(reply.content, str)
    for word in reply.content.split(" ") if isinstance(reply.content, str) else [reply.content]:
        text: Any = f"{word} " if whole else word
        yield ChatGenerationChunk(message=AIMessageChunk(text))
    calls: Any = [
        {"name": one["name"], "args": json.dumps(one["args"]), "id": one["id"], "index": at}
        for at, one in enumerate(reply.tool_calls)
    ]
    bad = [{"name": one["name"], "args": "{", "id": one["id"]} for one in reply.invalid_tool_calls]
    calls += [{**one, "index": 9} for one in bad]
    yield ChatGenerationChunk(message=AIMessageChunk("" if whole else [], tool_call_chunks=calls))


class Witness(AgentMiddleware[Any, Any, Any]):
    """Another middleware, in front of ours: changes now and then what the model is to see."""

    def __init__(self, talk: Talk) -> None:
        super().__init__()
        self.talk = talk

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(self.talk.asked(request))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(self.talk.asked(request))


class Talk:
    """A thread of an agent, its user and its model."""

    def __init__(self, life: Any, seed: str, agent_id: str, thread: str) -> None:
        self.life, self.random = life, Random(seed)
        self.agent_id, self.thread = agent_id, thread
        self.numbers = count()
        self.failing = False
        self.away = self.alone = False
        """Whether the service is away, or may not be back, so that the model is sent what the agent
        has."""
        self.hanging: asyncio.Event | None = None
        self.wanted: list[Any] = []
        self.log: list[str] = []
        self.summarized, self.held_up = self.chance(0.2), self.chance(0.3)
        self.saver = InMemorySaver()

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def begin(self, ours: Any) -> None:
        """An agent of a process of its own."""
        others: list[Any] = [Witness(self), ours]
        if self.summarized:
            writer: Any = Model(talk=Writer())
            short = SummarizationMiddleware(writer, trigger=("messages", 14), keep=("messages", 5))
            others.append(short)
        if self.held_up:
            others.append(HumanInTheLoopMiddleware(interrupt_on={"look": True}))
        look = StructuredTool.from_function(
            self.look, self.alook, name="look", description="Looks."
        )
        self.agent: Any = create_agent(
            Model(talk=self),
            [look],
            system_prompt="Be careful.",
            middleware=others,
            checkpointer=self.saver,
        )

    def look(self, of: str) -> Any:
        if self.chance(0.15):
            raise Down
        return self.random.choice(("found", "", f"found {next(self.numbers)}"))

    async def alook(self, of: str) -> Any:
        await self.hang()
        return self.look(of)

    async def hang(self) -> None:
        if self.hanging is not None and self.chance(0.4):
            self.hanging.set()
            await asyncio.sleep(60)

    def asked(self, request: Any) -> Any:
        """What the model is to see, by all but our middleware."""
        messages = list(request.messages)
        match self.random.choice(("",) * 6 + ("told", "behind", "edited")):
            case "told":
                messages.insert(0, HumanMessage(f"told {next(self.numbers)}"))
            case "behind":
                messages.append(HumanMessage(f"reminder {next(self.numbers)}"))
            case "edited":
                at = self.random.randrange(len(messages))
                if isinstance(messages[at], ToolMessage):
                    messages[at] = messages[at].model_copy(update={"content": "[cleared]"})
        self.wanted = messages
        return request.override(messages=messages)

    def reply(self, messages: list[Any]) -> AIMessage:
        """What the model answers."""
        found = [one for one in messages[1:] if MADE_UP not in str(one.content)]
        same = [id(one) for one in found] == [id(one) for one in self.wanted]
        assert same, told(self.wanted, found, self.log)
        assert lawful(messages) or self.alone, told(messages, [], self.log)
        if self.failing and self.chance(0.6):
            raise Down
        words: Any = self.random.choice(("done", "", f"answer {next(self.numbers)}"))
        if self.chance(0.2):
            thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
            search = {"type": "server_tool_use", "id": "s1", "name": "web", "input": {}}
            words = [thought, search, {"type": "text", "text": words or "so"}]
        if self.chance(0.05):
            bad = self.call(next(self.numbers), args="{", type="invalid_tool_call")
            return AIMessage(words, invalid_tool_calls=[bad])
        # Some providers count from the start again in each reply.
        first = next(self.numbers) * 10 if self.chance(0.7) else 0
        wanted = self.random.randint(1, 3) if self.chance(0.5) else 0
        return AIMessage(words, tool_calls=[self.call(first + at) for at in range(wanted)])

    def call(self, number: int, **more: Any) -> Any:
        return {
            "name": "look",
            "args": {"of": self.random.choice("ab")},
            "id": f"c{number}",
            **more,
        }

    def words(self) -> list[Any]:
        content: Any = self.random.choice(("yes", "go on", "", f"question {next(self.numbers)}"))
        if self.chance(0.1):
            url = f"data:image/png;base64,aGk{self.random.choice('gkos')}"
            content = [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": url}},
            ]
        return [HumanMessage(content)]

    async def do(self, name: str, *given: Any, **named: Any) -> Any:
        """Calls the agent, in a thread where it blocks."""
        if self.life.blocks:
            return await asyncio.to_thread(getattr(self.agent, name), *given, **named)
        return await getattr(self.agent, f"a{name}")(*given, **named)

    @property
    def config(self) -> Any:
        return {"configurable": {"thread_id": self.thread}, "recursion_limit": 60}

    async def run(self, given: Any, config: Any) -> bool:
        """Whether it went well."""
        if self.chance(0.5):
            await self.do("invoke", given, config)
        elif self.life.blocks:
            await asyncio.to_thread(list, self.agent.stream(given, config, stream_mode="messages"))
        else:
            leave = self.chance(0.1)
            events = self.agent.astream(given, config, stream_mode=["messages", "updates"])
            async for _ in events:
                if leave:
                    self.log.append("left")
                    await events.aclose()
                    return False
        return True

    async def turn(self) -> bool:
        """Whether it went well, to its end."""
        state = await self.do("get_state", self.config)
        given: Any = {"messages": self.words()}
        if state.interrupts and self.chance(0.8):
            given = Command(resume=self.decided(state))
        elif state.next and not state.interrupts and self.chance(0.5):
            given = None
        config = self.config
        if self.chance(0.06):
            config["recursion_limit"] = 2
        self.log.append(f"{given} {config} {state.next}")
        if not await self.run(given, config):
            return False
        while (state := await self.do("get_state", self.config)).interrupts:
            if self.chance(0.2):
                self.log.append("waits")
                return False
            if not await self.run(Command(resume=self.decided(state)), self.config):
                return False
        return not state.next

    def decided(self, state: Any) -> Any:
        """What a person says of the calls that wait."""
        made = {}
        for stop in state.interrupts:
            edited = {"name": "look", "args": {"of": "c"}}
            ways: list[Any] = [
                {"type": "approve"},
                {"type": "edit", "edited_action": edited},
                {"type": "reject", "message": f"no {next(self.numbers)}"},
            ]
            asked = stop.value["action_requests"]
            made[stop.id] = {"decisions": [self.random.choice(ways) for _ in asked]}
        return made

    async def tried(self) -> bool:
        try:
            if self.hanging is None:
                return await self.turn()
            task = asyncio.ensure_future(self.turn())
            hung = asyncio.ensure_future(self.hanging.wait())
            await asyncio.wait([task, hung], return_when=asyncio.FIRST_COMPLETED)
            hung.cancel()
            if task.done():
                return await task
            self.log.append("cancelled")
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        except (Down, GraphRecursionError) as error:
            self.log.append(f"failed {error!r}")
        return False

    async def edit(self) -> None:
        """What a user or their program does to the state between turns."""
        state = await self.do("get_state", self.config)
        if not state.values or state.next:
            return
        messages = state.values["messages"]
        at = self.random.randrange(len(messages)) if messages else 0
        done: list[Any] = []
        way = self.random.choice(
            ("",) * 6 + ("change", "remove", "undo", "cut", "room", "travel", "anew", "again")
        )
        match way if len(messages) > 3 else "":
            case "change":
                changed = f"changed {next(self.numbers)}"
                done = [messages[at].model_copy(update={"content": changed})]
            case "remove" if not isinstance(messages[at], ToolMessage):
                # As programs do: a call with its results.
                done = [RemoveMessage(id=str(messages[at].id))]
                for one in messages[at + 1 :]:
                    if not isinstance(one, ToolMessage):
                        break
                    done.append(RemoveMessage(id=str(one.id)))
            case "undo" | "cut" | "room":
                starts = [at for at, one in enumerate(messages) if isinstance(one, HumanMessage)]
                if starts[1:]:
                    at = self.random.choice(starts[1:])
                    gone = {"undo": messages[at:], "cut": messages[:at], "room": messages[1:at]}[
                        way
                    ]
                    if way != "room" or isinstance(messages[0], HumanMessage):
                        done = [RemoveMessage(id=str(one.id)) for one in gone]
            case "travel":
                history = [one async for one in self.agent.aget_state_history(self.config)]
                past = [one for one in history if not one.next and one.values.get("messages")]
                if past:
                    then = self.random.choice(past)
                    self.log.append(f"travel to {len(then.values['messages'])}")
                    await self.do("update_state", then.config, {"messages": []}, as_node="model")
            case "anew":
                self.log.append("deleted")
                self.saver.delete_thread(self.thread)
            case "again":
                done = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *messages]
        if done:
            self.log.append(f"{way} {at} of {len(messages)}")
            await self.do("update_state", self.config, {"messages": done})

    async def step(self, away: bool) -> None:
        self.alone = away or self.away
        self.away = away
        await self.edit()
        self.failing = self.chance(0.12)
        self.hanging = asyncio.Event() if not self.life.blocks and self.chance(0.12) else None
        if await self.tried() and not away:
            await self.agrees()

    async def agrees(self) -> None:
        state = await self.do("get_state", self.config)
        messages = state.values["messages"]
        assert not [one for one in messages if str(one.id).startswith("ce:")]
        wanted = [said(one) for one in kept(messages)]
        for _ in range(60):  # what failed is stored beside the host
            rows = []
            with suppress(SessionNotFound):
                rows = await self.life.home.rows(ref(self.thread, agent=self.agent_id))
            rows = [row for row in rows if not row.retired_revision]
            found = [said(row.message) for row in rows]
            if found == wanted:
                return
            await asyncio.sleep(0.05)
        texts = [said(row.message)[:4] + str(row.message.parts)[:60] for row in rows]
        raise AssertionError(told(messages, texts, self.log))


def told(messages: list[Any], found: list[Any], log: list[str]) -> str:
    """What is wrong, to be read."""
    lists = [
        [f"{getattr(one, 'type', '')} {one!r}"[:200] for one in some] for some in (messages, found)
    ]
    return "\n".join(["WANTED", *lists[0], "FOUND", *lists[1], "LOG", *log])


class Writer:
    """Writes LangChain's own summaries."""

    def reply(self, messages: list[Any]) -> AIMessage:
        return AIMessage(f"summary of {len(str(messages))}")

    async def hang(self) -> None:
        pass


def lawful(messages: list[Any]) -> bool:
    """Whether each call has its result in what follows, and each result its call."""
    waiting: list[Any] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                return False
            waiting.remove(message.tool_call_id)
            continue
        if waiting:
            return False
        if isinstance(message, AIMessage):
            calls = (*message.tool_calls, *message.invalid_tool_calls)
            waiting = [one["id"] for one in calls]
    return not waiting
