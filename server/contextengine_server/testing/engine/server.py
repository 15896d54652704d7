"""A server on loopback whose engine is the one under test, and engines that break."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
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
from contextengine_server.testing.oracle.pairs import ViewRow

from .case import EngineCase


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


class ServedCase(EngineCase):
    """An engine under test behind a server."""

    def served(self, directory: Path) -> AbstractAsyncContextManager[AsyncClient]:
        """A client of a server with the engine's first variant, over a database of the
        directory."""
        block = {f"engine.{self.registration.id}": dict(self.variants[0])}
        return serving(self.registration, directory, **block)

    def few(self) -> list[tuple[str, list[ViewRow]]]:
        """The first real session of each file."""
        first = {name.rpartition(" of ")[2]: (name, rows) for name, rows in self.sessions()}
        return list(first.values())


async def play(client: AsyncClient, name: str, rows: list[ViewRow]) -> int:
    """A session as it happened, compacted on its way; the tokens of its messages."""
    for at in range(0, len(rows), 12):
        await client.ingest_batch(ref(name), [_copy(row) for row in rows[at : at + 12]])
        total = (await client.get_status(ref(name))).message_tokens
        await client.compact(ref(name), budget=tokens(max(1, total * 3 // 4)))
    return total


def _copy(row: ViewRow) -> t.Message:
    """The client gives messages ids."""
    message = t.Message()
    message.CopyFrom(row.message)
    return message


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
