"""What an agent may wait for the service, counted and not timed: a machine under load is slow, and
does not wait more often."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from contextengine.breaker import PATIENCE
from contextengine.connection import Connection

FIRST_S, LATER_S = 2.0, 0.05
"""Seconds that a service that is away may cost the first call to it, and all of a later turn."""


class Waits:
    """The calls of all clients of this process that could wait, since it was last asked."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, float]] = []
        """Calls that went out: the rpc, and for how many seconds it may wait."""
        self.asked = 0
        """Questions that were begun whether the service is back: one is waited for once."""

    def taken(self) -> tuple[list[tuple[str, float]], float]:
        """The calls that went out, and the seconds that the others may have waited in all."""
        sent, asked = self.sent, self.asked
        self.sent, self.asked = [], 0
        return sent, asked * PATIENCE


@contextmanager
def waits() -> Iterator[Waits]:
    """Counts, as long as it is open."""
    counted = Waits()
    attempts, begun = Connection._attempts, Connection._question

    def sending(self: Connection, call: Any, timeout: float | None) -> Any:
        made = attempts(self, call, timeout)
        bound = made.remaining()
        counted.sent.append((call.name, math.inf if bound is None else bound))
        return made

    def asking(self: Connection) -> Any:
        counted.asked += 1
        return begun(self)

    Connection._attempts, Connection._question = sending, asking  # type: ignore[method-assign]
    try:
        yield counted
    finally:
        Connection._attempts, Connection._question = attempts, begun  # type: ignore[method-assign]
