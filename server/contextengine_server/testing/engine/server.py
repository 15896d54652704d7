"""A server on loopback whose engine is the one under test, and engines that break."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from contextengine import AsyncClient
from contextengine import types as t
from contextengine_server.app import running
from contextengine_server.config.load import load_settings
from contextengine_server.engines.catalogue import Catalogue
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.registration import Registration
from contextengine_server.plugins.engines import installed_engines


@asynccontextmanager
async def serving(
    registration: Registration, directory: Path, **settings: Any
) -> AsyncIterator[AsyncClient]:
    """A client of a server that chooses this engine, over the database of the directory.
    `settings` are dotted paths, with __ for dots."""
    owner = registration.owner or "plugin:suite"
    others = [one for one in installed_engines().registrations if one.id != registration.id]
    catalogue = Catalogue(tuple(others)).plus(replace(registration, owner=owner))
    flags = {
        "server.address": "127.0.0.1:0",
        "store.url": str(directory / "suite.db"),
        "engine.default": registration.id,
        **{name.replace("__", "."): value for name, value in settings.items()},
    }
    async with running(load_settings(None, flags, {}, catalogue)) as app:
        client = AsyncClient(app.address)
        try:
            yield client
        finally:
            await client.close()


def ref(name: str = "one") -> t.SessionRef:
    """A session of the suite's agent."""
    return t.SessionRef(agent_id="suite", session_id=name)


def tokens(number: int) -> t.Budget:
    """A budget of so many tokens for messages."""
    return t.Budget(message_tokens=number)


class Breaking:
    """The engine, but that one method raises once it is told to; and how often it was disposed
    of."""

    def __init__(self, engine: Engine, broken: Callable[[], str] = str) -> None:
        self._engine, self._broken = engine, broken
        self.disposed = 0

    async def dispose(self) -> None:
        """Counts what comes to its end."""
        await self._engine.dispose()
        self.disposed += 1

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._engine, name)
        if not callable(attribute):
            return attribute

        def call(*arguments: Any) -> Any:
            if self._broken() == name:
                raise RuntimeError("broken by the suite")
            return attribute(*arguments)

        return call
