"""Watch: what happens to sessions, as it happens."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from contextengine_server.telemetry.events import Event, Events, Watched


class Watch(msgspec.Struct, frozen=True):
    """Follows events."""

    events: Events

    def run(self, watched: Watched, resume: str) -> AsyncIterator[Event]:
        """Events from now on, or behind a position."""
        return self.events.watch(watched, resume)

    def position(self, event: Event) -> str:
        """Where to resume behind an event."""
        return self.events.position(event.number)
