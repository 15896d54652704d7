"""A talk of forty turns, without a key: the model is a few lines of this file.

make run                                               # the service, in another terminal
python integrations/google-adk/examples/offline.py
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from contextengine import AsyncClient
from contextengine_google_adk import ContextenginePlugin


class Counting(BaseLlm):
    """Answers with the number of contents that it sees."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        seen = llm_request.contents
        told = sum("trust=untrusted" in str(content) for content in seen)
        words = f"I see {len(seen)} contents, {told} of them summaries. " + "So it goes. " * 40
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=words)]))


async def main() -> None:
    """Talks."""
    address = os.environ.get("CONTEXTENGINE_ADDRESS", "127.0.0.1:50051")
    sessions, here = InMemorySessionService(), f"offline-{uuid.uuid4()}"
    await sessions.create_session(app_name="counting", user_id="ann", session_id=here)
    async with AsyncClient(address, breaker=True) as client:
        agent = LlmAgent(name="counting", model=Counting(model="counting"), instruction="Be brief.")
        plugin = ContextenginePlugin(client, window=18_000)
        app = App(name="counting", root_agent=agent, plugins=[plugin])
        kept = client.session(agent_id="google-adk", session_id=f"ann/{here}")
        runner = Runner(app=app, session_service=sessions)
        for turn in range(40):
            words = types.Part(text=f"Question {turn}: how goes it?")
            said = types.Content(role="user", parts=[words])
            async for event in runner.run_async(user_id="ann", session_id=here, new_message=said):
                if event.is_final_response() and event.content:
                    print(turn, (event.content.parts or [])[0].text.split(". ")[0])
            for _ in range(100):  # it summarizes meanwhile: a real model takes longer
                if not (await kept.status()).jobs:
                    break
                await asyncio.sleep(0.05)
        await runner.close()


if __name__ == "__main__":
    asyncio.run(main())
