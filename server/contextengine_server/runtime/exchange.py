"""What happens to sessions on one server is told on all that share its store: events go into the
store's feed, in batches and beside the commits that they are about, and come back from there in one
order for everybody, those of this server as well. So a position means the same on every server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import msgspec
import structlog

from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.feed import Batch
from contextengine_server.store.protocols import Feed
from contextengine_server.telemetry.events import Event, Events

FEED = "feed"
"""The life that positions name: all servers over one database share it."""
PAUSE_S = 0.1
"""How long events are gathered, and how often it is looked for those of others at least."""
LEAST_S = 0.02
"""And at most: servers that wake each other would do nothing else."""
LOAD_MS = 60_000
"""A server that starts holds what happened within this time, for those who resume."""
KEEP_MS = 600_000
"""How long events are kept in the feed."""
TRIM_S = 60.0
AT_ONCE = 64
"""Batches that are read at once."""

log = structlog.get_logger("contextengine.exchange")

Told = Callable[[Event | None], Awaitable[None]]
"""Hears of what happened on another server; None: something was missed."""

Body = tuple[str, list[Event]]
"""Which server tells it, and what; nothing: it could not keep all that it had to tell."""

_decode = msgspec.msgpack.Decoder(Body).decode
_encode = msgspec.msgpack.Encoder().encode


class Exchange:
    """Tells others, and hears what they tell. `name` is this run of the server."""

    def __init__(
        self, feed: Feed, events: Events, clock_ms: Callable[[], int], name: str, told: Told
    ) -> None:
        self._feed, self._events, self._clock_ms = feed, events, clock_ms
        self._name, self._told = name, told
        self._number = 0
        """The newest note that was heard."""
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Hears what happened lately, then whatever comes. Raises StoreUnavailable."""
        self._number = max(0, (self._clock_ms() - LOAD_MS) * 1_000)
        self._events.share(FEED, self._number)
        await self._hear(tell=False)
        self._task = asyncio.create_task(self._run(), name="exchange")

    async def stop(self) -> None:
        """Tells what there is to tell, then ends."""
        if self._task is None:
            return
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        self._task = None
        with suppress(StoreUnavailable):
            await self.swap()

    async def swap(self) -> None:
        """Tells what is to be told, and hears what is there. Raises StoreUnavailable; what was to
        be told is told the next time then."""
        with self._events.unsaid() as (events, lost):
            if lost:
                await self._feed.post(1, _encode((self._name, [])))
            if events:
                await self._feed.post(len(events), _encode((self._name, events)))
        await self._hear(tell=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        trimmed = loop.time()
        while True:
            try:
                await self._feed.posted(PAUSE_S)
                await self.swap()
                if loop.time() > trimmed + TRIM_S:
                    trimmed = loop.time()
                    await self._feed.trim(KEEP_MS)
            except StoreUnavailable:
                await asyncio.sleep(PAUSE_S)  # the store says so itself, once
            except Exception:
                log.exception("events were not exchanged")
                await asyncio.sleep(PAUSE_S)
            await asyncio.sleep(LEAST_S)

    async def _hear(self, *, tell: bool) -> None:
        while batches := await self._feed.since(self._number, AT_ONCE):
            await self._heard(batches, tell=tell)

    async def _heard(self, batches: Sequence[Batch], *, tell: bool) -> None:
        for batch in batches:
            if batch.before > self._number:
                await self._missed(batch.before, tell=tell)
            try:
                by, events = _decode(batch.body)
            except msgspec.MsgspecError as error:
                # By a server of another version, say. What stands behind it is heard all the same.
                log.warning("events cannot be read", number=batch.last, why=str(error))
                by, events = "", []
            if not events:
                await self._missed(batch.last, tell=tell)
            for number, event in enumerate(events, batch.first):
                self._events.emit(
                    event.name,
                    event.tenant,
                    event.agent,
                    event.session,
                    revision=event.revision,
                    counts=event.counts,
                    attributes=event.attributes,
                    told=(number, event.time_ms),
                )
                if tell and by != self._name:
                    await self._told(event)
            self._number = batch.last

    async def _missed(self, number: int, *, tell: bool) -> None:
        self._events.lose(number)
        if tell:
            await self._told(None)
