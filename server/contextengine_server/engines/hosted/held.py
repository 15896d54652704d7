"""What a hosted engine is kept in memory for: sessions, each with an engine and a thread of its
own."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
import orjson

from contextengine_server.context.scope import Scope

from ..companion import Conversation, OwnTool
from ..patience import TookTooLong
from .host import EngineHost
from .options import HostedOptions
from .worker import Worker

T = TypeVar("T")
Asked = Callable[[Any], Coroutine[Any, Any, T]]
"""What is asked of an engine, on its thread."""

END_S = 2.0
"""How long an engine may take to leave a session: all of them are given ten seconds when the server
drains."""
MAX_TOOLS = 64
"""Tools of its own that an engine may offer; more are left out."""


class HeldSession(msgspec.Struct, eq=False):
    """An engine at work for one session."""

    worker: Worker
    life: str
    """The session's, as RewriteRequest names it."""
    turn: asyncio.Lock
    """One thing is asked of it at a time."""
    engine: Any = None
    begun: bool = False
    tools: tuple[OwnTool, ...] = ()
    """Its own tools, as it said when it began."""
    status: Mapping[str, object] = {}
    """What it said of itself when it was asked for anything last."""


class HeldSessions:
    """Engines at work, no more of them than `options.live_sessions`; the one used longest ago
    leaves first."""

    def __init__(self, host: EngineHost, options: HostedOptions) -> None:
        self._host, self._options = host, options
        self._held: OrderedDict[Scope, HeldSession] = OrderedDict()

    async def ask(self, told: Conversation, asked: Asked[T]) -> tuple[T, HeldSession]:
        """What the engine at work for a session answers; it is made where there is none. Raises
        TookTooLong, after which it is not kept, and whatever its code raises."""
        held = await self._of(told)
        async with held.turn:
            try:
                if not held.begun:
                    await self._run(held, self._begin(held, told))
                answer = await self._run(held, asked(held.engine))
                held.status = await self._run(held, self._status(held.engine))
            except TookTooLong:
                self._forget(told.scope, held)
                raise
            except BaseException:
                if not held.begun:
                    self._forget(told.scope, held)
                raise
        return answer, held

    def status(self, scope: Scope) -> Mapping[str, object]:
        """See Companion."""
        held = self._held.get(scope)
        return {} if held is None else held.status

    async def leave(self, scope: Scope) -> None:
        """An engine is no longer kept for a session."""
        held = self._held.pop(scope, None)
        if held is not None:
            await self._end(held)

    async def leave_all(self) -> None:
        """The same of all."""
        held = list(self._held.values())
        self._held.clear()
        await asyncio.gather(*(self._end(one) for one in held))

    async def _run(self, held: HeldSession, work: Coroutine[Any, Any, T]) -> T:
        return await held.worker.run(work, self._options.timeout_seconds)

    async def _of(self, told: Conversation) -> HeldSession:
        """One that knew an earlier life of the session is left: nothing of that comes back."""
        held = self._held.pop(told.scope, None)
        if held is not None and held.life != told.life:
            await self._end(held)
            held = None
        if held is None:
            held = HeldSession(Worker(), told.life, asyncio.Lock())
        self._held[told.scope] = held
        if len(self._held) > self._options.live_sessions:
            idle = next((key for key, one in self._held.items() if not one.turn.locked()), None)
            if idle is not None and idle != told.scope:
                await self._end(self._held.pop(idle))
        return held

    async def _begin(self, held: HeldSession, told: Conversation) -> None:
        held.engine = await self._host.begin(session_name(told.scope), told)
        held.tools = tuple(_own_tools(await self._host.tools(held.engine)))
        held.begun = True

    async def _status(self, engine: Any) -> Mapping[str, object]:
        """What it says of itself, as far as that is JSON: it is nobody's failure where it is
        none."""
        with suppress(Exception):
            said = orjson.loads(orjson.dumps(await self._host.status(engine), default=str))
            if isinstance(said, dict):
                return said
        return {}

    def _forget(self, scope: Scope, held: HeldSession) -> None:
        if self._held.get(scope) is held:
            del self._held[scope]
        held.worker.stop()

    async def _end(self, held: HeldSession) -> None:
        """Whatever it says to that is nobody's affair: it is another session that waits."""
        try:
            async with held.turn:
                if held.begun:
                    with suppress(Exception):
                        await held.worker.run(self._host.end(held.engine), END_S)
        finally:
            held.worker.stop()


def _own_tools(schemas: list[Any]) -> list[OwnTool]:
    """The tools that an engine says, in the form of OpenAI's chat API or without the wrapper of
    that; those without a name are none."""
    tools: dict[str, OwnTool] = {}
    for schema in schemas[:MAX_TOOLS]:
        said = schema.get("function", schema) if isinstance(schema, Mapping) else {}
        name = said.get("name") if isinstance(said, Mapping) else None
        if isinstance(name, str) and name.strip():
            takes = said.get("parameters") or {"type": "object", "properties": {}}
            about = str(said.get("description") or "")
            tools.setdefault(name, OwnTool(name, about, orjson.dumps(takes, default=str)))
    return list(tools.values())


def session_name(scope: Scope) -> str:
    """A session's id for a hosted engine, which knows no tenants and no agents, and may call a file
    by it."""
    return ":".join(quote(part, safe="") for part in scope)
