"""What an engine of another host has for sessions besides: its tools, and that it hears of their
end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.engines.companion import Companion, Conversation, OwnTool, companion_of
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.failure import EngineBroken
from contextengine_server.errors import DomainError
from contextengine_server.session.lifecycle import Leave
from contextengine_server.session.selection import Selection
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions

from .chunks import chunks_of
from .rewrites import ViewList, list_of

log = structlog.get_logger("contextengine.engines")
WAIT_S = 5.0
"""How long the end of a session waits for an engine that hears of it. It goes on beside that."""


class Companions:
    """Asks them."""

    def __init__(self, sessions: Sessions, selection: Selection) -> None:
        self._sessions, self._selection = sessions, selection
        self._leaving: dict[Scope, asyncio.Task[None]] = {}

    async def tools(self, scope: Scope, engine: Engine) -> Sequence[OwnTool]:
        """The tools that the engine has for a session of its own. That it fails is recorded, and
        raises EngineFailed where no engine stands in."""
        companion = companion_of(engine)
        if companion is None:
            return []
        async with self._sessions.open(scope) as session:
            told = self._conversation(session)
        try:
            return await companion.own_tools(told)
        except EngineBroken as error:
            failed = self._selection.failed(scope, engine.id, "list_tools", error)
            if not self._selection.falls_back:
                raise failed from error
            return []

    async def call(
        self, scope: Scope, engine: Engine, name: str, arguments: Mapping[str, Any]
    ) -> object:
        """What one of them answers. That it fails is recorded. Raises EngineBroken."""
        companion = companion_of(engine)
        assert companion is not None, "`tools` answered none"
        async with self._sessions.open(scope, None) as session:
            told, listed = self._conversation(session), list_of(session.view)
        messages, _ = await asyncio.to_thread(listed.written)
        try:
            return await companion.call(_saying(told, messages), name, arguments)
        except EngineBroken as error:
            self._selection.failed(scope, engine.id, "call_tool", error)
            raise

    async def leaving(self, session: Session) -> Leave | None:
        """What tells the session's engine, beside everything else, that the session ends or is
        emptied, with what it says now. None: it does not want to hear of it. The session is
        locked."""
        try:
            engine = (await self._selection.engine_for(session.scope)).engine
        except DomainError:
            return None  # an engine that is not there hears of nothing
        companion = companion_of(engine)
        if companion is None:
            return None
        await self._sessions.fresh(session, None)
        told, listed = self._conversation(session), list_of(session.view)

        def leave(*, emptied: bool) -> None:
            before = self._leaving.get(session.scope)
            task = asyncio.create_task(
                self._leave(before, engine, companion, told, listed, emptied=emptied),
                name="leave",
            )
            self._leaving[session.scope] = task
            task.add_done_callback(lambda done: self._left(session.scope, done))

        return leave

    async def settled(self, scope: Scope) -> None:
        """Waits a while until the engine has heard of a session's end."""
        task = self._leaving.get(scope)
        if task is not None:
            await asyncio.wait([task], timeout=WAIT_S)

    def _left(self, scope: Scope, task: asyncio.Task[None]) -> None:
        if self._leaving.get(scope) is task:
            del self._leaving[scope]

    async def _leave(
        self,
        before: asyncio.Task[None] | None,
        engine: Engine,
        companion: Companion,
        told: Conversation,
        listed: ViewList,
        *,
        emptied: bool,
    ) -> None:
        """That it fails is recorded, and undoes nothing: it only hears of it."""
        if before is not None:
            await asyncio.wait([before])
        try:
            messages, _ = await asyncio.to_thread(listed.written)
            await companion.ended(_saying(told, messages), emptied=emptied)
        except EngineBroken as error:
            self._selection.failed(told.scope, engine.id, "end_session", error)
        except Exception:
            log.exception("session_end_not_told", engine=engine.id)

    def _conversation(self, session: Session) -> Conversation:
        life = f"{session.view.incarnation}:{session.view.reset_mark}"
        chunks = chunks_of(self._sessions, session)
        return Conversation(
            session.scope, life, compactions=session.state.compactions, chunks=chunks
        )


def _saying(told: Conversation, messages: Sequence[dict[str, Any]]) -> Conversation:
    return replace(told, messages=messages)
