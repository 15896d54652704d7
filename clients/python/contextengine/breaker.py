"""Whether the service is known to be away, so that no call waits for it once more. No I/O; who asks
whether it is back is `aio_probe` and `probe`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from threading import Lock

import grpc

from .errors import ContextEngineError

HEALTH = "/grpc.health.v1.Health/Check"
"""The rpc that asks. An empty request means the whole server."""
SERVING = b"\x08\x01"
"""The encoded HealthCheckResponse of a server that serves. One that drains says otherwise."""
PATIENCE = 0.05
"""Seconds from its beginning that calls wait for the answer of one question, all together."""
PROBE_SECONDS = 5.0
"""How long one question may take. It goes on beside the calls, which do not wait for it."""
TRIAL_SECONDS = 60.0
"""How long a trial holds the other calls back at most: the longest deadline of a call that waits
for no model. A compaction that happens to be the trial may take ten times as long."""
FIRST_PAUSE = 5.0
"""Seconds without a question once the trial behind one has failed: as long as one that hangs takes
anyway. Twice as many each further time."""
LONGEST_PAUSE = 60.0
"""The most of them: calls that are answered again are found within a minute, and a call of 2 s that
hangs each minute costs an agent a thirtieth of its time."""

# Nobody has answered. Not all of `errors.is_away`: whoever refuses a token is there.
_NO_ANSWER = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
_BROKEN = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}


class Breaker:
    """Open from the first call that finds nobody, or nobody who answers. Half-open once the service
    says that it serves: calls go through as trials, all of them while that was never wrong, then
    one at a time. Closed once a call is answered. Safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._close()

    def _close(self) -> None:
        self._error: ContextEngineError | None = None
        """What the newest call failed with that found the service away. None: closed."""
        self._half_open = False
        self._trial_until = -math.inf
        """How long a trial holds others back, by the clock."""
        self._pause = 0.0
        """The newest pause between a trial that failed and the next question, in seconds. 0: none
        has failed."""
        self._paused_until = -math.inf

    @property
    def open(self) -> bool:
        """Whether the service is known to be away, as far as no call was answered since."""
        return self._error is not None

    @property
    def asks(self) -> bool:
        """Whether the service is to be asked now whether it is back."""
        with self._lock:
            return self.open and not self._half_open and self._clock() >= self._paused_until

    def admit(self) -> bool:
        """Lets a call through; whether it is a trial. Raises what the call failed with that found
        the service away: an error of its own for each, since raising writes on it."""
        with self._lock:
            known = self._error
            if known is None:
                return False
            now = self._clock()
            if self._half_open and (not self._pause or now >= self._trial_until):
                self._trial_until = now + TRIAL_SECONDS
                return True
        again = type(known).__new__(type(known), *known.args)
        again.__dict__.update(known.__dict__)
        raise again

    def answered(self) -> None:
        """A call was answered: the service is there."""
        with self._lock:
            self._close()

    def failed(self, error: ContextEngineError, trial: bool = False) -> None:
        """A call has given up with this error. `trial`: what `admit` said of it. Where the service
        said that it serves and a trial finds it away, it is asked the later the next time."""
        away = error.code is grpc.StatusCode.UNAVAILABLE or (
            not error.reason and error.code in _NO_ANSWER | _BROKEN
        )
        with self._lock:
            if error.reason and not away:
                self._close()
                return
            if away:
                self._error = error
            if away and trial and self._half_open:
                self._half_open = False
                self._pause = min(max(2 * self._pause, FIRST_PAUSE), LONGEST_PAUSE)
                self._paused_until = self._clock() + self._pause
            if trial:
                self._trial_until = -math.inf

    def abandoned(self, trial: bool) -> None:
        """A call has ended and says nothing of the service, since its caller cancelled it: another
        may be the trial."""
        if trial:
            with self._lock:
                self._trial_until = -math.inf

    def heard(self, code: grpc.StatusCode | None, reply: bytes = b"") -> None:
        """What became of a question: the code of its failure, or the reply. Whoever refuses it is
        there too."""
        if reply == SERVING or (
            code is not None and code not in _NO_ANSWER | {grpc.StatusCode.CANCELLED}
        ):
            with self._lock:
                self._half_open = self.open
