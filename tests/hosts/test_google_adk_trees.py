"""Random lives of trees of agents of Google's Agent Development Kit: each agent is shown what the
kit would show it, to the letter, and what each was shown and said is what its session holds. Runs
where the kit is installed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("google.adk.plugins", exc_type=ImportError)

from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App, ResumabilityConfig
from google.adk.apps.app import EventsCompactionConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.events import Event, EventActions
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import LongRunningFunctionTool
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from contextengine import AsyncClient
from contextengine.errors import SessionNotFound
from contextengine.naming import said
from contextengine_google_adk import ContextenginePlugin
from contextengine_google_adk.contents import kept
from contextengine_google_adk.plugin import _session_of
from tests.integration.harness import House, house, ref

ABSENT = "No result was recorded"
ASIDE = "Read this:"
REACHED = {
    "root": ["helper", "other"],
    "helper": ["root", "deeper", "other"],
    "other": ["root", "helper"],
    "deeper": ["helper"],
}
"""Which agents each may transfer to."""
APP, USER, TALK = "trees", "ann", "talk"


def told(contents: Sequence[types.Content]) -> list[Any]:
    """Contents as they go to the provider."""
    return [content.model_dump(mode="json", exclude_none=True) for content in contents]


def given(contents: Sequence[types.Content]) -> list[Any]:
    """Contents without the results that the service shows for calls that have none: the kit sends
    such calls where one of several is waited for, and providers refuse them."""
    said: list[Any] = []
    behind = False
    for content in told(contents):
        parts = [part for part in content["parts"] if ABSENT not in str(part)]
        answers = any("function_response" in part for part in content["parts"])
        assert not (answers and behind), "results of one step stand in one content"
        behind = answers
        if parts:
            said.append({**content, "parts": parts})
    return said


class Model(BaseLlm):  # type: ignore[misc]
    """A model that says what the life has it say."""

    life: Any = None
    of: str = ""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        await asyncio.sleep(0)
        parts = self.life.reply(self.of, llm_request)
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=1_000)
        yield LlmResponse(
            content=types.Content(role="model", parts=parts), usage_metadata=usage, partial=False
        )


def beside(content: types.Content) -> bool:
    """Whether the kit puts it into one request alone."""
    text = (content.parts or [types.Part()])[0].text or ""
    return text.startswith((ASIDE, "The text between <<<BEGIN_SYSTEM", "The following content is"))


class Before(BasePlugin):  # type: ignore[misc]
    """What the kit would send, had it no other plugin."""

    def __init__(self, life: Life) -> None:
        super().__init__(name="before")
        self.life = life

    async def before_model_callback(
        self, *, callback_context: Any, llm_request: LlmRequest
    ) -> None:
        self.life.sent[id(llm_request)] = told(llm_request.contents)
        said = [one for one in llm_request.contents if not beside(one)]
        self.life.lists[_session_of(callback_context)] = said

    async def after_model_callback(
        self, *, callback_context: Any, llm_response: LlmResponse
    ) -> None:
        if not any(part.function_call for part in llm_response.content.parts):
            self.life.lists[_session_of(callback_context)].append(llm_response.content)


class Life:
    """An app whose agents are a tree."""

    def __init__(self, seed: int, home: House, kind: str) -> None:
        self.random, self.home, self.kind = Random(seed), home, kind
        self.numbers = count()
        self.sent: dict[int, Any] = {}
        self.lists: dict[str, list[types.Content]] = {}
        self.waits: list[types.FunctionCall] = []
        self.calls = 0
        self.names: set[str] = set()
        self.log: list[str] = []
        self.sessions = InMemorySessionService()
        self.client = AsyncClient(home.app.address, breaker=True)
        root, more = getattr(self, kind)()
        plugin = ContextenginePlugin(self.client, window=2_000_000, patience=5.0)
        app = App(name=APP, root_agent=root, plugins=[Before(self), plugin], **more)
        self.runner = Runner(app=app, session_service=self.sessions)

    def agent(self, name: str, **more: Any) -> LlmAgent:
        tools = [*more.pop("tools", ()), self.look]
        self.names.add(name)
        model = Model(model="mock", life=self, of=name)
        given = {"instruction": f"You are {name}.", "description": name, **more}
        return LlmAgent(name=name, model=model, tools=tools, **given)

    def sequence(self) -> Any:
        both = ParallelAgent(name="both", sub_agents=[self.agent("left"), self.agent("right")])
        steps = [self.agent("first", output_key="first"), both, self.agent("last")]
        return SequentialAgent(name="root", sub_agents=steps), {}

    def loop(self) -> Any:
        return LoopAgent(
            name="root", max_iterations=2, sub_agents=[self.agent("writer"), self.agent("critic")]
        ), {}

    def tool(self) -> Any:
        helper = AgentTool(agent=self.agent("helper"))
        return self.agent("root", tools=[helper]), {}

    def single(self) -> Any:
        helper = self.agent("helper", mode="single_turn", disallow_transfer_to_parent=True)
        return self.agent("root", sub_agents=[helper]), {}

    def task(self) -> Any:
        helper = self.agent("helper", mode="task")
        return self.agent("root", sub_agents=[helper]), {}

    def transfer(self) -> Any:
        deeper = self.agent("deeper")
        return self.agent(
            "root", sub_agents=[self.agent("helper", sub_agents=[deeper]), self.agent("other")]
        ), {}

    def compacted(self) -> Any:
        summarizer = LlmEventSummarizer(llm=Model(model="mock", life=self, of="summarizer"))
        config = EventsCompactionConfig(
            summarizer=summarizer, compaction_interval=2, overlap_size=1
        )
        return self.agent("root"), {"events_compaction_config": config}

    def tokens(self) -> Any:
        summarizer = LlmEventSummarizer(llm=Model(model="mock", life=self, of="summarizer"))
        config = EventsCompactionConfig(
            summarizer=summarizer, token_threshold=900, event_retention_size=5
        )
        return self.agent("root"), {"events_compaction_config": config}

    def static(self) -> Any:
        return self.agent("root", static_instruction="Constant.", instruction="It is {first?}."), {}

    def alone(self) -> Any:
        return self.agent("root", include_contents="none"), {}

    def long(self) -> Any:
        return self.agent("root", tools=[LongRunningFunctionTool(func=self.approve)]), {
            "resumability_config": ResumabilityConfig(is_resumable=self.random.random() < 0.5)
        }

    def callbacks(self) -> Any:
        def before(callback_context: Any, llm_request: LlmRequest) -> LlmResponse | None:
            roll = self.random.random()
            if roll < 0.2:
                parts = [types.Part(text=f"short {next(self.numbers)}")]
                return LlmResponse(content=types.Content(role="model", parts=parts))
            return None

        def after(callback_context: Any, llm_response: LlmResponse) -> LlmResponse | None:
            if self.random.random() < 0.3:
                parts = [types.Part(text=f"changed {next(self.numbers)}")]
                return LlmResponse(content=types.Content(role="model", parts=parts))
            return None

        return self.agent("root", before_model_callback=before, after_model_callback=after), {}

    async def look(self, of: str) -> dict[str, Any]:
        """Looks something up."""
        return {"output": f"found {next(self.numbers)}"}

    def approve(self, of: str) -> dict[str, Any] | None:
        """Asks a person."""
        return self.random.choice(({"status": "pending"}, None))

    def reply(self, of: str, request: LlmRequest) -> list[types.Part]:
        """What a model answers."""
        if of == "summarizer":
            return [types.Part(text=f"summary {next(self.numbers)}")]
        contents = request.contents
        wanted = self.sent.pop(id(request))
        assert given(contents) == wanted, (of, self.log, told(contents), wanted)
        self.calls += 1
        if self.random.random() < 0.6 and self.calls < 12:
            names = sorted(set(request.tools_dict) - {"finish_task"})
            called = []
            for _ in range(self.random.choice((1, 1, 2, 3))):
                name = self.random.choice(names)
                if name == "transfer_to_agent":
                    near = [one for one in REACHED[of] if one in self.names]
                    args = {"agent_name": self.random.choice(near)}
                    called = [types.Part(function_call=types.FunctionCall(name=name, args=args))]
                    break
                key = "of" if name in ("look", "approve") else "request"
                args = {key: self.random.choice(("a", "b"))}
                called.append(types.Part(function_call=types.FunctionCall(name=name, args=args)))
            return called
        if "finish_task" in request.tools_dict and self.random.random() < 0.7:
            return [
                types.Part(
                    function_call=types.FunctionCall(name="finish_task", args={"result": "r"})
                )
            ]
        return [types.Part(text=self.random.choice(("done", f"answer {next(self.numbers)}")))]

    async def turn(self, words: types.Content) -> None:
        self.calls = 0
        config = None
        if self.kind == "static" and self.random.random() < 0.3:
            text = types.Part(text=f"{ASIDE} {next(self.numbers)}")
            config = RunConfig(model_input_context=[types.Content(role="user", parts=[text])])
        async for event in self.runner.run_async(
            user_id=USER, session_id=TALK, new_message=words, run_config=config
        ):
            assert not event.error_code, event.error_message
            for call in event.get_function_calls():
                if call.id in (event.long_running_tool_ids or ()):
                    self.waits.append(call)

    async def live(self) -> None:
        await self.sessions.create_session(app_name=APP, user_id=USER, session_id=TALK)
        for turn in range(8):
            if self.waits and self.random.random() < 0.6:
                call = self.waits.pop(self.random.randrange(len(self.waits)))
                answer = types.FunctionResponse(
                    id=call.id, name=call.name, response={"status": f"yes {next(self.numbers)}"}
                )
                words = types.Content(role="user", parts=[types.Part(function_response=answer)])
                self.log.append(f"result of {call.id}")
            else:
                text = self.random.choice(("go on", f"question {turn}"))
                words = types.Content(role="user", parts=[types.Part(text=text)])
                self.log.append(text)
            if self.random.random() < 0.3:
                await self.stated()
            await self.turn(words)
            await self.agrees()
        await self.runner.close()
        await self.client.close()

    async def stated(self) -> None:
        """An event that changes the state alone."""
        session = await self.sessions.get_session(app_name=APP, user_id=USER, session_id=TALK)
        assert session is not None
        actions = EventActions(state_delta={"first": str(next(self.numbers))})
        await self.sessions.append_event(session, Event(author="system", actions=actions))

    async def agrees(self) -> None:
        for name, contents in self.lists.items():
            wanted = [said(one) for one in kept(contents)]
            found: list[str] = []
            for _ in range(60):
                rows = []
                with suppress(SessionNotFound):
                    rows = await self.home.rows(ref(name, agent="google-adk"))
                found = [said(row.message) for row in rows if not row.retired_revision]
                if found == wanted:
                    break
                await asyncio.sleep(0.05)
            assert found == wanted, (name, self.log)


KINDS = (
    "sequence",
    "loop",
    "tool",
    "single",
    "task",
    "transfer",
    "compacted",
    "tokens",
    "static",
    "alone",
    "long",
    "callbacks",
)


@pytest.mark.parametrize(("kind", "seed"), [*((kind, 0) for kind in KINDS), ("tokens", 8)])
async def test_each_agent_of_a_tree_is_shown_what_the_kit_would_show_it(
    tmp_path: Path, kind: str, seed: int
) -> None:
    async with house(tmp_path) as home:
        await Life(seed, home, kind).live()


async def test_an_agent_that_works_for_another_twice_at_once_has_two_conversations(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as home:
        life = Life(0, home, "single")
        asked = [
            types.Part(function_call=types.FunctionCall(name="helper", args={"request": name}))
            for name in ("one", "two")
        ]

        def reply(of: str, request: LlmRequest) -> list[types.Part]:
            begun = of == "root" and len(request.contents) == 1
            return asked if begun else [types.Part(text=f"{of} is done")]

        life.reply = reply  # type: ignore[method-assign]
        await life.sessions.create_session(app_name=APP, user_id=USER, session_id=TALK)
        await life.turn(types.Content(role="user", parts=[types.Part(text="Go.")]))
        await life.agrees()
        helped = [one for name, one in life.lists.items() if "helper" in name]
        assert sorted(str(told(one[:1])).count("one") for one in helped) == [0, 1]
