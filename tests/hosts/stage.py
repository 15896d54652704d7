"""A service, a proxy and a provider, each on loopback within a test's loop."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2

from contextengine import name_by_content
from contextengine_proxy.application import Proxy, Settings
from contextengine_proxy.windows import Windows
from tests.hosts.providers import Answer, Json
from tests.hosts.upstream import Upstream, serving
from tests.integration.harness import PATIENCE_S, House, house, ref

WINDOW = 6_000
"""Tokens, so that a few turns do not fit."""


def lively(number: int, given: Json) -> Any:
    """Calls the tool at every third request, twice at once at every sixth."""
    last = (given.get("messages") or given.get("input") or given["contents"])[-1]
    asked = last.get("role") == "user" and (
        isinstance(last.get("content"), str) or any("text" in one for one in last.get("parts", ()))
    )
    if asked and number % 3 == 0:
        calls = [{"of": f"é {number}-{at}"} for at in range(1 + number % 2)]
        return Answer(calls=calls, thought="Hm.")
    return Answer(f"Answer {number}: {'well ' * 60}")


class Stage:
    """What a test asks of all three."""

    def __init__(self, home: House, upstream: Upstream, there: str, base: str) -> None:
        self.home, self.upstream, self.there, self.base = home, upstream, there, base

    async def stored(self, session: str) -> list[str]:
        """The ids of the messages in the session's view."""
        rows = await self.home.rows(ref(session, agent="proxy"))
        return [row.message.id for row in rows if not row.retired_revision]

    async def settled(self, session: str, ids: Sequence[str]) -> None:
        """Waits until the session holds these messages and no others."""
        await soon(lambda: self._holds(session, list(ids)))

    async def each_stored(self, lists: Sequence[Sequence[Any]]) -> None:
        """Waits until there is a session of each of these lists of messages, and none besides."""

        async def holds() -> bool:
            ids = [await self.stored(session) for session in await self.sessions()]
            return sorted(ids) == sorted(name_by_content(one) for one in lists)

        await soon(holds)

    async def _holds(self, session: str, ids: list[str]) -> bool:
        listed = await self.sessions()
        return session in listed and await self.stored(session) == ids

    async def sessions(self) -> list[str]:
        """The sessions that there are."""
        listed = await self.home.client.sessions.list(agent_id="proxy")
        return [one.session_id for one in listed.sessions]


async def soon(holds: Callable[[], Any]) -> None:
    """Waits until it holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not await holds():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def staged(
    path: Path, answer: Any = lively, window: int = WINDOW, **more: Any
) -> AsyncIterator[Stage]:
    """All three. `more`: of the proxy's settings."""
    upstream = Upstream(answer)
    async with (
        house(path) as home,
        serving(upstream.application) as there,
        proxied(home, there, window, **more) as (_, base),
    ):
        yield Stage(home, upstream, there, base)


@asynccontextmanager
async def proxied(
    home: House, upstream: str, window: int = WINDOW, **more: Any
) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy and its address."""
    set_up = {
        "address": home.app.address,
        "openai": upstream,
        "anthropic": upstream,
        "gemini": upstream,
        "windows": Windows((("*", window),)),
        "patience": PATIENCE_S,
        **more,
    }
    proxy = Proxy(Settings(**set_up))
    async with serving(proxy.application) as base:
        yield proxy, base


@asynccontextmanager
async def apart(
    there: str, address: str, state: Path, *more: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """A proxy of its own process, as its user starts it, and its base URL. there: the provider;
    address: of the service; more: of its command line."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    words = ["--port", str(port), "--address", address, "--openai", there, "--state", str(state)]
    command = [sys.executable, "-m", "contextengine_proxy.command", *words, *more]
    proxy = await asyncio.create_subprocess_exec(*command)

    async def up() -> bool:
        with suppress(httpx2.TransportError):
            async with httpx2.AsyncClient() as client:
                return (await client.get(f"{base}/healthz")).status_code == 200
        return False

    try:
        await soon(up)
        yield proxy, base
    finally:
        with suppress(ProcessLookupError):
            proxy.kill()
        await proxy.wait()
