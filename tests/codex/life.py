"""A thread of Codex made up from a seed: what its user does, and what its provider answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.codex.app_server import QUIET, WAIT_S, AppServer, Json
from tests.hosts.providers import Answer
from tests.hosts.upstream import Upstream

PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
    "WjR9awAAAABJRU5ErkJggg=="
)
REFUSED = json.dumps({"error": {"message": "no", "type": "invalid_request_error"}})


class Asked:
    """Passes on what Codex asks, and keeps it."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application
        self.lists: list[list[Json]] = []
        """The list of each request, in the order in which they came."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""

        async def kept() -> Message:
            nonlocal body
            message = await receive()
            if message["type"] == "http.request":
                body += message.get("body", b"")
                if not message.get("more_body") and scope["path"].endswith("/responses"):
                    self.lists.append(json.loads(body)["input"])
            return message

        posted = scope["type"] == "http" and scope["method"] == "POST"
        await self._application(scope, kept if posted else receive, send)


class Life:
    """One user of Codex, whose program is ended and begun again."""

    def __init__(self, home: Path, base: str, random: Random) -> None:
        self._home, self._base = home, f"{base}/v1"
        self._random, self._lot = random, random.random
        self.upstream: Upstream
        self._codex: AppServer
        self._thread = ""
        self._turns: list[str] = []
        self._failing = False

    def answer(self, number: int, given: Json) -> Answer | Response:
        """What the provider answers."""
        lot = self._lot
        if self._failing or lot() < 0.03:
            return Response(REFUSED, status_code=400, media_type="application/json")
        thought = self.words(3, 20) if lot() < 0.4 else ""
        if lot() < 0.55:
            return Answer(self.words(3, 200), thought=thought)
        commands = [f"echo {self.words(1, 200)}" for _ in range(self._random.choice((1, 1, 2, 3)))]
        return Answer(
            self.words(2, 20) if lot() < 0.3 else "",
            calls=[{"cmd": command} for command in commands],
            thought=thought,
            tool="exec_command",
        )

    def words(self, least: int = 5, most: int = 150) -> str:
        count = self._random.randint(least, most)
        return " ".join(f"w{self._random.getrandbits(20)}" for _ in range(count))

    async def begin(self) -> None:
        self._codex = await AppServer.start(self._home, self._base)
        self._thread = await self._codex.thread(self.words(3, 10))

    async def end(self) -> None:
        await self._codex.stop()

    async def happens(self) -> None:
        """A turn, after something else now and then."""
        often: list[tuple[float, Callable[[], Awaitable[None]]]] = [
            (6, self.turn),
            (2, self.steered),
            (2, self.interrupted),
            (1, self.forked),
            (1, self.reverted),
            (1, self.restarted),
            (0.6, self.compacted),
            (0.5, self.injected),
            (0.5, self.refused),
        ]
        some = often if self._turns else often[:3]
        (one,) = self._random.choices([what for _, what in some], [weight for weight, _ in some])
        await one()

    async def turn(self) -> None:
        """To its end, whatever that is."""
        await self._begun()
        await self._ended()

    async def steered(self) -> None:
        """Words come while the model answers."""
        given = [{"type": "text", "text": self.words()}]
        await self._amid("turn/steer", "expectedTurnId", input=given)

    async def interrupted(self) -> None:
        """The user stops it while the model answers."""
        await self._amid("turn/interrupt", "turnId")

    async def forked(self) -> None:
        """Goes on in a thread that begins as this one does."""
        more = {"lastTurnId": self._random.choice(self._turns)} if self._lot() < 0.5 else {}
        forked = await self._codex.call("thread/fork", threadId=self._thread, config=QUIET, **more)
        self._thread = forked["thread"]["id"]
        await self.turn()

    async def reverted(self) -> None:
        """Takes the newest turn back."""
        last = {"beforeTurnId": self._turns.pop()}
        await self._codex.call("thread/revert", threadId=self._thread, **last)
        await self.turn()

    async def restarted(self) -> None:
        """Codex is ended, and goes on with the thread."""
        await self.end()
        self._codex = await AppServer.start(self._home, self._base)
        await self._codex.call("thread/resume", threadId=self._thread, config=QUIET)
        await self.turn()

    async def compacted(self) -> None:
        """Codex has the model summarize."""
        await self._codex.call("thread/compact/start", threadId=self._thread)
        await self._ended()
        await self.turn()

    async def injected(self) -> None:
        """A client of Codex says something besides."""
        text = [{"type": "input_text", "text": self.words()}]
        items = [{"type": "message", "role": "user", "content": text}]
        await self._codex.call("thread/inject_items", threadId=self._thread, items=items)
        await self.turn()

    async def refused(self) -> None:
        """The provider refuses what it is asked."""
        self._failing = True
        await self.turn()
        self._failing = False

    async def _begun(self) -> str:
        given: list[Json] = [{"type": "text", "text": self.words()}]
        if self._random.random() < 0.1:
            given.append({"type": "image", "url": PICTURE})
        self._codex.forget()
        begun = await self._codex.call("turn/start", threadId=self._thread, input=given)
        self._turns.append(begun["turn"]["id"])
        return self._turns[-1]

    async def _amid(self, method: str, turn: str, **more: Any) -> None:
        """A call while the provider has begun to answer."""
        self.upstream.hold = asyncio.Event()
        before = len(self.upstream.seen)
        told = {turn: await self._begun(), **more}
        async with asyncio.timeout(WAIT_S):
            while len(self.upstream.seen) == before:
                await asyncio.sleep(0.02)
        await asyncio.sleep(self._lot() / 5)
        with suppress(AssertionError):  # the turn has failed by then
            await self._codex.call(method, threadId=self._thread, **told)
        self.upstream.hold.set()
        self.upstream.hold = None
        await self._ended()

    async def _ended(self) -> None:
        await self._codex.ended(("completed", "interrupted", "failed"))
