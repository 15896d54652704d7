"""A talk of forty turns, without a key: the model is a few lines of this file.

make run                                                # the service, in another terminal
python integrations/pydantic-ai/examples/offline.py
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Sequence
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from contextengine import AsyncClient
from contextengine_pydantic_ai import Contextengine


def counting(messages: Sequence[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Answers with the number of messages that it sees."""
    told = sum("trust=untrusted" in str(message) for message in messages)
    words = f"I see {len(messages)} messages, {told} of them summaries. " + "So it goes. " * 40
    return ModelResponse(parts=[TextPart(words)])


async def main() -> None:
    """Talks."""
    address = os.environ.get("CONTEXTENGINE_ADDRESS", "127.0.0.1:50051")
    async with AsyncClient(address, breaker=True) as client:
        keeper = Contextengine(client, window=18_000)
        agent: Any = Agent(FunctionModel(counting), capabilities=[keeper])
        history: list[ModelMessage] = []
        conversation = f"offline-{uuid.uuid4()}"
        kept = client.session(agent_id="pydantic-ai", session_id=conversation)
        for turn in range(40):
            result = await agent.run(
                f"Question {turn}: how goes it?",
                message_history=history,
                conversation_id=conversation,
            )
            history = result.all_messages()
            for _ in range(100):  # it summarizes meanwhile: a real model takes longer
                if not (await kept.status()).jobs:
                    break
                await asyncio.sleep(0.05)
            print(turn, result.output.split(". ")[0], f"({len(history)} in the history)")


if __name__ == "__main__":
    asyncio.run(main())
