"""What holds the event loop of a server in this process: processor time of the loop's thread, turn
by turn.

Wall time would say how busy the machine is. Processor time says what the server did between two
turns of the loop; what the collector took in it is taken off, since that goes by the whole test
process, unless it works as in a server that is alone (`serving_alone`).
"""

from __future__ import annotations

import asyncio
import gc
import time
from asyncio import events
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from contextengine_server.health.collector import spare


class Held:
    """The longest turn of each rpc of the server, in seconds of processor time."""

    def __init__(self) -> None:
        self.longest: dict[str, float] = {}
        self._collected = self._began = 0.0

    def note(self, rpc: str, seconds: float) -> None:
        self.longest[rpc] = max(seconds, self.longest.get(rpc, 0.0))

    def collecting(self, phase: str, _: Any) -> None:
        """For `gc.callbacks`."""
        if phase == "start":
            self._began = time.thread_time()
        else:
            self._collected += time.thread_time() - self._began

    def own_time(self) -> float:
        """Processor time of this thread, without the collector's."""
        return time.thread_time() - self._collected


@contextmanager
def serving_alone() -> Iterator[None]:
    """The collector works as in a server's process."""
    known = gc.get_threshold()
    spare()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*known)


@contextmanager
def holding_watched(*, collector: bool = False) -> Iterator[Held]:
    """Watches each turn of asyncio's own loop. The server names the task of a call by its rpc.
    `collector`: what the collector takes counts as well."""
    held, run = Held(), events.Handle._run

    def watched(handle: events.Handle) -> None:
        task = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
        before = held.own_time()
        run(handle)
        taken = held.own_time() - before
        # A call is named once its pipeline has begun, which is within its first turn.
        name = task.get_name() if isinstance(task, asyncio.Task) else ""
        if "/" in name:
            held.note(name.rpartition("/")[2], taken)

    if not collector:
        gc.callbacks.append(held.collecting)
    events.Handle._run = watched  # type: ignore[method-assign,assignment]
    try:
        yield held
    finally:
        events.Handle._run = run  # type: ignore[method-assign]
        if not collector:
            gc.callbacks.remove(held.collecting)
