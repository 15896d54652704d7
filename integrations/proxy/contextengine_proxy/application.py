"""The proxy as an ASGI application."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from contextengine import AsyncClient

from . import headers, wire
from .dialects import Dialect, dialect_of
from .ledger import Ledger, Taken, folder_of
from .relay import Relay, fail
from .talks import BadSession, Prepared, Talks
from .windows import Windows

log = logging.getLogger("contextengine_proxy")

HEALTH = "/healthz"


@dataclass(frozen=True)
class Settings:
    """How a proxy is set up."""

    address: str = "127.0.0.1:50051"
    """Where the service is."""
    token: str = ""
    tls: bool = False
    agent: str = "proxy"
    """The agent whose sessions these are."""
    openai: str = "https://api.openai.com"
    """Where requests go; what stands before `/v1` of the path."""
    anthropic: str = "https://api.anthropic.com"
    """Where requests to `/messages` go, and others of Anthropic's."""
    gemini: str = "https://generativelanguage.googleapis.com"
    """Where requests of Gemini's API go."""
    windows: Windows = Windows()  # noqa: RUF009
    patience: float = 2.0
    """Seconds that a request waits for the service, before it goes through as it is."""
    timeout: float = 600.0
    """Seconds that upstream may be silent."""
    max_bytes: int = 64 * 1024 * 1024
    """The longest body of a request."""
    state: Path | None = None
    """The folder of what the service has not got yet. None: it is in memory alone."""


_ANTHROPIC = re.compile(rb"/v1/messages(?![^/])")
"""The paths of its Messages API, whatever stands before them; `/v1/messages/count_tokens` and
batches as well."""
_GEMINI = re.compile(rb"/v1(?:alpha|beta)(?![^/])|/models/[^/:]+:[a-z]+[A-Z]\w*$")
"""The paths of Google's: its unfinished versions, which OpenAI has none of, and what is asked of a
model (`:generateContent`; others have models like `llama3:latest`)."""

_parsed = lru_cache(maxsize=128)(httpx2.URL)
"""Addresses upstream, of which there are few."""


class TooLong(Exception):
    """A body is longer than is taken."""


class Proxy:
    """One proxy, with its connections. Use it in `async with`; `application` is what serves."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._life = contextlib.AsyncExitStack()
        self._recording: set[asyncio.Task[None]] = set()
        self._talks: Talks
        self._upstream: httpx2.AsyncClient
        self.application = Starlette(
            routes=[Route(HEALTH, self._health), Route("/{path:path}", self)],
            lifespan=self._lifespan,
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        given = self._settings
        client = AsyncClient(
            given.address,
            token=given.token,
            tls=given.tls,
            retry_for=0,
            fallback=False,
            breaker=True,
        )
        async with client, wire.client(given.timeout) as self._upstream:
            book = _book(given)
            self._talks = Talks(client, given.agent, given.windows, given.patience, book)
            self._talks.inherit()
            yield
            await asyncio.gather(*self._recording)
            await self._talks.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Any request but for the proxy's own health."""
        request = Request(scope, receive)
        dialect = dialect_of(scope["path"]) if request.method == "POST" else None
        raw = request.headers.raw
        try:
            body = await self._body(request)
            prepared = Prepared(body)
            if dialect is not None and headers.is_plain(raw):
                prepared = await self._prepared(dialect, body, raw, scope["query_string"])
        except TooLong as error:
            await fail(send, dialect, 413, str(error))
            return
        except BadSession as error:
            await fail(send, dialect, 400, str(error))
            return
        except ClientDisconnect:
            return
        kept = dialect if prepared.request is not None else None

        def forwarded(body: bytes) -> httpx2.Request:
            content = body if body or request.method not in ("GET", "HEAD") else None
            url, told = self._url(scope), headers.upstream(raw)
            return httpx2.Request(request.method, url, headers=told, content=content)

        async def instead(text: str) -> httpx2.Request | None:
            nonlocal prepared
            shorter = await self._talks.shortened(prepared, text)
            if shorter is None:
                return None
            prepared = shorter
            return forwarded(shorter.body)

        relay = Relay(
            self._upstream,
            forwarded(prepared.body),
            kept,
            lambda reply: self._later(self._talks.record(prepared, reply)),
            instead,
        )
        await relay(scope, receive, send)

    async def _prepared(
        self, dialect: Dialect, body: bytes, raw: headers.Headers, query: bytes
    ) -> Prepared:
        """What goes upstream for a request. Raises BadSession."""
        named = headers.value_of(raw, headers.SESSION).decode("latin-1")
        try:
            whose = headers.credentials(raw, query)
            return await self._talks.prepare(dialect, body, named, whose)
        except BadSession:
            raise
        except Exception:
            # The client sends the same list with each request to come: it is not for us to end the
            # conversation over what is odd in it.
            log.exception("a request goes through as it is")
            return Prepared(body)

    async def _later(self, work: Coroutine[Any, Any, None]) -> None:
        """Does what no client waits for."""
        task = asyncio.ensure_future(work)
        self._recording.add(task)
        task.add_done_callback(self._recording.discard)

    async def _body(self, request: Request) -> bytes:
        chunks: list[bytes] = []
        size = 0
        async for chunk in request.stream():
            chunks.append(chunk)
            size += len(chunk)
            if size > self._settings.max_bytes:
                most = self._settings.max_bytes
                raise TooLong(f"the request's body is longer than {most} bytes: see --max-body")
        return b"".join(chunks)

    def _url(self, scope: Scope) -> httpx2.URL:
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        base = self._whose(path, {name.lower() for name, _ in scope["headers"]})
        query = scope["query_string"].decode("latin-1")
        return _parsed(f"{base.rstrip('/')}{path.decode('latin-1')}{f'?{query}' if query else ''}")

    def _whose(self, path: bytes, names: set[bytes]) -> str:
        """The provider that a request is for, by its path and the names of its headers: a key goes
        to nobody else. OpenAI has paths that end with /messages as well."""
        if b"anthropic-version" in names or _ANTHROPIC.search(path):
            return self._settings.anthropic
        if headers.GOOGLES_KEY in names or _GEMINI.search(path):
            return self._settings.gemini
        return self._settings.openai

    async def _health(self, _: Request) -> JSONResponse:
        """Healthy whatever the service is: requests go through without it."""
        away = self._talks.away
        said = {"status": "ok", "service": "away" if away else "there"}
        return JSONResponse(said | ({"reason": away} if away else {}))


def _book(given: Settings) -> Ledger | None:
    """Where debts outlive the process. None: nowhere, which is said."""
    if given.state is None:
        return None
    try:
        return Ledger(folder_of(given.state, given.address, given.agent, given.token))
    except (Taken, OSError) as error:
        log.warning("what the service has not got is kept in memory alone: %s", error)
        return None
