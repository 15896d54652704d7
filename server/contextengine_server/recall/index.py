"""Filling the search index in the background, from each session's stored cursor, after the
acknowledgement.

One task for all sessions. What was written waits a moment, so that several commits share one write;
then it is brought in pieces that hold the store's writer for a few ms each, with pauses between
them that leave most of the time to others. A search that waits is served at once. Nothing is
remembered that the cursors do not say: a restart goes on where it stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import perf_counter

import structlog
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import MessageRow, SessionHead
from contextengine_server.store.search import Advance, Cursor, Document, DocumentKind, Progress

from .texts import indexed_passages, summary_passages

BATCH_CHARS = 16_000
"""What is indexed by one write: 2 to 5 ms of the writer's time."""

_DELAY_S = 0.3
"""How long what was written may wait for more to come."""
_FOLDS_A_WRITE = 4
"""Pieces of folding behind each write: as much as keeps the segments to about a hundred under
constant load."""
_SHARE = 9
"""Pauses are so many times as long as the writes before them, unless a search waits."""
_RETRY_S = 2.0
_FEW, _ROWS = 4, 16
"""Messages that are read at once: few at first, …"""
_READ_BYTES = 1 << 20
"""… and then as many as have about so many bytes, by those before."""
_BEHIND = 1_000
"""Sessions that a start looks up at once."""
_LARGE = 256 * 1024
"""Bytes of a message that is read in a thread."""
_REMEMBERED = 10_000
"""Sessions of which it is remembered that all is indexed."""

log = structlog.get_logger("contextengine.recall")


