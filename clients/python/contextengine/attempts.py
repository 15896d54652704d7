"""When to send a unary call again. Pure but for the clock that is handed in, and the chance in a
pause.

Streams are opened again by gRPC itself (`calls.service_config`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import grpc

from .calls import MAX_ATTEMPTS
from .errors import ContextEngineError, LostRace, Overloaded

RETRY_FOR = 10.0
"""Seconds for which a service that is away is asked again: a rolling restart takes less."""
# After a refusal where the server does not say when to try again: seconds, doubled each time.
FIRST_PAUSE = 0.1
# While the service is away: seconds, times 3 each time, and the longest.
GROWTH = 3
LONGEST_PAUSE = 2.0
# Clients that lost one server do not come back all at once.
JITTER = 0.2


class Attempts:
    """One call's attempts within one deadline."""

    def __init__(
        self,
        timeout: float | None,
        clock: Callable[[], float],
        *,
        retry_for: float = 0.0,
        known_away: bool = False,
    ) -> None:
        """`timeout`: seconds for all attempts together. None: no deadline. `retry_for`: seconds for
        which UNAVAILABLE is answered with another attempt; 0: it never is. `known_away`: an earlier
        call asked for that long in vain, so this one makes a few attempts only."""
        self._clock = clock
        self._began = clock()
        self._end = None if timeout is None else self._began + timeout
        self._retry_for = retry_for
        self.known_away = known_away
        """Whether the next call need not ask for as long as this one did."""
        self._absences = self._refusals = 0

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
        if error.code is grpc.StatusCode.UNAVAILABLE:
            pause = self._pause_while_away()
        else:
            self.known_away = False
            pause = self._pause_after_refusal(error)
        return pause if pause < self.timeout() else None

    def _pause_while_away(self) -> float:
        """Infinite where the service was asked for long enough."""
        self._absences += 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * GROWTH ** (self._absences - 1))
        pause *= random.uniform(1 - JITTER, 1 + JITTER)
        enough = self.known_away and self._absences >= MAX_ATTEMPTS
        late = self._clock() + pause - self._began >= self._retry_for
        if late and self._retry_for:
            self.known_away = True
        return math.inf if enough or late else pause

    def _pause_after_refusal(self, error: ContextEngineError) -> float:
        """Infinite where another attempt would not help, or it was refused often enough."""
        self._refusals += 1
        if not isinstance(error, Overloaded | LostRace) or self._refusals >= MAX_ATTEMPTS:
            return math.inf
        named = error.retry_after
        return FIRST_PAUSE * 2 ** (self._refusals - 1) if named is None else named
