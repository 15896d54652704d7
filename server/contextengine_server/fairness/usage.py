"""What tenants hold of the server now."""

from __future__ import annotations

from collections.abc import Set
from typing import Protocol

import msgspec


class TenantUse(msgspec.Struct, frozen=True):
    """What one tenant holds: calls, those that wait for their turn included; how many of them wait;
    calls that take as long as a model or their client takes; streams; reads that wait for a
    revision; and bytes of large requests and replies in memory."""

    calls: int = 0
    waiting_calls: int = 0
    long_calls: int = 0
    streams: int = 0
    waits: int = 0
    bytes_in_flight: int = 0


class Uses(Protocol):
    """Who knows what tenants hold."""

    def of(self, tenant: str) -> TenantUse:
        """What a tenant holds now."""

    def tenants(self) -> Set[str]:
        """The tenants that hold anything."""
