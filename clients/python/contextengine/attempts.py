"""When to send a unary call again. Pure but for the clock that is handed in, and the chance in a
pause.

Streams are opened again by gRPC itself (`calls.service_config`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from threading import Lock

import grpc

from .calls import MAX_ATTEMPTS
from .errors import ContextEngineError, LostRace, Overloaded

RETRY_FOR = 10.0
"""Seconds for which a service that is away is asked again: a rolling restart takes less."""
# After a refusal where the server does not say when to try again: seconds, doubled each time.
FIRST_PAUSE = 0.1
# While the service is away: seconds, times 3 each time, and the longest. Even with the jitter it is
# below a second, so that a server that is back is used within one.
GROWTH = 3
LONGEST_PAUSE = 0.8
# Clients that lost one server do not come back all at once.
JITTER = 0.2


class Absence:
    """Since when the service is away, as all calls of one connection see it: they wait for it
    together and not each anew. Safe to share between threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = Lock()
        self._answered = -math.inf
        self._since: float | None = None

    def end(self) -> None:
        """The service has answered something."""
        with self._lock:
            self._answered, self._since = self._clock(), None

    def begin(self, sent: float) -> None:
        """An attempt that was sent at that time found nobody. What another call was answered
        meanwhile is the newer news."""
        with self._lock:
            if self._since is None and self._answered <= sent:
                self._since = self._clock()

    def began(self) -> float:
        """When the first attempt found nobody, by the clock; infinite while the service is
        there."""
        with self._lock:
            return math.inf if self._since is None else self._since


class Attempts:
    """One call's attempts within one deadline."""

    def __init__(
        self,
        timeout: float | None,
        clock: Callable[[], float],
        *,
        retry_for: float = 0.0,
        absence: Absence | None = None,
    ) -> None:
        """`timeout`: seconds for all attempts together. None: no deadline. `retry_for`: seconds for
        which UNAVAILABLE is answered with another attempt; 0: it never is. `absence`: what the
        connection knows; they count from its beginning. None: nothing."""
        self._clock = clock
        self._sent = clock()
        self._end = None if timeout is None else self._sent + timeout
        self._retry_for = retry_for
        self._absence = Absence(clock) if absence is None else absence
        self._missed = math.inf
        """When the first attempt of this call found nobody."""
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
            # A deadline that passed or a broken connection has no reason, and is no answer.
            if error.reason:
                self._absence.end()
            pause = self._pause_after_refusal(error)
        if pause >= self.timeout():
            return None
        self._sent = self._clock() + pause
        return pause

    def _pause_while_away(self) -> float:
        """Infinite where the service was asked for long enough."""
        now = self._clock()
        self._absence.begin(self._sent)
        self._missed = min(self._missed, now)
        self._absences += 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * GROWTH ** (self._absences - 1))
        pause *= random.uniform(1 - JITTER, 1 + JITTER)
        # Where others are answered meanwhile, this call still does not ask for ever.
        since = min(self._missed, self._absence.began())
        return math.inf if now + pause - since >= self._retry_for else pause

    def _pause_after_refusal(self, error: ContextEngineError) -> float:
        """Infinite where another attempt would not help, or it was refused often enough."""
        self._refusals += 1
        if not isinstance(error, Overloaded | LostRace) or self._refusals >= MAX_ATTEMPTS:
            return math.inf
        named = error.retry_after
        return FIRST_PAUSE * 2 ** (self._refusals - 1) if named is None else named
