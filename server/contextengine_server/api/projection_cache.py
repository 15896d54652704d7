"""Items of assemblies as the projection room knows them: read once, and kept with what was made of
them.

A warm context comes again and again, and most of it as it was. What a form makes of a message stays
with the message, so that a projection joins what is there, as an assembly joins frames.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock

from msgspec.structs import replace

from contextengine_server.api.projection_items import item_in
from contextengine_server.projection.model import Item, ItemCache
from contextengine_server.wire.slots import item_of

CACHE_SHARE = 4
"""Items and what was made of them take at most this part of the memory for warm sessions."""
ITEM_SHARE = 64
"""An item that takes more than this part of the room is read anew each time: it would drive out too
many others."""
OVERHEAD = 1_500
"""Bytes that an item takes in memory besides its texts, about."""


class _Counted(ItemCache):
    """What is kept of an item; its bytes count for the whole."""

    __slots__ = ("_items", "counted")

    def __init__(self, items: ProjectionCache, size: int) -> None:
        super().__init__()
        self._items = items
        self.counted: int | None = size
        """Bytes that count for this item. None: the item was let go."""

    def grew(self, size: int) -> None:
        self._items.add(self, size)


class ProjectionCache:
    """Items by their frames, bounded by their bytes; the least recently used leaves first.
    cachetools weighs an entry once, when it is put in; these grow while they are kept."""

    def __init__(self, capacity: int) -> None:
        self.bytes = 0
        self.capacity = capacity
        self._known: OrderedDict[bytes, Item] = OrderedDict()
        # Projections of large contexts are made in threads, and what they make is counted there.
        self._lock = Lock()

    def of(self, frames: Iterable[bytes]) -> list[Item]:
        """The items in these frames. Called by the event loop alone."""
        known, items = self._known, []
        for frame in frames:
            item = known.get(frame)
            if item is None:
                item = self._read(frame)
            else:
                known.move_to_end(frame)
            items.append(item)
        if self.bytes > self.capacity:
            self.shrink()
        return items

    def add(self, cache: _Counted, size: int) -> None:
        """Counts what was made of an item, as long as the item is kept."""
        with self._lock:
            if cache.counted is not None:
                cache.counted += size
                self.bytes += size

    def _read(self, frame: bytes) -> Item:
        item = item_in(item_of(frame))
        size = 2 * len(frame) + OVERHEAD
        if size <= self.capacity // ITEM_SHARE:
            item = replace(item, cache=_Counted(self, size))
            self._known[frame] = item
            with self._lock:
                self.bytes += size
        return item

    def shrink(self) -> None:
        """Lets items go until the rest fits. Called by the event loop alone."""
        while self.bytes > self.capacity and self._known:
            _, item = self._known.popitem(last=False)
            cache = item.cache
            assert isinstance(cache, _Counted)
            with self._lock:
                self.bytes -= cache.counted or 0
                cache.counted = None
