"""A mock of the providers on loopback, and how a server of ours runs within a test's loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.hosts.providers import Answer, Chat, Json, made
from tests.integration.harness import PATIENCE_S


@dataclass
class Seen:
    """A request that came, and the bytes that went back."""

    path: str
    headers: dict[str, str]
    body: bytes
    sent: bytes = b""

    @property
    def json(self) -> Json:
        body: Json = json.loads(self.body)
        return body


class Upstream:
    """The providers. `answer` says what the model answers to the request of that number, from 0."""

    def __init__(self, answer: Callable[[int, Json], Answer | Response]) -> None:
        self.answer = answer
        self.seen: list[Seen] = []
        self.cancelled = asyncio.Event()
        self.hold: asyncio.Event | None = None
        """What a streamed reply waits for after its first event. None: nothing."""
        self.lingers: asyncio.Event | None = None
        """What the end of a streamed reply waits for after its last event. None: nothing."""
        self.application = Starlette(
            routes=[Route("/{path:path}", self._handle, methods=["GET", "POST"])]
        )

    async def _handle(self, request: Request) -> Response:
        body = await request.body()
        seen = Seen(request.url.path, dict(request.headers), body)
        number = len(self.seen)
        self.seen.append(seen)
        if request.method == "GET":
            seen.sent = b'{"object":"list","data":[]}'
            return Response(seen.sent, media_type="application/json")
        given = json.loads(body)
        answer = self.answer(number, given)
        if isinstance(answer, Response):
            seen.sent = bytes(answer.body)
            return answer
        form, streamed = made(seen.path, given)
        if not streamed:
            seen.sent = json.dumps(form.whole(number, answer), indent=1).encode()
            return Response(seen.sent, media_type="application/json")
        events = [_event(one) for one in form.events(number, answer)]
        if form is Chat:
            events.append(b"data: [DONE]\n\n")
        return StreamingResponse(self._stream(seen, events), media_type="text/event-stream")

    async def _stream(self, seen: Seen, events: list[bytes]) -> AsyncIterator[bytes]:
        try:
            for at, event in enumerate(events):
                seen.sent += event
                yield event
                if at == 0 and self.hold is not None:
                    await self.hold.wait()
                    await asyncio.sleep(0)  # whoever has gone is known to have
            if self.lingers is not None:
                await self.lingers.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


def _event(one: Json) -> bytes:
    named = f"event: {one['type']}\r\n" if "type" in one else ""
    return f"{named}data: {json.dumps(one, ensure_ascii=False)}\n\n".encode()


class _Server(uvicorn.Server):
    def capture_signals(self) -> Any:
        """Signals are the tests' own."""
        return contextlib.nullcontext()


@asynccontextmanager
async def serving(application: Any) -> AsyncIterator[str]:
    """The address of an application that is served, as long as it is."""
    config = uvicorn.Config(
        application,
        port=0,
        log_level="error",
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=PATIENCE_S,
    )
    server = _Server(config)
    task = asyncio.ensure_future(server.serve())
    async with asyncio.timeout(PATIENCE_S):
        while not server.started:
            await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await task
