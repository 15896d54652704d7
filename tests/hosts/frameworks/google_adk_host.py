"""An agent of Google's Agent Development Kit, which talks to a mock of Gemini on loopback and whose
conversation is in the kit's session."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.models import Gemini
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from contextengine.types import SessionRef
from contextengine_google_adk import ContextenginePlugin
from tests.hosts.upstream import Upstream, serving

from .brain import NOTHING, Brain, found
from .host import SYSTEM, WINDOW, Host

USER = "ann"


def look_up(of: str) -> dict[str, str]:
    """Looks something up."""
    return {"error": "there is nothing"} if of == NOTHING else {"output": found(of)}


def texts(contents: Sequence[types.Content]) -> list[str]:
    """What the contents say."""
    said: list[str] = []
    for part in (part for content in contents for part in content.parts or ()):
        if part.text and not part.thought:
            said.append(part.text)
        if part.function_response is not None:
            said += map(str, (part.function_response.response or {}).values())
    return said


class GoogleAdkHost(Host):
    """The plugin in an app."""

    name = "google-adk"
    forks = False

    def __init__(self, address: str, brain: Brain) -> None:
        super().__init__(address, brain)
        self.sessions = InMemorySessionService()
        self.begun = False
        self.turns = 0

    async def start(self) -> None:
        self.life = AsyncExitStack()
        self.upstream = Upstream(self.brain.gemini)
        base = await self.life.enter_async_context(serving(self.upstream.application))
        service = await self.life.enter_async_context(self.client())
        agent = LlmAgent(
            name="careful",
            model=Gemini(model="gemini-mock", base_url=base, client_kwargs={"api_key": "key"}),
            instruction=SYSTEM,
            tools=[look_up],
        )
        plugin = ContextenginePlugin(service, window=WINDOW)
        app = App(name="support", root_agent=agent, plugins=[plugin])
        self.runner = Runner(app=app, session_service=self.sessions)
        if not self.begun:
            await self.sessions.create_session(
                app_name="support", user_id=USER, session_id="case-1"
            )
            self.begun = True

    async def stop(self) -> None:
        await self.runner.close()
        await self.life.aclose()

    async def say(self, words: str) -> None:
        said = types.Content(role="user", parts=[types.Part(text=words)])
        # Every second turn is streamed.
        self.turns += 1
        mode = StreamingMode.NONE if self.turns % 2 else StreamingMode.SSE
        async for event in self.runner.run_async(
            user_id=USER,
            session_id="case-1",
            new_message=said,
            run_config=RunConfig(streaming_mode=mode),
        ):
            if event.error_message:
                raise RuntimeError(event.error_message)

    async def transcript(self) -> list[str]:
        return texts([event.content for event in await self.events() if event.content])

    async def events(self) -> list[Any]:
        session = await self.sessions.get_session(
            app_name="support", user_id=USER, session_id="case-1"
        )
        assert session is not None
        events: list[Any] = []
        for event in session.events:
            before = event.actions.rewind_before_invocation_id if event.actions else None
            if before:
                at = [one.invocation_id for one in events].index(before)
                del events[at:]
            else:
                events.append(event)
        return events

    @property
    def ref(self) -> SessionRef:
        return SessionRef(agent_id="google-adk", session_id=f"{USER}/case-1")

    async def rewrite(self) -> None:
        # The service in memory has no call for it; one over a database is written to.
        kept = self.sessions.sessions["support"][USER]["case-1"]
        for event in kept.events:
            for part in event.content.parts if event.content and event.content.parts else ():
                for call in (part.function_call, part.function_response):
                    if call is not None:
                        call.id = f"anew-{call.id}"
            event.usage_metadata = event.custom_metadata = None

    async def undo(self) -> None:
        last = (await self.events())[-1].invocation_id
        await self.runner.rewind_async(
            user_id=USER, session_id="case-1", rewind_before_invocation_id=last
        )
