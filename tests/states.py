"""States of guards for tests that need no store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from contextengine_server.summarize import GuardState

T = TypeVar("T")


class MemoryStates:
    """`GuardStates` in memory."""

    def __init__(self) -> None:
        self._states: dict[str, GuardState] = {}

    async def change(self, tenant: str, step: Callable[[GuardState], tuple[GuardState, T]]) -> T:
        """See GuardStates."""
        self._states[tenant], answer = step(await self.state(tenant))
        return answer

    async def state(self, tenant: str) -> GuardState:
        """The tenant's state."""
        return self._states.get(tenant, GuardState())
