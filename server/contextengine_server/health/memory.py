"""How much memory the process takes, and what is let go before the kernel ends it.

The limit is a soft one: above it caches shrink, large requests are refused and health says so, all
of it until less is taken again.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Protocol

import structlog

from contextengine_server.session.sweeper import Sweeper
from contextengine_server.telemetry.metrics import Metrics

AUTO_SHARE = 0.75
"""Of what the process may have at most: the rest is for workers, and for what comes within a
pause."""
CLEAR_SHARE = 0.9
"""Below this share of the limit all is well again."""
PAUSE_S = 0.25
"""A large request takes about as long to arrive."""
COLLECT_EVERY_S = 10.0
"""How often circles are looked for while memory is short, all of them: everything stands still for
as long as that takes."""
LEAST_CACHE = 8 << 20
"""A cache that is this small is left alone."""

MMAP_THRESHOLD, M_MMAP_THRESHOLD = 1 << 20, -3
"""Blocks from a mebibyte on, of which bodies are made, go back to the system when they are freed.
The C library would raise its threshold to 32 MiB as it goes, and keep them."""

_CGROUP, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")

log = structlog.get_logger("contextengine.memory")


class Shrinkable(Protocol):
    """A cache that can be smaller for a while."""

    bytes: int
    capacity: int

    def shrink(self) -> None:
        """Lets go of what is beyond the capacity."""


def resident() -> int:
    """The bytes of memory that this process takes; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def most() -> int:
    """The bytes that the process may have: what its control group allows, or else what there
    is; 0 where the system does not say."""
    found = limits_of_groups(_OWN_GROUPS)
    with suppress(ValueError, OSError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(found, default=0)


def auto_limit() -> int:
    """The limit where none is given; 0: there is none."""
    return int(most() * AUTO_SHARE)


def limits_of_groups(own: Path) -> list[int]:
    """What control groups allow, of versions 1 and 2: those that a file of /proc names, and those
    above them."""
    limits = []
    with suppress(OSError):
        for line in own.read_text().splitlines():
            _, kinds, path = line.split(":", 2)
            if not kinds or "memory" in kinds.split(","):
                root = _CGROUP / "memory" if kinds else _CGROUP
                name = "memory.limit_in_bytes" if kinds else "memory.max"
                group = root / path.lstrip("/")
                for folder in (group, *group.parents):
                    with suppress(OSError, ValueError):
                        limits.append(int((folder / name).read_text()))
                    if folder == root:
                        break
    return limits


@cache
def _c_library() -> ctypes.CDLL | None:
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        if hasattr(library, "malloc_trim") and hasattr(library, "mallopt"):
            return library
    return None


def give_back_large_blocks() -> None:
    """Has the C library, where it is GNU's, return large blocks as soon as they are freed."""
    if (library := _c_library()) is not None:
        library.mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD)


def _trim() -> None:
    if (library := _c_library()) is not None:
        library.malloc_trim(0)


class MemoryGuard(Sweeper):
    """Looks at what the process takes. `limit`: the soft limit in bytes, 0: none. `measure` answers
    the bytes taken."""

    topic = "memory"
    failure = "what the process takes was not looked at"
    at_once = True

    def __init__(self, limit: int, metrics: Metrics, measure: Callable[[], int] = resident) -> None:
        super().__init__()
        self.limit, self.pressed = limit, False
        self._measure = measure
        self._collected = -COLLECT_EVERY_S
        self._caches: dict[Shrinkable, int] = {}
        self._sheds = metrics.counter(
            "contextengine.process.sheds",
            "How often the process came to take more memory than its limit",
            unit="{time}",
        )
        metrics.gauge(
            "contextengine.process.resident", measure, "Memory that the process takes", unit="By"
        )
        metrics.gauge(
            "contextengine.process.memory_limit",
            lambda: self.limit,
            "Memory from which on the process sheds; 0: there is no limit",
            unit="By",
        )
        metrics.gauge(
            "contextengine.process.shedding",
            lambda: int(self.pressed),
            "1 while the process takes more memory than its limit and lets go of what it can",
        )

    def watch(self, caches: Sequence[Shrinkable]) -> None:
        """These shrink first."""
        self._caches = {one: one.capacity for one in caches}

    def why_not_ready(self) -> str:
        """What keeps the server from being ready; empty: nothing."""
        if not self.pressed:
            return ""
        return f"{self._measure()} bytes of memory are taken, the limit is {self.limit}"

    async def sweep(self) -> None:
        """Looks once, and lets go of what it can where it must."""
        taken = self._measure()
        if not self.limit or taken <= self.limit * CLEAR_SHARE:
            if self.pressed:
                self.pressed = False
                log.warning("memory_enough_again", taken=taken, limit=self.limit)
                for one, capacity in self._caches.items():
                    one.capacity = capacity
            return
        if taken > self.limit and not self.pressed:
            self.pressed = True
            self._sheds.inc()
            log.error("memory_short", taken=taken, limit=self.limit)
        if self.pressed:
            for one in self._caches:
                half = min(one.capacity, one.bytes) // 2
                one.capacity = min(one.capacity, max(LEAST_CACHE, half))
                one.shrink()
            now = asyncio.get_running_loop().time()
            if now - self._collected >= COLLECT_EVERY_S:
                self._collected = now
                gc.collect()
            await asyncio.to_thread(_trim)

    def pause_s(self) -> float:
        """See Sweeper."""
        return PAUSE_S
