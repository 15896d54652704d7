"""Calls as admission sees them."""

from __future__ import annotations

import asyncio
from typing import Protocol

import msgspec

from contextengine_server.errors import DomainError
from contextengine_server.fairness.held import Held


class Stoppable(Protocol):
    """A call that can be told to stop, and why."""

    working: bool
    """True while it holds a place of those that are worked on."""
    turn: asyncio.Future[None] | None
    """What it waits for until it has one, or did."""

    @property
    def tenant(self) -> str:
        """On whose behalf."""
        ...

    def stop(self, error: DomainError) -> None: ...

    def remaining(self) -> float | None: ...


class InFlight(msgspec.Struct, eq=False):
    """Calls of one kind that are known to the server. Who is among `calls` was admitted."""

    kind: str
    """As quotas name it."""
    what: str
    """In words, and the setting of its limit."""
    calls: Held[Stoppable]
