"""An agent of the AI SDK of Vercel on Node, whose model is wrapped by the package for it."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from contextengine.types import SessionRef
from tests.hosts.upstream import serving

from .brain import NOTHING, Brain, ModelFailed, found
from .host import WINDOW, Host, renamed

PROGRAM = Path(__file__).parents[1] / "node" / "ai_sdk.mjs"
TURN_S = 120.0


class AgentFailed(Exception):
    """The SDK threw what it says."""


class AiSdkHost(Host):
    """`generateText` over a list that the agent keeps."""

    name = "ai-sdk"
    # A turn that failed leaves an agent's list as it was: the SDK answers nothing to add to it.
    forgets_failed = True
    here = False

    def __init__(self, address: str, brain: Brain) -> None:
        super().__init__(address, brain)
        self.session = "case-1"
        self.messages: list[Any] = []
        self.texts: list[str] = []
        self.life = AsyncExitStack()

    async def start(self) -> None:
        routes = [
            Route("/answer", self._answer, methods=["POST"]),
            Route("/look_up", self._look_up, methods=["POST"]),
        ]
        self.life = AsyncExitStack()
        asked = await self.life.enter_async_context(serving(Starlette(routes=routes)))
        self._process = await asyncio.create_subprocess_exec(
            *("node", str(PROGRAM), self.address, asked, str(WINDOW)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=2**26,
        )
        await self._do(messages=self.messages)

    async def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self.life.aclose()

    async def say(self, words: str) -> None:
        await self._do(session=self.session, words=words)

    async def _do(self, **given: Any) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(given).encode() + b"\n")
        async with asyncio.timeout(TURN_S):
            line = await self._process.stdout.readline()
        assert line, "the agent ended"
        told = json.loads(line)
        self.messages, self.texts = told["messages"], told["texts"]
        if told.get("error"):
            raise AgentFailed(told["error"])

    async def transcript(self) -> list[str]:
        return self.texts

    @property
    def ref(self) -> SessionRef:
        return SessionRef(agent_id="ai-sdk", session_id=self.session)

    async def undo(self) -> None:
        last = max(at for at, one in enumerate(self.messages) if one["role"] == "user")
        await self._do(messages=self.messages[:last])

    async def rewrite(self) -> None:
        rows = json.dumps(self.messages)
        await self._do(messages=json.loads(renamed(rows), object_hook=_without_details))

    async def fork(self) -> None:
        self.session += "-fork"

    async def _answer(self, request: Request) -> JSONResponse:
        given = await request.json()
        try:
            answer = self.brain.answer(given["texts"], given["asked"])
        except ModelFailed as error:
            told = {"message": str(error), "code": error.code}
            return JSONResponse({"error": told}, 400)
        number = len(self.brain.seen)
        return JSONResponse({"words": answer.words, "calls": answer.calls, "number": number})

    async def _look_up(self, request: Request) -> JSONResponse:
        of = (await request.json())["of"]
        if of == NOTHING:
            return JSONResponse({"error": "there is nothing"}, 404)
        return JSONResponse({"found": found(of)})


def _without_details(one: dict[str, Any]) -> dict[str, Any]:
    """What hosts leave out of a message or a part of one for another provider."""
    return {name: value for name, value in one.items() if name != "providerOptions"}
