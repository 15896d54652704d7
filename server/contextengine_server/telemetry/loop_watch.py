"""Whether the event loop comes round: work that holds it makes everyone wait, and none of them can
tell.

A beat on the loop says how late it comes, and a thread beside it looks which task is at work when a
beat does not come at all. A machine that has no time for the process delays a beat as well; then
the loop's thread has used none, and nothing is said to have held it.
"""

from __future__ import annotations

import asyncio
import threading
import time

from .metrics import Histogram, Metrics

BEAT_S = 0.05
"""Seconds between two looks: twenty a second cost less than a thousandth of a processor."""
HELD_S = 0.02
"""Seconds that nothing may hold the loop for."""

NOBODY = "unknown"
"""Who held the loop without letting the thread look, as native code may."""
_HELD = "contextengine.loop.held"
_HELD_SAYS = (
    "For how long the event loop did not come round because one of our own held it for more than"
    " 20 ms: an rpc, or a task of the server"
)


class LoopWatch:
    """Watches the loop that it is started on."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._late = metrics.histogram(
            "contextengine.loop.late", "How late the event loop came to what was due"
        )
        self._held = {NOBODY: self._histogram(NOBODY)}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, name="loop-watch", daemon=True)
        self._loop: asyncio.AbstractEventLoop
        self._next: asyncio.TimerHandle
        self._due = self._used = 0.0
        self._found = 0.0, ""
        """When a beat was due that did not come, and the task that was at work instead."""

    @property
    def seen(self) -> str:
        """The task that keeps the beat from coming; empty: it is not late, or the thread has not
        looked yet."""
        due, name = self._found
        return name if due == self._due else ""

    def start(self) -> None:
        """Begins; on the loop's own thread."""
        self._loop = asyncio.get_running_loop()
        self._wait()
        self._thread.start()

    def stop(self) -> None:
        """Ends; safe twice."""
        self._stopped.set()
        self._next.cancel()

    def _wait(self) -> None:
        self._used = time.thread_time()
        self._due = self._loop.time() + BEAT_S
        self._next = self._loop.call_at(self._due, self._beat)

    def _beat(self) -> None:
        late = max(0.0, self._loop.time() - self._due)
        self._late.observe(late)
        held = min(late, time.thread_time() - self._used)
        if held > HELD_S:
            name = self.seen or NOBODY
            if name not in self._held:
                self._held[name] = self._histogram(name)
            self._held[name].observe(held)
        self._wait()

    def _look(self) -> None:
        while not self._stopped.wait(HELD_S if self._is_late() else BEAT_S):
            due = self._due
            if self._is_late() and not self.seen:
                self._found = due, _at_work(self._loop)

    def _is_late(self) -> bool:
        return self._loop.time() - self._due > HELD_S / 2

    def _histogram(self, name: str) -> Histogram:
        return self._metrics.histogram(_HELD, _HELD_SAYS, {"task": name})


def _at_work(loop: asyncio.AbstractEventLoop) -> str:
    """The task that runs on a loop: a call's by the rpc that it is named after, another by its
    function."""
    task = asyncio.current_task(loop)
    if task is None:
        return NOBODY
    name = task.get_name()
    if "/" in name:
        return name
    return getattr(task.get_coro(), "__qualname__", NOBODY)
