"""How Python's collector of circles works in a server: everything stands still for as long as it
takes, so it takes little at a time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG, TURNS, OLD_TURNS = 1_000, 0, 30_000
"""Objects that were made and not freed when it looks at them; how often it does before it looks at
what is left once more, and how often that until it looks at all there is."""


@contextmanager
def resting() -> Iterator[None]:
    """Has the collector wait until `spare`, or the end: a start makes what stays, and to look at it
    on the way took a twentieth of it."""
    working = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if working:
            gc.enable()


def spare() -> None:
    """Has the collector look at what is young, a little at a time, and at all hardly ever.

    Warm sessions are many objects that live long and hold no circles. Going through them again and
    again, as the collector does by itself, took a sixth of the time of a step; what was loaded by
    now need not be looked at at all. It looks at 1,000 objects, and every other time at what is
    left of the 1,000 before as well: 1 ms, and 2 at most. At 4,000, and 12,000 every third time, it
    took 7 ms four times a second beside 160 callers of steps, and as much in all. What they name is
    looked at as well, and of a session of 200,000 messages none of that is in the processor's
    cache: 30,000 objects took up to 57 ms there. All there are take a second or more, so that waits
    for 60 million, or for memory to be short (`health.memory`).
    """
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, TURNS, OLD_TURNS)
