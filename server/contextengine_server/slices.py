"""Long work on the event loop, in slices: others have their turn between two of them."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TypeVar

from contextengine_server.context.work import Work

T = TypeVar("T")

SLICE_S = 0.004
"""Seconds that long work keeps the loop at a time, about: a fifth of the 20 ms that no call may
hold it, since the step that ends a slice comes on top."""


async def in_slices(work: Work[T]) -> T:
    """What comes of the work. Work that takes less than a slice is never interrupted; between the
    slices of longer work others run, so what it reads must stay as it is meanwhile."""
    until = perf_counter() + SLICE_S
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result
        if perf_counter() >= until:
            await asyncio.sleep(0)
            until = perf_counter() + SLICE_S
