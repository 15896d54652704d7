"""Long work beside the event loop's own: in slices, between which others have their turn, or in a
thread where it cannot say where it may stop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import perf_counter
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from contextengine_server.context.work import Work

T = TypeVar("T")

SLICE_S = 0.002
"""Seconds that long work keeps the loop at a time, about: a tenth of the 20 ms that no call may
hold it, since the step that ends a slice comes on top. Other calls take six turns of the loop and
more, each of which may meet a slice."""

ASIDE_STEPS = 1_000
"""Steps of a view from which on an engine is asked in a thread. What it works out took 3 to 9 µs a
step, so 3 to 9 ms; a thread costs a tenth of one."""

ASIDE_RAW = 10_000
"""Steps behind the summaries from which on a session is planned in a thread: an engine takes 1 to
2 µs for each that it looks at, and looks at few of most."""

FREED_AT_ONCE = 1_000
"""Atoms or rows of which memory is freed in one turn of the loop: 2 to 3 µs each."""


async def in_slices(work: Work[T]) -> T:
    """What comes of the work. Work that takes less than a slice is never interrupted; between the
    slices of longer work others run, so what it reads must stay as it is meanwhile."""
    pace = Pace()
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result
        if pace.over:
            await pace.turn()


class Pace:
    """Of long work that says by itself where it may stop: `if pace.over: await pace.turn()`."""

    def __init__(self) -> None:
        self._until = perf_counter() + SLICE_S

    @property
    def over(self) -> bool:
        """True where the slice is at its end."""
        return perf_counter() >= self._until

    async def turn(self) -> None:
        """Others run; then the next slice begins."""
        await _line().turn()
        self._until = perf_counter() + SLICE_S


class _Line:
    """Long work of a loop that waits for its next slice. Of all of it one has a slice in a turn of
    the loop, so that a turn is as long with much of it as with little."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def turn(self) -> None:
        """Ends when the next slice may begin."""
        mine = self._loop.create_future()
        self._waiting.append(mine)
        if len(self._waiting) == 1:
            self._loop.call_soon(self._next)
        await mine

    def _next(self) -> None:
        waiting = self._waiting
        first = waiting.popleft()
        while first.done() and waiting:  # cancelled
            first = waiting.popleft()
        if not first.done():
            first.set_result(None)
        if waiting:
            self._loop.call_soon(self._next)


_LINES: WeakKeyDictionary[asyncio.AbstractEventLoop, _Line] = WeakKeyDictionary()


def _line() -> _Line:
    loop = asyncio.get_running_loop()
    line = _LINES.get(loop)
    if line is None:
        line = _LINES[loop] = _Line(loop)
    return line


async def aside(work: Callable[[], T]) -> T:
    """What comes of pure work, done in a thread. What it reads must stay as it is until then;
    whoever is cancelled waits for its end as well."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        # However often: the locks of the session go with the waiting, and the thread reads it yet.
        while not running.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        raise


def let_go(*many: Iterable[object] | dict[Any, Any]) -> None:
    """Holds what is in these until the loop has had turns to let go of it, some at a time: whoever
    was the last to hold a long list would free all of it at once. To be called when they are not
    needed any more: it begins with the next turn."""
    held: list[object] = []
    for some in many:
        held += some.values() if isinstance(some, dict) else some
    if len(held) > FREED_AT_ONCE:
        with suppress(RuntimeError):  # no loop runs: nobody waits
            _free(asyncio.get_running_loop(), held)


def _free(loop: asyncio.AbstractEventLoop, held: list[object]) -> None:
    del held[-FREED_AT_ONCE:]
    if held:
        loop.call_soon(_free, loop, held)
