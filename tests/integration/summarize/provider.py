"""A model's service on loopback that speaks the wire format of OpenAI's chat completions, well or
badly, as it is told.

It reads HTTP/1.1 from a socket and writes bytes to it, so that it can also break off, dawdle and
talk nonsense. What it was asked is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

GOOD = "The flag --fast was renamed to --quick in cli/main.py. Open: the docs."
USAGE = {"prompt_tokens": 700, "completion_tokens": 20, "total_tokens": 720}

Reply = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Request:
    """One request, as it came."""

    path: str
    headers: dict[str, str]
    raw: bytes
    body: dict[str, Any]
    at: float

    @property
    def system(self) -> str:
        return self._said("system")

    @property
    def user(self) -> str:
        return self._said("user")

    @property
    def aggressive(self) -> bool:
        return "Fragments" in self.system

    def _said(self, role: str) -> str:
        (content,) = [m["content"] for m in self.body["messages"] if m["role"] == role]
        return str(content)


@dataclass
class Provider:
    """The service: `replies` are given one after the other, the last for ever."""

    replies: list[Reply]
    requests: list[Request] = field(default_factory=list)
    port: int = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                request = await _read(reader)
                self.requests.append(request)
                reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
                await reply(request, writer)
                await writer.drain()


@asynccontextmanager
async def provider(*replies: Reply) -> AsyncIterator[Provider]:
    """A service that runs."""
    made = Provider(list(replies))
    connections: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def life() -> None:
            try:
                await made.serve(reader, writer)
            finally:
                writer.close()

        task = asyncio.create_task(life())
        connections.add(task)
        task.add_done_callback(connections.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await server.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    raw = await reader.readexactly(int(headers["content-length"]))
    return Request(
        first.split()[1], headers, raw, json.loads(raw), asyncio.get_running_loop().time()
    )


def answer(
    text: str | None = GOOD,
    *,
    finish: str | None = "stop",
    usage: object = USAGE,
    **message: object,
) -> Reply:
    """A whole answer, streamed or in one piece as the request asks."""

    async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
        if request.body.get("stream"):
            size = 7 + len(text or "") // 50
            pieces = [text[at : at + size] for at in range(0, len(text), size)] if text else []
            chunks: list[object] = [chunk({"role": "assistant", "content": "", **message})]
            chunks += [chunk({"content": piece}) for piece in pieces]
            chunks += [chunk({}, finish), {**chunk({}), "choices": [], "usage": usage}]
            await stream(*chunks)(request, writer)
        else:
            said = {"role": "assistant", "content": text, "refusal": None, **message}
            choice = {"index": 0, "message": said, "finish_reason": finish, "logprobs": None}
            await body({**_frame("chat.completion"), "choices": [choice], "usage": usage})(
                request, writer
            )

    return reply


def chunk(delta: dict[str, object], finish: str | None = None) -> dict[str, object]:
    """One chunk of a stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return {**_frame("chat.completion.chunk"), "choices": [choice]}


def stream(
    *chunks: object, end: bytes = b"data: [DONE]\n\n", cut: bool = False, pause: float = 0
) -> Reply:
    """Server-sent events. `cut` breaks the connection off behind the last; `pause` seconds are
    between two."""

    async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding:"
            b" chunked\r\n\r\n"
        )
        for piece in chunks:
            event = (
                piece
                if isinstance(piece, bytes)
                else b"data: " + json.dumps(piece).encode() + b"\n\n"
            )
            writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
            await writer.drain()
            await asyncio.sleep(pause)
        if cut:
            writer.transport.abort()
        else:
            writer.write(
                (f"{len(end):x}\r\n".encode() + end + b"\r\n" if end else b"") + b"0\r\n\r\n"
            )

    return reply


def body(
    value: object, status: int = 200, *, kind: str = "application/json", **headers: str
) -> Reply:
    """One piece: a value as JSON, or bytes as they are."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {len(raw)}"]
    lines += [f"{name.replace('_', '-')}: {text}" for name, text in headers.items()]

    async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + raw)

    return reply


def error(
    status: int, message: str = "no", code: str | None = None, kind: str = "error", **headers: str
) -> Reply:
    """An error in the form that the API gives it."""
    return body(
        {"error": {"message": message, "type": kind, "param": None, "code": code}},
        status,
        **headers,
    )


async def reset(request: Request, writer: asyncio.StreamWriter) -> None:
    """Breaks the connection off instead of answering."""
    writer.transport.abort()


async def silence(request: Request, writer: asyncio.StreamWriter) -> None:
    """Never answers."""
    await asyncio.Event().wait()


def _frame(kind: str) -> dict[str, object]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1_700_000_000, "model": "small-1"}
