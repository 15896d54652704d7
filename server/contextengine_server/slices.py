"""Long work beside the event loop's own: in slices, between which others have their turn, or in a
thread where it cannot say where it may stop."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from contextengine_server.context.work import Work
from contextengine_server.fairness.place import PLACE

T = TypeVar("T")

SLICE_S = 0.0005
"""Seconds that long work keeps the loop at a time, about. Other calls take a dozen turns of the
loop, each of which meets a slice: beside batches of 200 messages the server worked for 30 to 45 ms
(p90) from a quiet tenant's call to its answer at slices of 2 ms and for 20 to 25 at these, and a
batch took as much of the processor either way."""

FREE_TURNS = 5
"""Turns of the loop without a slice, between any two. gRPC takes some from the headers of a call
until anybody can know whose it is, and put it ahead of others: beside batches of 200 messages that
took 2.5 ms (p50) where each turn had a slice, and 1.2 so. A turn in which nothing is to be done
costs some 5 µs."""

PAUSE_S = 0.003
"""Seconds that long work waits between slices while a call of a tenant that has none waiting is
worked on beside it: a slice fills each turn of the loop, of which such a call takes a dozen. Beside
batches of 200 messages the loop worked for 8 to 9 ms (p99) from its start to its reply so, and for
10 to 15 without, and did as many batches."""

ASIDE_STEPS = 1_000
"""Steps of a view from which on an engine is asked in a thread. What it works out took 3 to 9 µs a
step, so 3 to 9 ms; a thread costs a tenth of one."""

ASIDE_RAW = 4_000
"""Steps behind the summaries from which on a session is planned in a thread: an engine takes up to
4 µs for each that it looks at, and looks at few of most."""

FREED_AT_ONCE = 1_000
"""Atoms or rows of which memory is freed in one turn of the loop: 2 to 3 µs each."""

HELD_STILL_S = 0.05
"""After how long what others held is looked at again: they plan or read, some milliseconds."""


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
        if PLACE.get().gives_way():
            await asyncio.sleep(PAUSE_S)
        await _of_loop(_LINES, _Line).turn()
        self._until = perf_counter() + SLICE_S


class _Line:
    """Long work of a loop that waits for its next slice. Of all of it one has a slice, and then
    come turns of the loop without any: a turn is as long with much of it as with little."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def turn(self) -> None:
        """Ends when the next slice may begin."""
        mine = self._loop.create_future()
        self._waiting.append(mine)
        if len(self._waiting) == 1:
            self._loop.call_soon(self._next, FREE_TURNS)
        await mine

    def _next(self, free: int) -> None:
        if free:
            self._loop.call_soon(self._next, free - 1)
            return
        waiting = self._waiting
        first = waiting.popleft()
        while first.done() and waiting:  # cancelled
            first = waiting.popleft()
        if not first.done():
            first.set_result(None)
        if waiting:
            self._loop.call_soon(self._next, FREE_TURNS)


_LINES: WeakKeyDictionary[asyncio.AbstractEventLoop, _Line] = WeakKeyDictionary()


def _of_loop(
    known: WeakKeyDictionary[asyncio.AbstractEventLoop, T],
    make: Callable[[asyncio.AbstractEventLoop], T],
) -> T:
    """What the running loop has one of. Raises RuntimeError where none runs."""
    loop = asyncio.get_running_loop()
    found = known.get(loop)
    if found is None:
        found = known[loop] = make(loop)
    return found


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


def let_go(*many: list[Any] | dict[Any, Any]) -> None:
    """Has the loop free these, some at a time, once nobody else holds them: whoever was the last to
    hold a long one would free all of it at once. Nothing in them is touched here, since only to
    count 200,000 references took 150 ms."""
    long = [items for items in many if len(items) > FREED_AT_ONCE]
    if long:
        with suppress(RuntimeError):  # no loop runs: nobody waits
            _of_loop(_BINS, _Bin).add(long)


_ALONE = 2
"""References to what nobody else holds: the bin's own, and the argument of `sys.getrefcount`."""


class _Bin:
    """What a loop is to free. A piece is freed in a turn of the loop, however much there is."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._held: dict[int, list[Any] | dict[Any, Any]] = {}
        """By identity: what was let go of twice is held once."""
        self._at_it = False

    def add(self, many: list[list[Any] | dict[Any, Any]]) -> None:
        """These are to be freed."""
        self._held.update((id(items), items) for items in many)
        if not self._at_it:
            self._at_it = True
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        for key in self._held:
            if sys.getrefcount(self._held[key]) <= _ALONE:
                if not _taken(self._held[key]):
                    del self._held[key]
                self._loop.call_soon(self._next)
                return
        self._at_it = bool(self._held)
        if self._at_it:
            self._loop.call_later(HELD_STILL_S, self._next)


def _taken(items: list[Any] | dict[Any, Any]) -> bool:
    """Takes some out of these; False where nothing is left."""
    if isinstance(items, list):
        del items[-FREED_AT_ONCE:]
    else:
        for _ in range(min(FREED_AT_ONCE, len(items))):
            items.popitem()
    return bool(items)


_BINS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Bin] = WeakKeyDictionary()
