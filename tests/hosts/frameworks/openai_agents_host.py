"""An agent of the OpenAI Agents SDK, which talks to a mock of OpenAI Responses on loopback and
whose conversation the service keeps."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import openai
from agents import Agent, RunConfig, Runner, function_tool
from agents.models.openai_responses import OpenAIResponsesModel

from contextengine.types import SessionRef
from contextengine_openai_agents import ContextengineModel, ContextengineSession
from tests.hosts.upstream import Upstream, serving

from .brain import NOTHING, Brain, found
from .host import SYSTEM, WINDOW, Host


@function_tool
def look_up(of: str) -> str:
    """Looks something up."""
    if of == NOTHING:
        raise ValueError("there is nothing")
    return found(of)


class OpenAIAgentsHost(Host):
    """The session, and its filter for the model's input."""

    name = "openai-agents"
    forks = False
    keeps_list = False

    def __init__(self, address: str, brain: Brain) -> None:
        super().__init__(address, brain)
        self.said: list[tuple[str, list[str]]] = []
        self.life = AsyncExitStack()

    async def start(self) -> None:
        self.life = AsyncExitStack()
        base = await self.life.enter_async_context(serving(Upstream(self.brain.chat).application))
        model = openai.AsyncOpenAI(base_url=f"{base}/v1", api_key="key", max_retries=0)
        self.life.push_async_callback(model.close)
        service = await self.life.enter_async_context(self.client())
        self.session = ContextengineSession("case-1", service, window=WINDOW)
        self.agent = Agent(
            name="careful",
            instructions=SYSTEM,
            model=ContextengineModel(
                OpenAIResponsesModel(model="mock-1", openai_client=model), self.session
            ),
            tools=[look_up],
        )

    async def stop(self) -> None:
        await self.life.aclose()

    async def say(self, words: str) -> None:
        fit: Any = self.session.fit
        config = RunConfig(call_model_input_filter=fit, tracing_disabled=True)
        heard: list[str] = []
        self.said.append((words, heard))
        result = await Runner.run(self.agent, words, session=self.session, run_config=config)
        for item in result.new_items:
            given: Any = item.to_input_item()
            heard += [str(given["output"])] if "output" in given else []
            content = given.get("content") or []
            heard += [piece["text"] for piece in content]

    async def transcript(self) -> list[str]:
        return [text for words, heard in self.said for text in (words, *heard)]

    @property
    def ref(self) -> SessionRef:
        return SessionRef(agent_id="openai-agents", session_id="case-1")

    async def undo(self) -> None:
        self.said.pop()
        while (item := await self.session.pop_item()) is not None:
            if item.get("role") == "user":
                return
