"""What hosted engines keep of the session that they are at work for, beside its messages: chunks of
text, which go with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol

import msgspec


class SessionChunks(Protocol):
    """The chunks of one session. May be called on the thread of a hosted engine. `place`: which of
    the engine's stores; `name`: what it calls the session."""

    async def save(self, place: str, texts: Sequence[tuple[str, Mapping[str, str]]]) -> None:
        """Keeps texts by name and id, all or none. One whose id is there has the new text."""

    async def on(self, place: str, name: str, *, compacted: bool) -> list[dict[str, Any]]:
        """In the order in which they came: `chunk_id`, `content`, `compacted` (0 or 1),
        `created_at` and `updated_at` in seconds since 1970 UTC. `compacted`: those as well."""

    async def mark(self, place: str, name: str, ids: Sequence[str]) -> None:
        """These are in others by now."""

    async def clear(self, place: str, name: str) -> None:
        """Erases those of a name."""

    async def counts(self, place: str) -> dict[str, int]:
        """`sessions` (names), `chunks`, `compacted` and `bytes`."""


class AtWork(msgspec.Struct, frozen=True):
    """Who is at work, and for which session."""

    chunks: SessionChunks
    plugin: str
    folder: Path
    """The plugin's."""

    def place_of(self, path: Path) -> str:
        """What a store of the plugin's is called wherever the plugin stands."""
        there, folder = path.resolve(), self.folder.resolve()
        inside = path.is_absolute() and there.is_relative_to(folder)
        return f"{self.plugin}/{there.relative_to(folder) if inside else path}"

    @contextmanager
    def working(self) -> Iterator[None]:
        """What is called meanwhile knows of it, and so do the tasks that it begins."""
        token = AT_WORK.set(self)
        try:
            yield
        finally:
            AT_WORK.reset(token)


AT_WORK: ContextVar[AtWork | None] = ContextVar("contextengine_at_work", default=None)
