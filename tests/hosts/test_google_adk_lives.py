"""Random lives of an app of Google's Agent Development Kit: after each turn that went well the
session is what the kit's own says, and whatever a model is sent pairs calls with results. Runs
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

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.flows.llm_flows.contents import _get_contents
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from contextengine import AsyncClient
from contextengine.errors import SessionNotFound
from contextengine.naming import said
from contextengine_google_adk import ContextenginePlugin
from contextengine_google_adk.contents import kept
from tests.hosts.gate import Gate, Way, gate
from tests.integration.harness import House, house, ref

APP, USER, TALK = "support", "ann", "talk"


class ModelDown(Exception):
    """The provider failed."""


class Model(BaseLlm):  # type: ignore[misc]
    """A model that says what the life has it say."""

    life: Any = None
    of: str = ""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.life.author = self.of
        parts = self.life.reply(llm_request.contents)
        if stream:
            for part in parts:
                if part.text:
                    content = types.Content(role="model", parts=[part])
                    yield LlmResponse(content=content, partial=True)
                    await self.life.hang(0.4)
        await self.life.hang(0.4)
        yield LlmResponse(content=types.Content(role="model", parts=parts), partial=False)


class Life:
    """An app, its user and its models."""

    def __init__(self, seed: int, home: House, way: Gate) -> None:
        self.random, self.home, self.way = Random(seed), home, way
        self.numbers = count()
        self.sessions = InMemorySessionService()
        self.failing = False
        self.hanging: asyncio.Event | None = None
        self.log: list[str] = []
        self.helped = self.random.random() < 0.4
        self.author = ""
        self.begin()

    def begin(self) -> None:
        """A process of its own, which knows nothing of before."""
        self.client = AsyncClient(self.way.address, breaker=True)
        model = Model(model="mock", life=self, of="root")
        other = Model(model="mock", life=self, of="helper")
        helper = LlmAgent(name="helper", model=other, instruction="Help.", tools=[self.look])
        agent = LlmAgent(
            name="root",
            model=model,
            instruction="Be careful.",
            tools=[self.look],
            sub_agents=[helper] if self.helped else [],
        )
        plugin = ContextenginePlugin(self.client, window=2_000_000, patience=1.0)
        app = App(name=APP, root_agent=agent, plugins=[plugin])
        self.runner = Runner(app=app, session_service=self.sessions)

    async def hang(self, share: float) -> None:
        if self.hanging is not None and self.random.random() < share:
            self.hanging.set()
            await asyncio.sleep(60)

    async def look(self, of: str) -> dict[str, Any]:
        """Looks something up."""
        await self.hang(0.4)
        found = self.random.choice(("found", "", f"found {next(self.numbers)}"))
        return self.random.choice(({"output": found}, {"error": found}, {"rows": [found]}))

    def reply(self, contents: Sequence[types.Content]) -> list[types.Part]:
        """What a model answers."""
        paired(contents)
        if self.failing and self.random.random() < 0.7:
            raise ModelDown
        parts: list[types.Part] = []
        if self.random.random() < 0.2:
            parts.append(types.Part(text="hm", thought=True))
        if self.random.random() < 0.5:
            if self.random.random() < 0.3:
                parts.append(types.Part(text="I look"))
            again = self.random.random() < 0.3
            if self.helped and self.random.random() < 0.3:
                name = "root" if self.author == "helper" else "helper"
                call = types.FunctionCall(name="transfer_to_agent", args={"agent_name": name})
                return [*parts, types.Part(function_call=call)]
            for at in range(self.random.randint(1, 3)):
                call = types.FunctionCall(name="look", args={"of": self.random.choice("ab")})
                if again:
                    call.id = f"call_{at}"
                parts.append(types.Part(function_call=call))
            return parts
        return [
            *parts,
            types.Part(text=self.random.choice(("done", f"answer {next(self.numbers)}"))),
        ]

    def words(self) -> types.Content:
        parts = [
            types.Part(text=self.random.choice(("yes", "go on", f"question {next(self.numbers)}")))
        ]
        if self.random.random() < 0.1:
            data = b"\x89PNG" + bytes([next(self.numbers) % 200])
            parts.append(types.Part(inline_data=types.Blob(data=data, mime_type="image/png")))
        return types.Content(role="user", parts=parts)

    async def turn(self) -> bool:
        """Whether it went well."""
        streamed = self.random.random() < 0.5
        leave = self.random.random() < 0.1
        words = self.words()
        self.log.append(
            f"{said(kept([words])[0])} streamed={streamed} leave={leave} failing={self.failing}"
        )
        mode = StreamingMode.SSE if streamed else StreamingMode.NONE
        events = self.runner.run_async(
            user_id=USER,
            session_id=TALK,
            new_message=words,
            run_config=RunConfig(streaming_mode=mode),
        )
        try:
            async for event in events:
                if event.error_code:
                    return False
                if leave:
                    return False
        finally:
            await events.aclose()
        return True

    async def live(self) -> None:
        await self.sessions.create_session(app_name=APP, user_id=USER, session_id=TALK)
        for _ in range(14):
            if self.random.random() < 0.12:
                await self.undo()
            if self.random.random() < 0.1:
                await self.runner.close()
                await self.client.close()
                self.begin()
                self.log.append("begin")
            self.failing = self.random.random() < 0.12
            self.hanging = asyncio.Event() if self.random.random() < 0.15 else None
            away = self.random.random() < 0.1
            if away:
                self.log.append("away")
                self.way.turn(Way.CLOSED)
            well = await self.tried()
            self.way.turn(Way.OPEN)
            if well and not away:
                await self.agrees()
        await self.runner.close()
        await self.client.close()

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
        except ModelDown:
            self.log.append("failed")
        return False

    async def undo(self) -> None:
        turns: list[str] = []
        for event in await self.events():
            gone = event.actions.rewind_before_invocation_id
            if gone in turns:
                del turns[turns.index(gone) :]
            elif event.author == "user" and event.invocation_id not in turns:
                turns.append(event.invocation_id)
        if len(turns) > 2:
            self.log.append("undo")
            await self.runner.rewind_async(
                user_id=USER,
                session_id=TALK,
                rewind_before_invocation_id=self.random.choice(turns[1:][-3:]),
            )

    async def events(self) -> list[Any]:
        session = await self.sessions.get_session(app_name=APP, user_id=USER, session_id=TALK)
        assert session is not None
        return list(session.events)

    async def agrees(self) -> None:
        events = await self.events()
        author = events[-1].author
        name = f"{USER}/{TALK}" + ("" if author == "root" else f"/{author}")
        wanted = [said(one) for one in kept(_get_contents(None, events, author))]
        for _ in range(60):  # what failed is stored beside the host
            rows = []
            with suppress(SessionNotFound):
                rows = await self.home.rows(ref(name, agent="google-adk"))
            found = [said(row.message) for row in rows if not row.retired_revision]
            if found == wanted:
                return
            await asyncio.sleep(0.05)
        assert found == wanted, self.log


def paired(contents: Sequence[types.Content]) -> None:
    """Each call has its result in what follows, and each result its call."""
    waiting: list[str] = []
    for content in contents:
        results = [p.function_response for p in content.parts or () if p.function_response]
        for one in results:
            assert one.name in waiting, contents
            waiting.remove(str(one.name))
            assert "No result was recorded" not in str(one.response), contents
        assert not waiting, contents
        waiting = [str(p.function_call.name) for p in content.parts or () if p.function_call]
    assert not waiting, contents
    assert contents[-1].role == "user", contents


@pytest.mark.parametrize("seed", [0, 3])
async def test_the_session_is_what_the_kits_own_says(tmp_path: Path, seed: int) -> None:
    async with house(tmp_path) as home, gate(home.app.address) as way:
        await Life(seed, home, way).live()
