"""Carries one request upstream and its reply back, byte for byte as it comes."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import httpx2
from starlette.types import Receive, Scope, Send

from contextengine.overflow import is_refusal

from . import headers
from .copy import ReplyCopy
from .dialects import Dialect, Reply
from .dialects.chat import openai_error

log = logging.getLogger("contextengine_proxy")

REFUSED = (400, 413)
"""What a request is answered with that exceeds the model's window, among others."""
MOST_REFUSAL = 64 * 1024
"""Bytes of such an answer that are looked at before the client has them."""


class Relay:
    """One request on its way, an ASGI application of one call. A client that goes away ends the
    request upstream."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        request: httpx2.Request,
        dialect: Dialect | None,
        answered: Callable[[Reply], Awaitable[None]],
        refused: Callable[[str], Awaitable[httpx2.Request | None]],
    ) -> None:
        """`answered`: what to do with a reply once the client has it. `refused`: what to ask
        instead where upstream says that the request is too long; None: the client is told so."""
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
        reply = await self._sent(self._request, send)
        if reply is None:
            return
        try:
            begun: list[bytes] = []
            rest = reply.aiter_raw()
            if self._dialect is not None and reply.status_code in REFUSED:
                again = await self._asked_instead(reply, rest, begun)
                if again is not None:
                    await reply.aclose()
                    reply = await self._sent(again, send)
                    if reply is None:
                        return
                    begun, rest = [], reply.aiter_raw()
            await self._pass(reply, _chained(begun, rest), send)
        finally:
            if reply is not None:
                await reply.aclose()

    async def _sent(self, request: httpx2.Request, send: Send) -> httpx2.Response | None:
        """The reply as it begins. None: there is none, and the client was told."""
        try:
            return await self._client.send(request, stream=True)
        except httpx2.TimeoutException as error:
            await fail(send, self._dialect, 504, f"upstream did not answer in time: {_what(error)}")
        except httpx2.HTTPError as error:
            await fail(send, self._dialect, 502, f"upstream is not to be reached: {_what(error)}")
        return None

    async def _asked_instead(
        self, reply: httpx2.Response, rest: AsyncIterator[bytes], begun: list[bytes]
    ) -> httpx2.Request | None:
        """What to ask instead of a request that upstream refused. `begun`: takes up what is read of
        the refusal."""
        assert self._dialect is not None
        copy = ReplyCopy(self._dialect, "", reply.headers.get("content-encoding", ""))
        try:
            async for chunk in rest:
                begun.append(chunk)
                copy.take(chunk)
                if sum(map(len, begun)) > MOST_REFUSAL:
                    return None
        except httpx2.HTTPError:
            return None  # met again where the rest is passed on
        return await self._refused(copy.text()) if is_refusal(copy.text()) else None

    async def _pass(self, reply: httpx2.Response, chunks: AsyncIterator[bytes], send: Send) -> None:
        copy = None
        if self._dialect is not None:
            kind = reply.headers.get("content-type", "")
            copy = ReplyCopy(self._dialect, kind, reply.headers.get("content-encoding", ""))
            self._copy = copy if reply.status_code == 200 else None
        start: dict[str, Any] = {"type": "http.response.start", "status": reply.status_code}
        await send(start | {"headers": headers.downstream(reply.headers.raw)})
        try:
            async for chunk in chunks:
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


async def fail(send: Send, dialect: Dialect | None, status: int, text: str) -> None:
    """Answers an error of ours as the API would."""
    body = openai_error(status, text) if dialect is None else dialect.error(status, text)
    raw = json.dumps(body).encode()
    kind = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(raw))]
    await send({"type": "http.response.start", "status": status, "headers": kind})
    await send({"type": "http.response.body", "body": raw, "more_body": False})


async def _chained(begun: Iterable[bytes], rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    for chunk in begun:
        yield chunk
    async for chunk in rest:
        yield chunk


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _what(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
