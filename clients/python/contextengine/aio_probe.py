"""Asks whether a service that was away is back, for asyncio. `probe` is the same for threads; both
are written by hand, since tasks and futures are waited for in other ways."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import grpc
import grpc.aio

from .breaker import PATIENCE, Breaker


class AsyncProbe:
    """One question at a time. It is begun by a call and goes on without it."""

    def __init__(self, breaker: Breaker, ask: Callable[[], tuple[Any, dict[str, Any]]]) -> None:
        """`ask`: the callable of the rpc that asks, and its arguments."""
        self._breaker, self._ask = breaker, ask
        self._task: asyncio.Task[None] | None = None
        self._until = 0.0
        """How long calls wait for its answer, by the monotonic clock."""

    async def ask(self) -> None:
        """Begins a question where none goes on, and waits for its answer until the question is
        `PATIENCE` old: behind one that hangs calls do not wait each anew."""
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._question())
            self._until = time.monotonic() + PATIENCE
        await asyncio.wait({self._task}, timeout=max(0.0, self._until - time.monotonic()))

    async def _question(self) -> None:
        try:
            invoke, arguments = self._ask()
            reply = await invoke(b"", **arguments)
        except grpc.RpcError as error:
            self._breaker.heard(error.code())
        except grpc.aio.UsageError:
            pass  # the client was closed: nobody waits for the answer
        else:
            self._breaker.heard(None, reply)
