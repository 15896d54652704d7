"""Harnesses that lend their models only while they are in a call of their own: they come by, take
jobs as data, and bring the results when they come by again (docs/semantics.md#summarizers).

A job waits a bounded time for such a visit where the host said that it makes them. Who was waited
for in vain is not waited for again until it gives a sign of life.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

MAX_MISSED = 10_000
"""Sessions of which it is remembered that nobody came by."""

SessionName = tuple[str, str, str]
"""A session, as tenant, agent and id."""

Lends = Callable[[SessionName], Awaitable[bool]]
"""Whether the host of a session said that it lends its model when it comes by."""


class Visits:
    """Who is expected to come by. Belongs to one event loop."""

    def __init__(self, lends: Lends, wait_ms: int) -> None:
        self._lends = lends
        self.wait_ms = wait_ms
        """How long a job waits to be taken."""
        self._missed: dict[SessionName, None] = {}

    async def expected(self, session: SessionName) -> bool:
        """True where the session's host may come by for a job."""
        return session not in self._missed and await self._lends(session)

    def seen(self, session: SessionName) -> None:
        """The host gave a sign of life."""
        self._missed.pop(session, None)

    def awaits(self, session: SessionName, queued_ms: int, now_ms: int) -> bool:
        """True while a job that nobody has taken yet waits for a visit; once it has waited long
        enough, the host is not waited for again until it is seen."""
        if session in self._missed:
            return False
        if now_ms < queued_ms + self.wait_ms:
            return True
        if len(self._missed) >= MAX_MISSED:
            del self._missed[next(iter(self._missed))]
        self._missed[session] = None
        return False
