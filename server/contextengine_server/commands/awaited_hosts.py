"""Hosts that lend their models when they come by, and are waited for until they do."""

from __future__ import annotations

from typing import Protocol

from contextengine_server.context.scope import Scope


class AwaitedHosts(Protocol):
    """Who is waited for."""

    @property
    def wait_ms(self) -> int:
        """How long a job waits to be taken; 0: none does."""

    def seen(self, session: Scope) -> None:
        """The session's host gave a sign of life."""
