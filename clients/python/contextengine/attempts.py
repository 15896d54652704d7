"""When to send a call again that the service refused without doing anything. Pure but for the clock
that is handed in.

What gRPC itself sends again (UNAVAILABLE) is in `calls.service_config`. Here are the refusals that
gRPC's policy cannot tell from others of the same status, by their reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .calls import MAX_ATTEMPTS
from .errors import ContextEngineError, LostRace, Overloaded

# Where the server does not say when to try again: seconds, doubled with each attempt.
FIRST_PAUSE = 0.1


class Attempts:
    """One call's attempts within one deadline."""

    def __init__(self, timeout: float | None, clock: Callable[[], float]) -> None:
        """`timeout`: seconds for all attempts together. None: no deadline."""
        self._clock = clock
        self._end = None if timeout is None else clock() + timeout
        self._failures = 0

    def remaining(self) -> float | None:
        """Seconds until the deadline, never below 0. None: there is none."""
        return None if self._end is None else max(0.0, self._end - self._clock())

    def timeout(self) -> float:
        """What is left as the `timeout` of a further call: above 0, infinite where there is no
        deadline."""
        remaining = self.remaining()
        return math.inf if remaining is None else max(0.001, remaining)

    def pause(self, error: ContextEngineError) -> float | None:
        """Seconds to wait before the next attempt. None: give up, since it would not help or would
        come too late."""
        self._failures += 1
        if not isinstance(error, Overloaded | LostRace) or self._failures >= MAX_ATTEMPTS:
            return None
        pause = error.retry_after
        if pause is None:
            pause = FIRST_PAUSE * 2 ** (self._failures - 1)
        remaining = self.remaining()
        return None if remaining is not None and pause >= remaining else pause
