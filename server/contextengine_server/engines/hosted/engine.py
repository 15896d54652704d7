"""An engine of another host as one of ours.

What is shown is decided here, as for every engine: everything that fits, summaries in place of what
they cover, the oldest left out first. The hosted engine is asked what every such engine can say:
how it would compact a list of messages.
"""

from __future__ import annotations

import asyncio
import copy
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from contextengine_server.context.lawful import fitting, plan_of
from contextengine_server.context.plan import Declared, Plan
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import Summary, View

from ..base import ADDITION, BaseEngine
from ..contract import CompactionGoal, CompactionStep, NothingToDo, Tools
from ..delegation import delegate_compaction_to_runtime
from ..failure import EngineBroken, threw
from ..patience import TookTooLong
from ..rewrite import ChatMessage, RewriteRequest, wrong_with
from .host import EngineHost, HostedFacts
from .options import HostedOptions
from .worker import Worker

MAX_LOST = 4
"""So many threads may be lost to an engine that does not come back; then it is not asked again
before an operator says so."""


class HostedSession(msgspec.Struct, frozen=True, eq=False):
    """An engine at work for one session."""

    worker: Worker
    engine: Any
    life: str
    """The session's, as RewriteRequest names it."""


class HostedEngine(BaseEngine[HostedOptions]):
    """Compacts as an engine of another host would."""

    tools = Tools(("ctx_search", "ctx_inspect", "ctx_expand"))
    declared = Declared(tail_steps=1)

    def __init__(self, options: HostedOptions, facts: HostedFacts, host: EngineHost) -> None:
        super().__init__(options)
        self.id, self.name, self.version = facts.id, facts.description or facts.id, facts.version
        self.threshold = options.threshold or facts.threshold
        self.rewriter = self
        self._host = host
        self._sessions: OrderedDict[Scope, HostedSession] = OrderedDict()
        self._lost = 0

    def addition(self, summaries: Sequence[Summary]) -> str:
        """What summaries are, where they are shown."""
        return ADDITION if summaries else ""

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        """The newest that fits."""
        shown = fitting(view, budget - reserved, self.declared.tail_steps)
        return plan_of(view, shown.ranges, shown.summaries, rule=shown.rule, over=shown.over)

    def due(self, view: View, available: int, measured: int | None) -> bool:
        """From the threshold on, where there is something to take."""
        used = max(view.view_tokens(), measured or 0)
        return used >= self.limit(view, available) and view.raw_from < view.steps - 1

    def compaction(self, view: View, goal: CompactionGoal) -> CompactionStep | NothingToDo:
        """What it may take at most: what the built-in compaction would."""
        used = max(view.view_tokens(), goal.measured or 0)
        if goal.reached:
            return NothingToDo("already under target")
        if not goal.force and used < self.limit(view, goal.available):
            return NothingToDo("below threshold")
        step = delegate_compaction_to_runtime(view, replace(goal, force=True))
        if isinstance(step, NothingToDo):
            return step
        return replace(step, origin="engine", rewrites=True)

    async def rewrite(self, request: RewriteRequest) -> Sequence[ChatMessage] | None:
        """See Rewriter."""
        if self._lost >= MAX_LOST:
            raise EngineBroken(
                self.id, f"did not come back {self._lost} times, and is not asked any more"
            )
        try:
            held = await self._held(request.scope, request.life)
            given = replace(request, messages=copy.deepcopy(list(request.messages)))
            answer = await held.worker.run(
                self._host.compact(held.engine, given), self.options.timeout_seconds
            )
        except TookTooLong as error:
            self._lost += 1
            stuck = self._sessions.pop(request.scope, None)
            if stuck is not None:
                stuck.worker.stop()
            raise EngineBroken(self.id, f"its compaction {error}") from error
        except Exception as error:
            raise threw(self.id, error) from error
        wrong = wrong_with(answer) if answer is not None else ""
        if wrong:
            raise EngineBroken(self.id, wrong)
        return answer

    def try_again(self) -> None:
        """See Rewriter."""
        self._lost = 0

    async def _held(self, scope: Scope, life: str) -> HostedSession:
        """The engine at work for a session, made where there is none. One that knew an earlier life
        of it is left: nothing of that comes back."""
        held = self._sessions.pop(scope, None)
        if held is not None and held.life != life:
            await self._end(held)
            held = None
        if held is None:
            worker = Worker()
            try:
                engine = await worker.run(
                    self._host.begin(session_name(scope)), self.options.timeout_seconds
                )
            except BaseException:
                worker.stop()
                raise
            held = HostedSession(worker, engine, life)
        self._sessions[scope] = held
        while len(self._sessions) > self.options.live_sessions:
            await self._end(self._sessions.popitem(last=False)[1])
        return held

    async def _end(self, held: HostedSession) -> None:
        """Whatever it says to that is nobody's affair: it is another session that waits."""
        try:
            with suppress(Exception):
                await held.worker.run(self._host.end(held.engine), END_S)
        finally:
            held.worker.stop()

    async def dispose(self) -> None:
        """Ends what it is at work for."""
        held = list(self._sessions.values())
        self._sessions.clear()
        await asyncio.gather(*(self._end(one) for one in held))


END_S = 2.0
"""How long an engine may take to leave a session: all of them are given ten seconds when the server
drains."""


def session_name(scope: Scope) -> str:
    """A session's id for a hosted engine, which knows no tenants and no agents, and may call a file
    by it."""
    return ":".join(quote(part, safe="") for part in scope)
