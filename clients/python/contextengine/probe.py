"""Asks whether a service that was away is back, blocking. `aio_probe` is the same for asyncio; both
are written by hand, since tasks and futures are waited for in other ways."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import grpc

from .breaker import PATIENCE, Breaker


class Probe:
    """One question at a time, of all threads. It is begun by a call and goes on without it."""

    def __init__(self, breaker: Breaker, ask: Callable[[], tuple[Any, dict[str, Any]]]) -> None:
        """`ask`: the callable of the rpc that asks, and its arguments."""
        self._breaker, self._ask = breaker, ask
        self._lock = threading.Lock()
        self._answered: threading.Event | None = None
        """Set once the newest question is answered, and the breaker was told."""
        self._until = 0.0
        """How long calls wait for its answer, by the monotonic clock."""

    def ask(self) -> None:
        """Begins a question where none goes on, and waits for its answer until the question is
        `PATIENCE` old: behind one that hangs calls do not wait each anew."""
        with self._lock:
            if self._answered is None or self._answered.is_set():
                self._answered = self._begin()
                self._until = time.monotonic() + PATIENCE
            answered, patience = self._answered, max(0.0, self._until - time.monotonic())
        answered.wait(patience)

    def _begin(self) -> threading.Event:
        answered = threading.Event()

        def hear(future: Any) -> None:
            if future.code() is grpc.StatusCode.OK:
                self._breaker.heard(None, future.result())
            else:
                self._breaker.heard(future.code())
            answered.set()

        invoke, arguments = self._ask()
        invoke.future(b"", **arguments).add_done_callback(hear)
        return answered
