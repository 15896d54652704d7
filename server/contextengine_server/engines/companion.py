"""What an engine of another host has for a session beside what it makes of lists: tools of its own,
facts, and hooks that hear of the session's end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import msgspec

from contextengine_server.context.scope import Scope

from .contract import Engine
from .hosted.kept import SessionChunks
from .rewrite import ChatMessage


class OwnTool(msgspec.Struct, frozen=True):
    """A tool of an engine's own, as the model reads of it."""

    name: str
    description: str
    schema: bytes
    """The JSON schema of its arguments."""


class Conversation(msgspec.Struct, frozen=True, eq=False):
    """A session as such an engine is told of it."""

    scope: Scope
    life: str
    """See RewriteRequest."""
    messages: Sequence[ChatMessage] = ()
    """Its view, in order."""
    compactions: int = 0
    """How often it was compacted, by whatever engine."""
    chunks: SessionChunks | None = None
    """What the engine keeps of it beside that."""


class Companion(Protocol):
    """An engine's `companion`: a member beside its contract. Everything raises EngineBroken, and
    may take its time: nothing is locked."""

    async def own_tools(self, told: Conversation) -> Sequence[OwnTool]:
        """The tools that it has for a session."""

    async def call(self, told: Conversation, name: str, arguments: Mapping[str, Any]) -> object:
        """What one of them answers: JSON, or text."""

    async def ended(self, told: Conversation, *, emptied: bool) -> None:
        """The session is over for now, or was emptied. It is told of what was said, and begins anew
        when it is asked for the session again."""

    def status(self, scope: Scope) -> Mapping[str, object]:
        """What it said of a session when it was asked for anything last; nothing where that was
        never, or not since the server began."""


def companion_of(engine: Engine) -> Companion | None:
    """Who answers for that; None: the engine has nothing of the kind."""
    return cast("Companion | None", getattr(engine, "companion", None))
