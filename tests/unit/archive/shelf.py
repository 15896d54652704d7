"""Objects in memory, which fail as they are told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from contextengine_server.archive.objects import ObjectMissing, ObjectsUnavailable


class Shelf:
    """`Objects` in a dictionary. `broken`: it does not answer; `forgetful`: it keeps fewer bytes
    than it was given; `before`: what happens before each request."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.broken = self.forgetful = False
        self.before: Callable[[str], Awaitable[None]] | None = None

    async def _asked(self, what: str) -> None:
        if self.broken:
            raise ObjectsUnavailable("no answer")
        if self.before is not None:
            await self.before(what)

    async def put(self, name: str, data: bytes) -> None:
        """Keeps an object."""
        await self._asked("put")
        self.held[name] = data[:-1] if self.forgetful else data

    async def get(self, name: str) -> bytes:
        """An object."""
        await self._asked("get")
        if name not in self.held:
            raise ObjectMissing(name)
        return self.held[name]

    async def erase(self, name: str) -> None:
        """Takes it away."""
        await self._asked("erase")
        self.held.pop(name, None)
