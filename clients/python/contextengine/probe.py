"""Asks whether a service that was away is back, blocking. `aio_probe` is the same for asyncio; both
are written by hand, since tasks and futures are waited for in other ways."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import grpc

from .breaker import PATIENCE, Breaker


class Probe:
    """One question at a time, of all threads. It is begun by a call and goes on without it."""

    def __init__(self, breaker: Breaker, ask: Callable[[], tuple[Any, dict[str, Any]]]) -> None:
        """`ask`: the callable of the rpc that asks, and its arguments."""
        self._breaker, self._ask = breaker, ask
        self._lock = threading.Lock()
        self._future: Any = None
        self._until = 0.0
        """How long calls wait for its answer, by the monotonic clock."""

    def finds_service(self) -> bool:
        """Whether the service is back, as far as it says so within the time that calls wait for a
        question: behind one that hangs they do not wait each anew."""
        with self._lock:
            if self._future is None or self._future.done():
                invoke, arguments = self._ask()
                self._future = invoke.future(b"", **arguments)
                self._future.add_done_callback(self._hear)
                self._until = time.monotonic() + PATIENCE
            future, patience = self._future, max(0.0, self._until - time.monotonic())
        with suppress(grpc.FutureTimeoutError, grpc.FutureCancelledError):
            future.exception(timeout=patience)
            self._hear(future)
        return not self._breaker.open

    def _hear(self, future: Any) -> None:
        if future.code() is grpc.StatusCode.OK:
            self._breaker.heard(None, future.result())
        else:
            self._breaker.heard(future.code())
