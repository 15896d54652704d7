"""Handing over to memory what a session owes it: what it missed, what a session ended with, and
what is compacted next."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from contextengine_server.compaction.compaction_pass import Pass
from contextengine_server.compaction.compactor import Compactor
from contextengine_server.compaction.memory_flush import PATIENT_S, Told, range_of
from contextengine_server.compaction.originals import decoded
from contextengine_server.compaction.request import CompactionRequest
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.engines.contract import Engine
from contextengine_server.session.address import Address
from contextengine_server.session.change import Editor, PreparedChange
from contextengine_server.session.session import Session
from contextengine_server.session.state import SessionState
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.rows import SessionHead

WAIT_S = 5.0
"""How long the end of a session waits until memory has what it said. The rest is owed."""
_BATCH = 500
"""Messages that are handed over at a time."""


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
                rows = await compactor.store.messages(address.scope, first, last)
                messages = await decoded([row for row in rows if not row.pinned])
                given = range_of(session, first, last, messages)
                await self._note(address, await memory.tell(given, PATIENT_S))
            for owed in session.state.owed:
                await self._settle(address, session, owed)
            if not memory.ahead(session, available):
                return
            view = await compactor.planned_over(session, engine)
            wanted = CompactionRequest(available, force=True)
            made = await compactor.next_pass(engine, session, view, wanted, 0)
            coming = memory.of_pass(session, made) if isinstance(made, Pass) else None
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
                    if not (await self._tell(session, *span, session.revision)).ok:
                        break
                    told.append(span)
        return told

    async def catch_up(self, address: Address) -> None:
        """Hands over all that memory lacks of a session that was imported. It is not noted: a
        session changes by nothing that its host did not do. Raises NotKept."""
        async with self.compactor.sessions.open(address.scope) as session:
            for span in self._lacking(session):
                if not (await self._tell(session, *span, session.revision)).ok:
                    raise NotKept

    def _lacking(self, session: Session) -> Iterator[tuple[int, int]]:
        """What memory was not given of a session's own messages, in parts."""
        head = session.require()
        if not self.compactor.memory.listens(session):
            return
        for span in session.state.lacking(head.parent_sequence + 1, head.last_sequence):
            yield from _parts(*span)

    async def _settle(self, address: Address, session: Session, owed: tuple[int, int, int]) -> None:
        """Hands over what a session ended with, in parts."""
        first, last, revision = owed
        for begins, ends in _parts(first, last):
            told = await self._tell(session, begins, ends, revision)
            left = ((ends + 1, last, revision),) if ends < last else ()
            before = (begins, last, revision)
            await self._note(address, told, before, left)

    async def _tell(self, session: Session, first: int, last: int, revision: int) -> Told:
        """Hands over what a session said within a range as it was at this revision, or just before
        it where that emptied the view."""
        rows = await self.compactor.store.messages(session.scope, first, last, retired=True)
        said = [row for row in rows if not 0 < row.retired_revision < revision]
        given = range_of(session, first, last, await decoded(said), revision)
        return await self.compactor.memory.tell(given, PATIENT_S)

    async def _note(
        self,
        address: Address,
        told: Told,
        before: tuple[int, int, int] | None = None,
        left: Sequence[tuple[int, int, int]] = (),
    ) -> None:
        """Writes down that memory has a range; of what was owed `before`, that is `left`."""
        if not told.ok:
            raise NotKept

        async def edit(
            session: Session, head: SessionHead, state: SessionState
        ) -> PreparedChange | None:
            ended = session.head is not None and session.head.ended
            owed = [one for one in state.owed if one != before]
            after = replace(told.noted(state), owed=(*owed, *left))
            return None if after == state else PreparedChange(after, replace(head, ended=ended))

        async with self.compactor.sessions.open(address.scope, lock=True) as session:
            await self.editor.change(session, address, edit)


def _parts(first: int, last: int) -> Iterator[tuple[int, int]]:
    for begins in range(first, last + 1, _BATCH):
        yield begins, min(last, begins + _BATCH - 1)
