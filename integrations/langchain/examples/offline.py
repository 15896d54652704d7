"""A talk of forty turns, without a key: the model is a few lines of this file.

make run                                                # the service, in another terminal
python integrations/langchain/examples/offline.py
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver

from contextengine import AsyncClient
from contextengine_langchain import ContextengineMiddleware


class Counting(BaseChatModel):
    """Answers with the number of messages that it sees."""

    @property
    def _llm_type(self) -> str:
        return "counting"

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        """It calls none."""
        return self

    def _generate(self, messages: Sequence[BaseMessage], *_: Any, **more: Any) -> ChatResult:
        told = sum("trust=untrusted" in str(message.content) for message in messages)
        words = f"I see {len(messages)} messages, {told} of them summaries. " + "So it goes. " * 40
        return ChatResult(generations=[ChatGeneration(message=AIMessage(words))])


async def main() -> None:
    """Talks."""
    address = os.environ.get("CONTEXTENGINE_ADDRESS", "127.0.0.1:50051")
    async with AsyncClient(address, breaker=True) as client:
        agent: Any = create_agent(
            Counting(),
            middleware=[ContextengineMiddleware(client, window=18_000)],
            checkpointer=InMemorySaver(),
        )
        name = f"offline-{uuid.uuid4()}"
        thread: Any = {"configurable": {"thread_id": name}}
        kept = client.session(agent_id="langchain", session_id=name)
        for turn in range(40):
            asked = {"messages": [HumanMessage(f"Question {turn}: how goes it?")]}
            state = await agent.ainvoke(asked, thread)
            for _ in range(100):  # it summarizes meanwhile: a real model takes longer
                if not (await kept.status()).jobs:
                    break
                await asyncio.sleep(0.05)
            said = str(state["messages"][-1].content).split(". ")[0]
            print(turn, said, f"({len(state['messages'])} in the state)")


if __name__ == "__main__":
    asyncio.run(main())
