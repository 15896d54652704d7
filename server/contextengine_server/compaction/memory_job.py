"""Handing over to memory in the background: what it missed, and what is compacted next."""

from __future__ import annotations

import msgspec

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
from contextengine_server.store.rows import SessionHead


class NotKept(Exception):
    """Memory did not take a range: the job is tried again."""


class MemoryJob(msgspec.Struct, frozen=True):
    """Hands over what a session owes its agent's memory."""

    compactor: Compactor
    editor: Editor

    async def run(self, address: Address, engine: Engine, available: ReferenceTokens) -> None:
        """One job, under the session's compaction lock. Raises NotKept, EngineFailed."""
        compactor, memory = self.compactor, self.compactor.memory
        if memory.memory is None:
            return
        async with compactor.sessions.open(address.scope) as session:
            session.require()
            for first, last in session.state.unflushed:
                rows = await compactor.store.messages(address.scope, first, last)
                messages = await decoded([row for row in rows if not row.pinned])
                given = range_of(session, first, last, messages)
                await self._note(address, await memory.tell(given, PATIENT_S))
            if not memory.ahead(session, available):
                return
            view = await compactor.planned_over(session, engine)
            wanted = CompactionRequest(available, force=True)
            made = compactor.next_pass(engine, session, view, wanted, 0)
            coming = memory.of_pass(session, made) if isinstance(made, Pass) else None
        if coming is not None:
            await self._note(address, await memory.tell(coming, PATIENT_S))

    async def _note(self, address: Address, told: Told) -> None:
        """Writes down that memory has a range."""
        if not told.ok:
            raise NotKept

        def edit(session: Session, head: SessionHead, state: SessionState) -> PreparedChange | None:
            after = told.noted(state)
            return None if after == state else PreparedChange(after, head)

        async with self.compactor.sessions.open(address.scope, lock=True) as session:
            await self.editor.change(session, address, edit)
