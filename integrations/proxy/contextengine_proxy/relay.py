"""Carries one request upstream and its reply back, byte for byte as it comes."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
from starlette.types import Receive, Scope, Send

from . import headers
from .copy import ReplyCopy
from .dialects import Dialect, Reply
from .dialects.chat import openai_error

log = logging.getLogger("contextengine_proxy")

_TOO_LONG = re.compile(
    r"context_length_exceeded|prompt is too long|maximum context length|context window", re.I
)
"""How providers say that a request exceeds the model's window."""


class Relay:
    """One request on its way, an ASGI application of one call. A client that goes away ends the
    request upstream."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        request: httpx2.Request,
        dialect: Dialect | None,
        answered: Callable[[Reply], Awaitable[None]],
        refused: Callable[[str], Awaitable[None]],
    ) -> None:
        """`answered`, `refused`: what to do with a reply once the client has it, and with what
        upstream says of a request that is too long."""
        self._client, self._request, self._dialect = client, request, dialect
        self._answered, self._refused = answered, refused
        self._copy: ReplyCopy | None = None
        """None: it is no reply that is read, or upstream has not begun with it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        carried = asyncio.ensure_future(self._carry(send))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({carried, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            done = carried.done()
            for task in (carried, gone):
                task.cancel()
            await asyncio.gather(carried, gone, return_exceptions=True)
        if done:
            carried.result()
        elif self._copy is not None and (whole := self._copy.reply(ended=False)) is not None:
            # Some clients go with the last event, before the end of what carries it.
            await self._answered(whole)

    async def _carry(self, send: Send) -> None:
        try:
            reply = await self._client.send(self._request, stream=True)
        except httpx2.TimeoutException as error:
            await fail(send, self._dialect, 504, f"upstream did not answer in time: {_what(error)}")
            return
        except httpx2.HTTPError as error:
            await fail(send, self._dialect, 502, f"upstream is not to be reached: {_what(error)}")
            return
        try:
            await self._pass(reply, send)
        finally:
            await reply.aclose()

    async def _pass(self, reply: httpx2.Response, send: Send) -> None:
        copy = None
        if self._dialect is not None:
            kind = reply.headers.get("content-type", "")
            copy = ReplyCopy(self._dialect, kind, reply.headers.get("content-encoding", ""))
            self._copy = copy if reply.status_code == 200 else None
        start: dict[str, Any] = {"type": "http.response.start", "status": reply.status_code}
        await send(start | {"headers": headers.downstream(reply.headers.raw)})
        try:
            async for chunk in reply.aiter_raw():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                if copy is not None:
                    copy.take(chunk)
        except httpx2.HTTPError as error:
            # The reply stays unfinished, as upstream left it: the connection is closed.
            log.warning("upstream broke off a reply: %s", _what(error))
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        if copy is None:
            return
        if reply.status_code == 200 and (whole := copy.reply()) is not None:
            await self._answered(whole)
        elif reply.status_code in (400, 413) and _TOO_LONG.search(copy.text()):
            await self._refused(copy.text())


async def fail(send: Send, dialect: Dialect | None, status: int, text: str) -> None:
    """Answers an error of ours as the API would."""
    body = openai_error(status, text) if dialect is None else dialect.error(status, text)
    raw = json.dumps(body).encode()
    kind = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(raw))]
    await send({"type": "http.response.start", "status": status, "headers": kind})
    await send({"type": "http.response.body", "body": raw, "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _what(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
