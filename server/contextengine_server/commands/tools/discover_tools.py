"""The tool that finds deferred tools, where CallTool runs it."""

from __future__ import annotations

import msgspec

from contextengine_server.recall.archive import Archive
from contextengine_server.recall.model_tools.answers import ToolAnswer
from contextengine_server.session.address import Address
from contextengine_server.session.change import Editor, PreparedChange
from contextengine_server.session.selection import Selection
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import SessionState
from contextengine_server.session.usage.tools import Definitions, ToolDeferral, with_discovered
from contextengine_server.store.rows import SessionHead


class DiscoverTools(msgspec.Struct, frozen=True):
    """Finds tools, and remembers in the session what was found."""

    sessions: Sessions
    selection: Selection
    editor: Editor
    deferral: ToolDeferral
    archive: Archive

    async def serves(self, address: Address, name: str) -> bool:
        """True where a session's engine defers tools, and this is the one that finds them."""
        if name != self.deferral.finder:
            return False
        engine = (await self.selection.engine_for(address.scope)).engine
        return engine.id in self.deferral.engines

    async def run(
        self, address: Address, arguments: bytes, given: Definitions, *, noted: bool
    ) -> tuple[ToolAnswer, int]:
        """What is found of the definitions, and its tokens. `noted`: the session remembers it.
        Raises SessionNotFound."""
        async with self.sessions.open(address.scope, lock=noted) as session:
            session.require()
            found = await self.deferral.discover(session, given, arguments)

            async def edit(
                session: Session, head: SessionHead, state: SessionState
            ) -> PreparedChange | None:
                turn = session.view.fold.turns
                after = with_discovered(self.deferral.rules, state, found.names, turn)
                return None if after == state else PreparedChange(after, head)

            if noted and found.names:
                await self.editor.change(session, address, edit)
        answer = ToolAnswer(found.json, found.is_error, len(found.names))
        return answer, await self.archive.count(found.json.decode())
