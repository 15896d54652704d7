"""How much memory the settings give: to the process, and to what is in flight."""

from __future__ import annotations

from contextengine_server.config.settings import Settings
from contextengine_server.health.memory import auto_limit

MOST_IN_FLIGHT = 1 << 30
"""Where memory is plenty: a network of ten gigabits brings no more within a second."""
SHARE_IN_FLIGHT = 8
"""The part of the memory for what is in flight: a request is worked on in several times its size,
and caches want the rest."""


def memory_limit_of(settings: Settings) -> int:
    """The soft limit of the process in bytes; 0: there is none."""
    wanted = settings.server.memory_limit
    return auto_limit() if wanted == "auto" else int(wanted)


def bytes_in_flight_of(settings: Settings) -> tuple[int, int]:
    """The bytes that may be in flight, of all tenants and of each."""
    server, memory = settings.server, memory_limit_of(settings)
    least = 2 * server.max_message_bytes
    most = min(MOST_IN_FLIGHT, memory // SHARE_IN_FLIGHT) if memory else MOST_IN_FLIGHT
    everyone = max(least, most)
    if server.max_bytes_in_flight != "auto":
        everyone = int(server.max_bytes_in_flight)
    if server.max_tenant_bytes_in_flight != "auto":
        return everyone, min(everyone, int(server.max_tenant_bytes_in_flight))
    return everyone, max(least, everyone // 2) if settings.auth.enabled else everyone
