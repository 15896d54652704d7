"""What agents spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from contextengine_server.store.charges import Spent
from contextengine_server.store.rows import Costs


class SpendLedger(Protocol):
    """What the charges of commits came to. It outlives the sessions, and the process."""

    async def spent(self, tenant: str, agent: str) -> Sequence[Spent]:
        """What an agent spent within the last day, oldest first: charges of the same five minutes
        as one. What is older may be among them."""

    async def costs(self, tenant: str) -> Sequence[Costs]:
        """What the calls of a tenant's agents took since ever, by agent, provider and model."""
