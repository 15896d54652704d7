"""A talk of forty turns, without a key: the model is a few lines of this file.

make run                                                  # the service, in another terminal
python integrations/openai-agents/examples/offline.py
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from contextengine import AsyncClient
from contextengine_openai_agents import ContextengineSession


class Counting(Model):
    """Answers with the number of items that it sees."""

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> Any:
        told = sum("trust=untrusted" in str(item) for item in input)
        words = f"I see {len(input)} items, {told} of them summaries. " + "So it goes. " * 40
        text = ResponseOutputText(text=words, type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id="msg", content=[text], role="assistant", status="completed", type="message"
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


async def main() -> None:
    """Talks."""
    address = os.environ.get("CONTEXTENGINE_ADDRESS", "127.0.0.1:50051")
    agent = Agent(name="counting", instructions="Be brief.", model=Counting())
    async with AsyncClient(address, breaker=True) as client:
        session = ContextengineSession("offline", client, window=18_000)
        await session.clear_session()
        kept = client.session(agent_id="openai-agents", session_id="offline")
        config = RunConfig(call_model_input_filter=session.fit, tracing_disabled=True)
        for turn in range(40):
            result = await Runner.run(
                agent, f"Question {turn}: how goes it?", session=session, run_config=config
            )
            for _ in range(100):  # it summarizes meanwhile: a real model takes longer
                if not (await kept.status()).jobs:
                    break
                await asyncio.sleep(0.05)
            print(turn, result.final_output.split(". ")[0])


if __name__ == "__main__":
    asyncio.run(main())
