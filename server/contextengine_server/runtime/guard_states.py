"""The guards of tenants' summarizers, kept in the store: they outlive a restart, and what they
count is counted once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import structlog

from contextengine_server.store.protocols import Guards
from contextengine_server.summarize import GuardState

T = TypeVar("T")

log = structlog.get_logger("contextengine.guards")


class StoredStates:
    """`GuardStates` over a store."""

    def __init__(self, guards: Guards) -> None:
        self._guards = guards

    async def change(self, tenant: str, step: Callable[[GuardState], tuple[GuardState, T]]) -> T:
        """Replaces the tenant's state by the first that `step` gives, and answers the second, in
        one transaction."""

        def stored(before: bytes) -> tuple[bytes, T]:
            state, answer = step(read_state(before))
            return state.encode().encode(), answer

        return await self._guards.change(tenant, stored)

    async def state(self, tenant: str) -> GuardState:
        """The tenant's state."""
        return read_state(await self._guards.state(tenant))


def read_state(stored: bytes) -> GuardState:
    """The state that a store keeps; a new one where it cannot be read."""
    try:
        return GuardState.decode(stored.decode())
    except ValueError:
        # A state that cannot be read would keep the tenant from its models for ever.
        log.warning("the state of a summarizer's guard cannot be read and begins anew")
        return GuardState()
