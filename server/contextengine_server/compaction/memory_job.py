"""Handing over to memory what a session owes it: what it missed, what a session ended with, and
what is compacted next."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from contextengine_server.compaction.compaction_pass import Pass
from contextengine_server.compaction.compactor import Compactor
from contextengine_server.compaction.memory_flush import PATIENT_S, Told, range_of
from contextengine_server.compaction.originals import decoded
from contextengine_server.compaction.request import CompactionRequest
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.scope import Scope
from contextengine_server.engines.contract import Engine
from contextengine_server.session.address import Address
from contextengine_server.session.change import Editor, PreparedChange
from contextengine_server.session.session import Session
from contextengine_server.session.state import SessionState
from contextengine_server.slices import in_slices
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.rows import MessageRow, SessionHead

WAIT_S = 5.0
"""How long the end of a session waits until memory has what it said. The rest is owed."""
_BATCH = 500
"""Messages that are read at a time, …"""
_BATCH_BYTES = 8 << 20
"""… and about how many bytes of them, besides the largest message."""
_PAGE = 64


class NotKept(Exception):
    """Memory did not take a range: the job is tried again."""


class MemoryJob(msgspec.Struct, frozen=True):
    """Hands over what a session owes its agent's memory."""

    compactor: Compactor
    editor: Editor

    async def run(self, address: Address, engine: Engine, available: ReferenceTokens) -> None:
        """One job, under the session's compaction lock. Raises NotKept, EngineFailed."""
        compactor, memory = self.compactor, self.compactor.memory
        async with compactor.sessions.open(address.scope) as session:
            session.require()
            if not memory.listens(session):
                return
            for first, last in session.state.unflushed:
                async for _, _, told in self._handed(session, first, last, pinned=False):
                    await self._note(address, told)
            for owed in session.state.owed:
                await self._settle(address, session, owed)
            if not memory.ahead(session, available):
                return
            view = await compactor.planned_over(session, engine)
            wanted = CompactionRequest(available, force=True)
            made = await compactor.next_pass(engine, session, view, wanted, 0)
            coming = (
                await in_slices(memory.of_pass(session, made)) if isinstance(made, Pass) else None
            )
        if coming is not None:
            await self._note(address, await memory.tell(coming, PATIENT_S))

    async def before_end(self, address: Address) -> Sequence[tuple[int, int]]:
        """Hands over what a session said and memory lacks, before the session ends or is emptied;
        answers what memory took of it in time."""
        told: list[tuple[int, int]] = []
        with suppress(TimeoutError, StoreUnavailable):
            async with (
                asyncio.timeout(WAIT_S),
                self.compactor.sessions.open(address.scope) as session,
            ):
                for span in self._lacking(session):
                    async for begins, ends, taken in self._handed(session, *span, session.revision):
                        if taken.kept >= begins:
                            told.append((begins, taken.kept))
                        if taken.kept < ends:
                            return told
        return told

    async def catch_up(self, address: Address) -> None:
        """Hands over all that memory lacks of a session that was imported. It is not noted: a
        session changes by nothing that its host did not do. Raises NotKept."""
        async with self.compactor.sessions.open(address.scope) as session:
            for span in self._lacking(session):
                async for _, _, told in self._handed(session, *span, session.revision):
                    if not told.ok:
                        raise NotKept

    def _lacking(self, session: Session) -> Iterable[tuple[int, int]]:
        """What memory was not given of a session's own messages."""
        head = session.require()
        if not self.compactor.memory.listens(session):
            return ()
        return session.state.lacking(head.parent_sequence + 1, head.last_sequence)

    async def _settle(self, address: Address, session: Session, owed: tuple[int, int, int]) -> None:
        """Hands over what a session ended with, in parts."""
        first, last, revision = owed
        async for begins, _, told in self._handed(session, first, last, revision):
            left = ((told.kept + 1, last, revision),) if told.kept < last else ()
            await self._note(address, told, (begins, last, revision), left)

    async def _handed(
        self,
        session: Session,
        first: int,
        last: int,
        revision: int | None = None,
        *,
        pinned: bool = True,
    ) -> AsyncIterator[tuple[int, int, Told]]:
        """Hands over what a session said within a range as it was at this revision, or just before
        it where that emptied the view; None: as it is now. `pinned`: pinned messages as well.
        Answers each part, and what memory took of it."""
        now = session.revision
        before = now + 1 if revision is None else revision
        while first <= last:
            rows, ends = await self._beginning(session.scope, first, last)
            said = [
                row
                for row in rows
                if not 0 < row.retired_revision < before and (pinned or not row.pinned)
            ]
            as_of = now if revision is None else revision
            given = range_of(session, first, ends, await decoded(said), as_of)
            yield first, ends, await self.compactor.memory.tell(given, PATIENT_S)
            first = ends + 1

    async def _beginning(
        self, scope: Scope, first: int, last: int
    ) -> tuple[Sequence[MessageRow], int]:
        """As many rows from the first on as are handed over at a time, and the last of their
        sequences. Messages may have megabytes each: how many are read at once goes by those before.
        """
        rows: list[MessageRow] = []
        size, count, begins = 0, 1, first
        last = min(last, first + _BATCH - 1)
        while begins <= last and size < _BATCH_BYTES:
            ends = min(last, begins + count - 1)
            page = await self.compactor.store.messages(scope, begins, ends, retired=True)
            rows += page
            taken = sum(len(row.body) for row in page)
            size, begins = size + taken, ends + 1
            count = max(1, min(2 * count, _PAGE, _BATCH_BYTES * count // max(1, taken)))
        return rows, begins - 1

    async def _note(
        self,
        address: Address,
        told: Told,
        before: tuple[int, int, int] | None = None,
        left: Sequence[tuple[int, int, int]] = (),
    ) -> None:
        """Writes down what memory took of a range; of what was owed `before`, that is `left`.
        Raises NotKept where it did not take all."""
        if told.kept < told.first:
            raise NotKept

        async def edit(
            session: Session, head: SessionHead, state: SessionState
        ) -> PreparedChange | None:
            ended = session.head is not None and session.head.ended
            owed = [one for one in state.owed if one != before]
            after = replace(state.told(told.first, told.kept), owed=(*owed, *left))
            return None if after == state else PreparedChange(after, replace(head, ended=ended))

        async with self.compactor.sessions.open(address.scope, lock=True) as session:
            await self.editor.change(session, address, edit)
        if not told.ok:
            raise NotKept
