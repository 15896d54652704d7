"""What hosts an engine of another kind: how it is made, and how it is asked."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from ..rewrite import ChatMessage, RewriteRequest


class HostedFacts(msgspec.Struct, frozen=True):
    """What is known of an engine before it is asked for anything."""

    id: str
    version: str
    description: str
    threshold: float
    """The share of the budget at which it compacts, as it says itself."""


class EngineHost(Protocol):
    """The manners of one kind of engines. Everything is called on the thread of a session."""

    async def begin(self, session_id: str) -> Any:
        """The engine for a session. Raises what its code raises."""

    async def compact(self, engine: Any, request: RewriteRequest) -> list[ChatMessage] | None:
        """Its answer to a list; None: it sees no need, or did nothing. Raises what its code
        raises."""

    async def end(self, engine: Any) -> None:
        """A session is no longer kept in memory."""
