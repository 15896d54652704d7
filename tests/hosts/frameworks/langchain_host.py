"""An agent of LangChain's `create_agent` and one of LangGraph's `create_react_agent`, which talk to
a mock of OpenAI's chat on loopback and whose conversation a checkpointer keeps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, RemoveMessage
from langchain_core.tools import ToolException, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent
from pydantic import SecretStr

from contextengine import AsyncClient
from contextengine.types import SessionRef
from contextengine_langchain import ContextengineHooks, ContextengineMiddleware
from tests.hosts.upstream import Upstream, serving

from .brain import NOTHING, Brain, found
from .host import SYSTEM, WINDOW, Host, renamed

KEY = SecretStr("key")


@tool
def look_up(of: str) -> str:
    """Looks something up."""
    if of == NOTHING:
        raise ToolException("there is nothing")
    return found(of)


look_up.handle_tool_error = True


def texts(messages: Sequence[Any]) -> list[str]:
    """What the messages say, without instructions."""
    said = [one for one in messages if one.type != "system"]
    return [
        one.content if isinstance(one.content, str) else json.dumps(one.content)
        for one in said
        if one.content
    ]


class LangChainHost(Host):
    """The middleware in `create_agent`."""

    name = "langchain"

    def __init__(self, address: str, brain: Brain) -> None:
        super().__init__(address, brain)
        self.saver = InMemorySaver()
        self.thread = "thread-1"

    async def start(self) -> None:
        self.life = AsyncExitStack()
        base = await self.life.enter_async_context(serving(Upstream(self.brain.chat).application))
        service = await self.life.enter_async_context(self.client())
        model = ChatOpenAI(model="mock-1", base_url=f"{base}/v1", api_key=KEY, max_retries=0)
        self.agent: Any = self.made(service, model)

    def made(self, service: AsyncClient, model: ChatOpenAI) -> Any:
        """The agent."""
        return create_agent(
            model,
            [look_up],
            system_prompt=SYSTEM,
            middleware=[ContextengineMiddleware(service, window=WINDOW)],
            checkpointer=self.saver,
        )

    async def stop(self) -> None:
        await self.life.aclose()

    async def say(self, words: str) -> None:
        await self.agent.ainvoke({"messages": [HumanMessage(words)]}, self.run)

    async def transcript(self) -> list[str]:
        return texts(await self.messages())

    @property
    def ref(self) -> SessionRef:
        return SessionRef(agent_id="langchain", session_id=self.thread)

    async def undo(self) -> None:
        messages = await self.messages()
        last = max(at for at, one in enumerate(messages) if one.type == "human")
        gone = [RemoveMessage(id=str(one.id)) for one in messages[last:]]
        await self.agent.aupdate_state(self.run, {"messages": gone})

    async def rewrite(self) -> None:
        messages = []
        for message in await self.messages():
            told = message.model_dump()
            for detail in ("additional_kwargs", "response_metadata", "artifact"):
                told.pop(detail, None)
            messages.append(type(message)(**json.loads(renamed(json.dumps(told)))))
        await self.agent.aupdate_state(self.run, {"messages": messages})

    async def fork(self) -> None:
        messages = await self.messages()
        self.thread += "-fork"
        await self.agent.aupdate_state(self.run, {"messages": messages})

    async def messages(self) -> list[Any]:
        state = await self.agent.aget_state(self.run)
        found: list[Any] = state.values.get("messages", [])
        return found

    @property
    def run(self) -> Any:
        return {"configurable": {"thread_id": self.thread}}


class LangGraphHost(LangChainHost):
    """The hooks in `create_react_agent`."""

    name = "langgraph"

    def made(self, service: AsyncClient, model: ChatOpenAI) -> Any:
        hooks = ContextengineHooks(service, window=WINDOW)
        return create_react_agent(
            hooks.model(model),
            [look_up],
            prompt=SYSTEM,
            pre_model_hook=hooks.before_model,
            post_model_hook=hooks.after_model,
            checkpointer=self.saver,
        )
