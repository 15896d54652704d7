"""What hosts an engine of another kind: how it is made, and how it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from ..companion import Conversation
from ..rewrite import ChatMessage, RewriteRequest


class HostedFacts(msgspec.Struct, frozen=True):
    """What is known of an engine before it is asked for anything."""

    id: str
    version: str
    description: str
    threshold: float
    """The share of the budget at which it compacts, as it says itself."""


class EngineHost(Protocol):
    """The manners of one kind of engines. Everything is called on the thread of a session. What not
    every kind has is answered here."""

    async def begin(self, session_id: str, told: Conversation) -> Any:
        """The engine for a session. Raises what its code raises."""

    async def compact(self, engine: Any, request: RewriteRequest) -> list[ChatMessage] | None:
        """Its answer to a list; None: it sees no need, or did nothing. Raises what its code
        raises."""

    async def tools(self, engine: Any) -> list[Any]:
        """The schemas of its own tools, as it says them. Here: none."""
        return []

    async def call(
        self, engine: Any, name: str, arguments: dict[str, Any], messages: list[ChatMessage]
    ) -> object:
        """What one of them answers. Raises what its code raises."""
        return {"error": f"there is no tool {name!r}"}

    async def status(self, engine: Any) -> Mapping[str, object]:
        """What it says of itself. Raises what its code raises. Here: nothing."""
        return {}

    async def ended(
        self, engine: Any, session_id: str, messages: list[ChatMessage], *, emptied: bool
    ) -> None:
        """A session is over for now, or was emptied. Raises what its code raises. Here: nothing."""
        return

    async def end(self, engine: Any) -> None:
        """A session is no longer kept in memory."""
