"""How a store is: its health, and the work that waits in it over all tenants. For doctor and
gauges, never for a caller's answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from contextengine_server.context.value import value


@dataclass(slots=True)
class StoreHealth:
    """How the store is."""

    ok: bool
    detail: str
    facts: dict[str, str] = field(default_factory=dict)
    """Whatever its kind of store has to say, by name. `bytes` and `free_bytes` are what it takes
    and what is left."""


@value
class Workload:
    """What waits and what runs."""

    debts_waiting: int = 0
    """Background jobs that nobody works on yet."""
    debts_running: int = 0
    """Under a live lease."""
    debts_held: int = 0
    """Put off until they are forced."""
    oldest_ms: int | None = None
    """When the oldest of those that wait was queued, milliseconds since 1970 UTC."""
    lent_open: int = 0
    """Jobs for lent models that have no result."""
    guards: Sequence[bytes] = ()
    """The state of every tenant's guards, as `Guards` keeps it."""


class Workloads(Protocol):
    """Looks at the work. Raises StoreUnavailable."""

    async def now(self, now_ms: int) -> Workload:
        """What waits and what runs."""

    def queued(self) -> int:
        """Writes that wait for the one who writes. Costs nothing, from any thread."""
