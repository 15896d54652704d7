"""A bounded memory of rows that only commits change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """The most recently used values by key, on one event loop.

    Values come from commits, after they are durable, and else from reads. A read that began before
    a commit must not bring the older value back after it, so a change of a key voids the reads of
    it that are under way.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._values: OrderedDict[K, V] = OrderedDict()
        self._reading: dict[K, object] = {}

    def __len__(self) -> int:
        return len(self._values)

    def put(self, key: K, value: V) -> None:
        """What a commit made of it."""
        self._reading.pop(key, None)
        self._keep(key, value)

    def drop(self, key: K) -> None:
        """It is gone, or no longer known."""
        self._reading.pop(key, None)
        self._values.pop(key, None)

    def clear(self) -> None:
        self._reading.clear()
        self._values.clear()

    async def get(self, key: K, read: Callable[[], Awaitable[V | None]]) -> V | None:
        """The value, read where it is not in memory. What is not there at all is asked for again
        each time."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
            return value
        mark = object()
        self._reading[key] = mark
        try:
            value = await read()
        finally:
            current = self._reading.get(key) is mark
            if current:
                del self._reading[key]
        if value is not None and current:
            self._keep(key, value)
        return value

    def _keep(self, key: K, value: V) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._capacity:
            self._values.popitem(last=False)
