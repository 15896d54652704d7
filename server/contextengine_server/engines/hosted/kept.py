"""What hosted engines keep of sessions outside the server's store, and how it goes with them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol
from weakref import WeakSet

import structlog

from contextengine_server.context.scope import Scope

from .held import session_name

log = structlog.get_logger("contextengine.engines")


class SessionKeeper(Protocol):
    """Keeps something of sessions in this process."""

    def erase(self, session_id: str) -> None:
        """Erases what is kept of a session, by the id that hosted engines know it by. Blocks."""


KEEPERS: WeakSet[SessionKeeper] = WeakSet()
"""All that there are."""


async def erase_kept(scopes: Iterable[Scope]) -> None:
    """Erases what is kept of sessions that were deleted. What cannot be erased is logged with the
    keeper: the sessions are gone all the same."""
    keepers = list(KEEPERS)
    if not keepers:
        return

    def erase() -> None:
        for scope in scopes:
            for keeper in keepers:
                try:
                    keeper.erase(session_name(scope))
                except Exception:
                    log.exception("kept_not_erased", keeper=repr(keeper))

    await asyncio.to_thread(erase)
