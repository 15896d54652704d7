"""Whether the service is known to be away, so that no call waits for it once more. Pure; who asks
whether it is back is `aio_probe` and `probe`."""

from __future__ import annotations

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

_AWAY = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
_NO_ANSWER = _AWAY | {grpc.StatusCode.CANCELLED}
_BROKEN = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}


class Breaker:
    """Open from the first call that finds nobody, or nobody who answers, until one is answered.
    Safe to share between threads: each step is one assignment."""

    def __init__(self) -> None:
        self._error: ContextEngineError | None = None

    @property
    def open(self) -> bool:
        """Whether the service is known to be away."""
        return self._error is not None

    def error(self) -> ContextEngineError | None:
        """What the call failed with that found the service away, for another caller to raise: an
        error of its own, since raising writes on it. None: the service has answered meanwhile."""
        known = self._error
        if known is None:
            return None
        again = type(known).__new__(type(known), *known.args)
        again.__dict__.update(known.__dict__)
        return again

    def answered(self) -> None:
        """The service is there."""
        self._error = None

    def failed(self, error: ContextEngineError) -> None:
        """A call has given up with this error."""
        if error.code is grpc.StatusCode.UNAVAILABLE or (
            not error.reason and error.code in _AWAY | _BROKEN
        ):
            self._error = error
        elif error.reason:
            self._error = None

    def heard(self, code: grpc.StatusCode | None, reply: bytes = b"") -> None:
        """What became of a question: the code of its failure, or the reply. Whoever refuses it is
        there too."""
        if reply == SERVING or (
            code is not None and code not in _AWAY | {grpc.StatusCode.CANCELLED}
        ):
            self._error = None
