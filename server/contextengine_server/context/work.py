"""Work in proportion to a history, which says where it may stop for a moment: a generator that
yields there. Whoever runs it decides how long it stops (`slices.in_slices`), if at all."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")

AT_ONCE = 32
"""Messages between two stops of work that takes them together: some milliseconds, of large ones."""

Work = Generator[None, None, T]
"""Work that yields where it may be interrupted, and returns what came of it."""


def at_once(work: Work[T]) -> T:
    """What comes of the work, without a stop."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result


def batches(items: Iterable[T], size: int = AT_ONCE) -> Iterator[list[T]]:
    """The items in order, so many at a time."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def emptied(*many: list[Any] | dict[Any, Any]) -> Work[None]:
    """Takes all out of these, some at a time: to free much takes its time as well. Nobody else
    uses them."""
    for items in many:
        take = items.pop if isinstance(items, list) else items.popitem
        while items:
            for _ in range(min(AT_ONCE, len(items))):
                take()
            yield