class Indexer:
    """Brings the index up to the sessions. Use it on the store's event loop. `alone`: no other
    server fills the same index, so that what this one did stands."""

    def __init__(self, store: Store, *, alone: bool = False) -> None:
        self._store, self._index, self._alone = store, store.index, alone
        self.gone: Callable[[], None] = lambda: None
        """Called where a session is not there any more, soon after. To be set."""
        self._whole: dict[Scope, Progress] = {}
        """Sessions that are indexed up to a revision and were not noted since."""
        self._broken: dict[Scope, Exception] = {}
        """Sessions whose next step failed, and why."""
        self._renewed: set[Scope] = set()
        """Sessions that were begun anew since a step of theirs could not be written."""
        self._taken = 0
        """How often a session was taken up."""
        self._dirty: dict[Scope, None] = {}
        """Sessions to look at, in order."""
        self._urgent: dict[Scope, int] = {}
        """Sessions that searches wait for, and how many do."""
        self._wake, self._hurry, self._moved = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._failure: Exception | None = None
        self._task: asyncio.Task[None] | None = None
        self._long: tuple[Scope, int, list[str]] | None = None
        """The passages of the message that is being indexed, where one write does not take them
        all."""

    def start(self) -> None:
        """Begins to work, first with what an earlier run left to do."""
        if self._index.available:
            self._index.noted = self._dirty.setdefault
            self._task = asyncio.create_task(self._run(), name="search-index")

    async def stop(self) -> None:
        """Ends the work; the next start goes on with it."""
        self._index.noted = lambda scope: None
        self._whole.clear()  # nobody notes what comes from now on
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def progress(self, head: SessionHead) -> Progress | None:
        """How far the index has come with a session; from memory where all of this state is in
        it."""
        known = self._has(head.scope, head.revision)
        if known is not None and known.incarnation == head.incarnation:
            return known
        taken = self._taken
        progress = await self._index.progress(head.scope)
        # Unless it was begun anew while this was read.
        stands = head.scope not in self._dirty and taken == self._taken
        if progress is not None and progress.done and stands and self._task is not None:
            self._remember({head.scope: progress})
        return progress

    def _has(self, scope: Scope, revision: int) -> Progress | None:
        """What is remembered of a session that is indexed up to a revision."""
        known = self._whole.get(scope)
        stands = known is not None and known.revision >= revision and scope not in self._dirty
        return known if stands else None

    async def reached(self, scope: Scope, revision: int) -> None:
        """Waits until all that a session brought up to a revision can be found. Raises what the
        store raises."""
        if self._task is None or self._has(scope, revision) is not None:
            return
        self._urgent[scope] = self._urgent.get(scope, 0) + 1
        try:
            while True:
                moved = self._moved
                progress = await self._index.progress(scope)
                if progress is None or progress.done or progress.cursor.revision >= revision:
                    return
                self._broken.pop(scope, None)
                self._note(scope)
                self._hurry.set()
                await moved.wait()
                if failure := self._failure or self._broken.get(scope):
                    raise failure
        finally:
            self._urgent[scope] -= 1
            if not self._urgent[scope]:
                del self._urgent[scope]

    def _note(self, scope: Scope) -> None:
        self._dirty[scope] = None
        self._wake.set()

    async def _run(self) -> None:
        behind = True
        while True:
            try:
                if behind:
                    found = await self._index.behind(_BEHIND)
                    self._dirty.update(dict.fromkeys(found))
                    behind = len(found) == _BEHIND
                began = perf_counter()
                if self._dirty:
                    await self._write()
                    # Where there is always something to index, folding has no time of its own:
                    # without it a search would look into hundreds of segments, until FTS5 folded
                    # them all at once.
                    for _ in range(0 if self._urgent else _FOLDS_A_WRITE):
                        if not await self._index.tidy():
                            break
                elif not await self._index.tidy() and not behind and not self._dirty:
                    self._wake.clear()
                    # Only while this sleeps need a note wake it: otherwise it looks at what is
                    # dirty by itself.
                    self._index.noted = self._note
                    await self._wake.wait()
                    self._index.noted = self._dirty.setdefault
                    await self._pause(_DELAY_S)
                    continue
                self._failure = None
                await self._pause((perf_counter() - began) * _SHARE)
            except asyncio.CancelledError:
                raise
            except Exception as error:
                if not isinstance(error, StoreUnavailable):  # the store says so itself, once
                    log.exception("search index cannot be written")
                self._failure = error
                self._tell()
                await asyncio.sleep(_RETRY_S)

    async def _pause(self, seconds: float) -> None:
        """Lets others have the writer, unless a search waits or comes to wait."""
        if not self._urgent:
            self._hurry.clear()
        # Not wait_for: it loses a cancellation that comes together with the event.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()

    def _tell(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def _write(self) -> None:
        """Indexes one piece, of as many sessions as there is room for."""
        steps: list[Advance] = []
        room = BATCH_CHARS
        whole: dict[Scope, Progress] = {}
        for scope in sorted(self._dirty, key=self._by_haste):
            # Taken off before it is read: what is written meanwhile notes it again.
            self._dirty.pop(scope, None)
            self._whole.pop(scope, None)
            self._broken.pop(scope, None)
            self._taken += 1
            try:
                step, more = await self._step(scope, room, whole)
            except (StoreUnavailable, asyncio.CancelledError):
                self._dirty.update(dict.fromkeys([scope, *(step.scope for step in steps)]))
                raise
            except Exception as error:
                # Its own fault, which must not keep others waiting: it is tried again when more
                # comes of it, or a search waits for it.
                log.exception("session cannot be indexed")
                self._broken[scope] = error
                continue
            if more:
                self._dirty[scope] = None
            if step is not None:
                steps.append(step)
                room -= sum(len(document.text) for document in step.documents)
            if room <= 0:
                break
        failed = await self._bring(steps)
        self._remember({scope: far for scope, far in whole.items() if scope not in failed})
        self._tell()

    async def _bring(self, steps: Sequence[Advance]) -> set[Scope]:
        """Writes these steps; where that fails, each by itself. The sessions whose step cannot be
        written."""
        left = list(steps)
        failed: set[Scope] = set()
        try:
            if not left or await self._written(left) is None:
                return failed
            while left:
                scope = left[0].scope
                if (error := await self._written(left[:1])) is not None:
                    failed.add(scope)
                    await self._begin_anew(scope, error)
                del left[0]
        except BaseException:
            self._dirty.update(dict.fromkeys(step.scope for step in left))
            raise
        return failed

    async def _written(self, steps: Sequence[Advance]) -> Exception | None:
        """Writes these steps, all or none; why they cannot be. Raises StoreUnavailable."""
        try:
            await self._index.advance(steps)
        except StoreUnavailable:
            raise
        except Exception as error:
            return error
        return None

    async def _begin_anew(self, scope: Scope, error: Exception) -> None:
        """The index is derived: what stands in the way of a step goes with all that it holds of the
        session. Once; who is still in the way then waits for whoever mends the database."""
        log.error("session cannot be indexed", exc_info=error)
        if scope in self._renewed:
            self._broken[scope] = error
            return
        self._renewed.add(scope)
        await self._index.renew(scope)

    def _remember(self, whole: Mapping[Scope, Progress]) -> None:
        self._whole |= whole if self._alone else {}
        while len(self._whole) > _REMEMBERED:
            del self._whole[next(iter(self._whole))]

    def _by_haste(self, scope: Scope) -> bool:
        return scope not in self._urgent

    async def _step(
        self, scope: Scope, room: int, whole: dict[Scope, Progress]
    ) -> tuple[Advance | None, bool]:
        """What a session brings next, and whether that is not all. Where it is, `whole` has how far
        the index will have come."""
        progress = await self._index.progress(scope)
        if progress is None:
            self.gone()
            return None, False
        documents: list[Document] = []
        after, room = await self._messages(scope, progress, documents, room)
        if (
            after.sequence >= progress.last_sequence
            and after.summaries < progress.summaries
            and room > 0
        ):
            for ordinal, row in await self._index.summaries(scope, after.summaries):
                passages = summary_passages(row)
                documents += [
                    Document(DocumentKind.SUMMARY, ordinal, part, each)
                    for part, each in enumerate(passages)
                ]
                after = replace(after, summaries=ordinal + 1)
                room -= len(row.text)
                if room <= 0:
                    break
        done = replace(progress, cursor=after).done
        if done:
            after = replace(after, revision=progress.revision)
            whole[scope] = replace(progress, cursor=after)
        if after == progress.cursor:
            return None, not done
        return Advance(scope, progress.incarnation, progress.cursor, after, documents), not done

    async def _messages(
        self, scope: Scope, progress: Progress, documents: list[Document], room: int
    ) -> tuple[Cursor, int]:
        """Adds passages of the next messages; answers where the cursor is then, and the room that
        is left."""
        after = progress.cursor
        count = 1 if after.parts else _FEW
        while room > 0 and after.sequence < progress.last_sequence:
            first = max(after.sequence + 1, progress.first_sequence)
            rows = await self._store.messages(scope, first, first + count - 1, retired=True)
            for row in rows:
                passages = await self._passages(scope, row)
                for part in range(after.parts, len(passages)):
                    documents.append(
                        Document(DocumentKind.MESSAGE, row.sequence, part, passages[part])
                    )
                    after = replace(after, parts=part + 1)
                    room -= len(passages[part])
                    if room <= 0:
                        break
                if after.parts >= len(passages):
                    after = replace(after, sequence=row.sequence, parts=0)
                if room <= 0:
                    break
            if not rows:
                after = replace(after, sequence=first + count - 1, parts=0)
            taken = sum(len(row.body) for row in rows)
            count = max(1, min(2 * count, _ROWS, _READ_BYTES * count // max(1, taken)))
        return after, room

    async def _passages(self, scope: Scope, row: MessageRow) -> list[str]:
        if self._long is not None and self._long[:2] == (scope, row.sequence):
            return self._long[2]
        if len(row.body) > _LARGE:
            passages = await asyncio.to_thread(indexed_passages, row)
            self._long = scope, row.sequence, passages
        else:
            passages, self._long = indexed_passages(row), None
        return passages
