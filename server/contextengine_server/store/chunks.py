"""What plugins keep beside the messages of a session, as values (docs/plugins.md)."""

from __future__ import annotations

import msgspec

from contextengine_server.context.scope import Scope


class ChunkShelf(msgspec.Struct, frozen=True):
    """Where a plugin keeps chunks: they go with the session."""

    scope: Scope
    place: str
    """Which of its stores of chunks, as the plugin names it."""
    name: str
    """What the plugin calls the session that it keeps them for."""


class Chunk(msgspec.Struct, frozen=True):
    """A text that a plugin keeps. Its id is unique on its shelf."""

    id: str
    content: str
    compacted: bool
    """It is in others by now."""
    number: int
    """Rises with every chunk that is new to its session."""
    created_ms: int
    updated_ms: int


class ChunkCounts(msgspec.Struct, frozen=True):
    """How much is kept, or was erased."""

    sessions: int = 0
    chunks: int = 0
    compacted: int = 0
    bytes: int = 0
    """Of their texts in UTF-8."""
