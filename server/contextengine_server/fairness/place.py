"""The place that a call holds while it is worked on, and gives back while it only waits.

Whoever waits deep within a call for what others do says so here and knows nothing of calls; outside
calls, in the background and in tests, nothing is held.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar
from typing import Protocol


class WorkingPlace(Protocol):
    """A place among those that are worked on."""

    def away(self) -> AbstractAsyncContextManager[None]:
        """Gives the place back within this context, and takes one again behind it, which may take a
        while. Raises Overloaded where the tenant waits for too much already."""

    def gives_way(self) -> bool:
        """True while a call of somebody who has none waiting is worked on beside this one."""


class NoPlace:
    """None is held."""

    def away(self) -> AbstractAsyncContextManager[None]:
        """Nothing is given back."""
        return nullcontext()

    def gives_way(self) -> bool:
        """To nobody."""
        return False


NO_PLACE = NoPlace()

PLACE: ContextVar[WorkingPlace] = ContextVar("place", default=NO_PLACE)
"""The place of the call that the current task works on."""
