"""Bringing sessions into the archive and back.

The object is there, and read back, before a row goes; a row is there before the object is. So
whatever ends in between, the session is whole in one of the two places, and what may be left over
is an object that nobody relies on, which `clean` erases.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import suppress
from uuid import uuid4

import msgspec
import structlog

from contextengine_server.context.scope import Scope
from contextengine_server.errors import CorruptRow, StoreDown
from contextengine_server.store.archives import ArchivedObject, ArchiveTotals
from contextengine_server.store.errors import RevisionConflict
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import MessageRow, SessionHead, SummaryRow

from .objects import ObjectMissing, Objects, ObjectsUnavailable
from .parcel import ObjectDamaged, packed, unpacked

log = structlog.get_logger("contextengine.archive")

RETRY_MS = 1_000
_AT_ONCE = 4
"""Sessions that come back at a time: each is in memory as a whole."""
_PAGE = 256
"""Messages that are read at once."""
STALE_MS = 3_600_000
"""An object that no session went into by then is given up: writing one takes minutes at most."""


class ArchiveCounts(msgspec.Struct):
    """What was done since the start."""

    archived: int = 0
    restored: int = 0
    restored_bytes: int = 0
    failed: int = 0
    """Sessions that were asked for and did not come back."""
    damaged: int = 0
    """Of these, those whose object is not what was written."""
    erased: int = 0
    """Objects."""


class ColdRoom:
    """The archive of a store. `objects`: where it is; None: nowhere, so that nothing goes and
    nothing comes back. `kept_ms`: how long an object stays once its session came back.
    `max_bytes`: a session of more bytes stays in the store."""

    def __init__(
        self,
        store: Store,
        objects: Objects | None,
        clock_ms: Callable[[], int],
        *,
        kept_ms: int = 0,
        max_bytes: int = 64 << 20,
        new_id: Callable[[], str] = lambda: uuid4().hex,
    ) -> None:
        self._store, self.objects, self._clock_ms = store, objects, clock_ms
        self._kept_ms, self._max_bytes, self._new_id = kept_ms, max_bytes, new_id
        self._coming: dict[Scope, asyncio.Task[SessionHead | None]] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)
        self.counts = ArchiveCounts()

    async def put_away(self, head: SessionHead) -> ArchivedObject | None:
        """Brings a session into the archive, where it still is as it was seen, and answers its
        object; None: somebody uses it, or it is too large. Raises ObjectsUnavailable, and
        ObjectDamaged where what was written is not what is read."""
        if self.objects is None:
            raise ObjectsUnavailable("there is no archive: set archive.url")
        rows = await self._rows(head)
        if rows is None:
            return None
        data = await asyncio.to_thread(packed, head, *rows)
        messages, summaries = rows
        row = ArchivedObject(
            head.scope,
            f"{_hashed(head.scope[:1])}/{_hashed(head.scope)}/{self._new_id()}.gz",
            head.incarnation,
            await asyncio.to_thread(_digest, data),
            len(data),
            len(messages),
            len(summaries),
            any(one.pinned and not one.retired_revision for one in messages),
            self._clock_ms(),
        )
        await self._store.archives.reserve(row)
        await self.objects.put(row.name, data)
        if await asyncio.to_thread(_digest, await self.objects.get(row.name)) != row.digest:
            raise ObjectDamaged(f"{row.name} reads back as something else than was written")
        try:
            await self._store.archives.move(head, row)
        except RevisionConflict:
            # Whoever came first goes on, and nothing relies on the object. Its row goes in time, or
            # went already, where this server stood still for so long that it was given up.
            with suppress(ObjectsUnavailable):
                await self.objects.erase(row.name)
            return None
        self.counts.archived += 1
        return row

    async def _rows(self, head: SessionHead) -> tuple[list[MessageRow], list[SummaryRow]] | None:
        """All rows of a session as of this head; None where it is another by now, or too large."""
        messages: list[MessageRow] = []
        size, first = 0, 1
        while first <= head.last_sequence:
            last = first + _PAGE - 1
            page = await self._store.messages(head.scope, first, last, retired=True)
            messages += page
            size += sum(len(one.body) for one in page)
            if size > self._max_bytes:
                log.info("too large for the archive", session=head.scope.session, bytes=size)
                return None
            first = last + 1
        summaries = await self._store.summaries(head.scope, retired=True)
        now = await self._store.head(head.scope)
        return (messages, summaries) if now is not None and now.same_as(head) else None

    async def bring_back(self, head: SessionHead) -> SessionHead | None:
        """Brings an archived session back, and answers its head; None where it is gone. However
        many ask for it, it comes once, also where they give up meanwhile. Raises StoreDown while
        the archive cannot be read, and CorruptRow where its object is damaged."""
        coming = self._coming.get(head.scope)
        if coming is None:
            coming = asyncio.create_task(self._bring_back(head))
            self._coming[head.scope] = coming
            coming.add_done_callback(lambda task: self._came(head.scope, task))
        return await asyncio.shield(coming)

    def _came(self, scope: Scope, task: asyncio.Task[SessionHead | None]) -> None:
        del self._coming[scope]
        if not task.cancelled() and task.exception() is not None:
            self.counts.failed += 1

    async def _bring_back(self, head: SessionHead) -> SessionHead | None:
        async with self._places:
            row = await self._store.archives.object_of(head)
            now = await self._store.head(head.scope)
            if now is None or not now.same_as(head):
                return now
            try:
                messages, summaries = await self._content(head, row)
            except ObjectsUnavailable as error:
                # Its text names machines, which are the operator's business.
                log.error("archive_unavailable", session=head.scope.session, detail=str(error))
                raise StoreDown(
                    f"session {head.scope.session!r} is in the archive, which cannot be read now;"
                    " nothing was changed. Try again, and have the operator run `contextengine"
                    " doctor` if it lasts",
                    metadata={"session_id": head.scope.session},
                    retry_after_ms=RETRY_MS,
                ) from error
            except (ObjectMissing, ObjectDamaged) as error:
                self.counts.damaged += 1
                log.error(
                    "archive_damaged",
                    session=head.scope.session,
                    object=head.archived,
                    detail=str(error),
                )
                what = (
                    "is not there" if isinstance(error, ObjectMissing) else f"is damaged: {error}"
                )
                raise CorruptRow(
                    f"session {head.scope.session!r} is in the archive, and its object"
                    f" {head.archived} {what}. Nothing of it is shown: have the operator put the"
                    " object back from another version or a copy of the bucket; the session can"
                    " be deleted",
                    metadata={"session_id": head.scope.session, "object": head.archived},
                ) from error
            try:
                await self._store.archives.put_back(head, messages, summaries, self._clock_ms())
            except RevisionConflict:
                pass  # another server brought it back, or it was deleted
            else:
                self.counts.restored += 1
                self.counts.restored_bytes += row.size if row is not None else 0
            return await self._store.head(head.scope)

    async def _content(
        self, head: SessionHead, row: ArchivedObject | None
    ) -> tuple[list[MessageRow], list[SummaryRow]]:
        if row is None:
            raise ObjectDamaged("the store knows of no such object")
        if self.objects is None:
            raise ObjectsUnavailable("archive.url is not set")
        data = await self.objects.get(row.name)
        return await asyncio.to_thread(unpacked, data, row, head)

    async def totals(self) -> ArchiveTotals:
        """What is in the archive, over all tenants."""
        return await self._store.archives.totals()

    async def probe(self) -> None:
        """Writes, reads and erases an object. Raises ObjectsUnavailable."""
        if self.objects is None:
            raise ObjectsUnavailable("archive.url is not set")
        name = f"probe/{self._new_id()}"
        await self.objects.put(name, b"probe")
        try:
            await self.objects.get(name)
        except ObjectMissing as error:
            raise ObjectsUnavailable("what was written cannot be read") from error
        finally:
            await self.objects.erase(name)

    async def clean(self, tenant: str = "") -> int:
        """Erases the objects that are needed no more, of a tenant or of all; answers how many.
        Raises ObjectsUnavailable, where the next time goes on."""
        now_ms = self._clock_ms()
        doomed = await self._store.archives.release(
            tenant, stale_ms=now_ms - STALE_MS, kept_ms=now_ms - self._kept_ms
        )
        if doomed and self.objects is None:
            raise ObjectsUnavailable(f"{len(doomed)} objects are to be erased: set archive.url")
        for row in doomed:
            assert self.objects is not None
            await self.objects.erase(row.name)
            await self._store.archives.erased([row])
            self.counts.erased += 1
        return len(doomed)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _hashed(names: tuple[str, ...]) -> str:
    """What stands for names in the name of an object, which has room for 1,024 bytes and says
    nothing of anybody."""
    return hashlib.blake2b(msgspec.msgpack.encode(names), digest_size=12).hexdigest()
