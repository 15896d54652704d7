"""An engine of another host as one of ours.

What is shown is decided here, as for every engine: everything that fits, summaries in place of what
they cover, the oldest left out first. The hosted engine is asked what every such engine can say:
how it would compact a list of messages.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from contextengine_server.context.lawful import fitting, plan_of
from contextengine_server.context.plan import Declared, Plan
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import Summary, View

from ..base import ADDITION, BaseEngine
from ..companion import Conversation, OwnTool
from ..contract import CompactionGoal, CompactionStep, NothingToDo, Tools
from ..delegation import delegate_compaction_to_runtime
from ..failure import EngineBroken, threw
from ..patience import TookTooLong
from ..rewrite import ChatMessage, RewriteRequest, wrong_with
from .held import Asked, HeldSession, HeldSessions, session_name
from .host import EngineHost, HostedFacts
from .options import HostedOptions

T = TypeVar("T")

MAX_LOST = 4
"""So many threads may be lost to an engine that does not come back; then it is not asked again
before an operator says so."""


class HostedEngine(BaseEngine[HostedOptions]):
    """Compacts as an engine of another host would."""

    tools = Tools(("ctx_search", "ctx_inspect", "ctx_expand"))
    declared = Declared(tail_steps=1)

    def __init__(self, options: HostedOptions, facts: HostedFacts, host: EngineHost) -> None:
        super().__init__(options)
        self.id, self.name, self.version = facts.id, facts.description or facts.id, facts.version
        self.threshold = options.threshold or facts.threshold
        self.rewriter = self
        self.companion = self
        self._host = host
        self._held = HeldSessions(host, options)
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
        given = replace(request, messages=copy.deepcopy(list(request.messages)))
        told = Conversation(
            request.scope,
            request.life,
            compactions=request.compactions,
            chunks=request.chunks,
        )
        answer, _ = await self._ask(
            told, lambda engine: self._host.compact(engine, given), "its compaction"
        )
        wrong = wrong_with(answer) if answer is not None else ""
        if wrong:
            raise EngineBroken(self.id, wrong)
        return answer or None  # as Hermes does: where nothing is left the list stays as it was

    def try_again(self) -> None:
        """See Rewriter."""
        self._lost = 0

    async def own_tools(self, told: Conversation) -> Sequence[OwnTool]:
        """See Companion."""
        _, held = await self._ask(told, _nothing, "its beginning")
        return held.tools

    async def call(self, told: Conversation, name: str, arguments: Mapping[str, Any]) -> object:
        """See Companion."""
        messages = copy.deepcopy(list(told.messages))
        given = dict(arguments)
        answer, _ = await self._ask(
            told, lambda engine: self._host.call(engine, name, given, messages), f"its tool {name}"
        )
        return answer

    async def ended(self, told: Conversation, *, emptied: bool) -> None:
        """See Companion. One that was never asked for the session is made for it."""
        messages = copy.deepcopy(list(told.messages))
        name = session_name(told.scope)
        await self._ask(
            told,
            lambda engine: self._host.ended(engine, name, messages, emptied=emptied),
            "the end of a session",
        )
        await self._held.leave(told.scope)

    def status(self, scope: Scope) -> Mapping[str, object]:
        """See Companion."""
        return self._held.status(scope)

    async def _ask(self, told: Conversation, asked: Asked[T], what: str) -> tuple[T, HeldSession]:
        """What the engine at work for a session answers. Raises EngineBroken."""
        if self._lost >= MAX_LOST:
            raise EngineBroken(
                self.id, f"did not come back {self._lost} times, and is not asked any more"
            )
        try:
            return await self._held.ask(told, asked)
        except TookTooLong as error:
            self._lost += 1
            raise EngineBroken(self.id, f"{what} {error}") from error
        except Exception as error:
            raise threw(self.id, error) from error

    async def dispose(self) -> None:
        """Ends what it is at work for."""
        await self._held.leave_all()


async def _nothing(engine: object) -> None:
    """It is enough that it is there."""
