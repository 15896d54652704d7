"""What a store keeps of the guards of a tenant's summarizers: one small state, changed
atomically."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Guards(Protocol):
    """A state for each tenant, opaque here. It outlives the process."""

    async def state(self, tenant: str) -> bytes:
        """The tenant's state; empty where none was ever written."""

    async def change(self, tenant: str, step: Callable[[bytes], tuple[bytes, T]]) -> T:
        """Replaces the tenant's state (empty: none yet) by the first that `step` gives for it, and
        answers the second.

        One transaction: no two changes of a tenant overlap. `step` is called off the event loop and
        maybe more than once. Where it raises, so does this, and nothing is changed.
        """
