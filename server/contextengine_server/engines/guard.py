"""Between the rooms and an engine: whatever it throws, or answers that is no answer, is its own
failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from pydantic import BaseModel

from contextengine_server.context.plan import Plan
from contextengine_server.context.view import Summary, View

from .contract import CompactionGoal, CompactionStep, Engine, NothingToDo
from .failure import EngineBroken, threw

T = TypeVar("T")


class GuardedEngine:
    """An engine as the rooms call it: every method raises EngineBroken and nothing else. What it
    says of itself is read once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.id = engine.id
        self.name = engine.name
        self.version = engine.version
        self.owns_compaction = engine.owns_compaction
        self.threshold = engine.threshold
        self.declared = engine.declared
        self.defers = engine.defers
        self.notices = engine.notices
        self.chunk = engine.chunk
        self.summary_tokens = engine.summary_tokens
        self.tools = engine.tools
        self.fingerprint = engine.fingerprint
        self._options = engine.options

    @property
    def options(self) -> BaseModel:
        """See Engine.options."""
        return self._options

    def reach(self, cell: int) -> int | None:
        """See Engine.reach."""
        return self._answer(self._engine.reach, (int, type(None)), cell)

    def addition(self, summaries: Sequence[Summary]) -> str:
        """See Engine.addition."""
        return self._answer(self._engine.addition, str, summaries)

    def plan(self, view: View, cell: int, reserved: int = 0) -> Plan:
        """See Engine.plan."""
        return self._answer(self._engine.plan, Plan, view, cell, reserved)

    def due(self, view: View, available: int, measured: int | None) -> bool:
        """See Engine.due."""
        return self._answer(self._engine.due, bool, view, available, measured)

    def compaction(self, view: View, goal: CompactionGoal) -> CompactionStep | NothingToDo:
        """See Engine.compaction."""
        made: CompactionStep | NothingToDo = self._answer(
            self._engine.compaction, (CompactionStep, NothingToDo), view, goal
        )
        try:
            msgspec.convert(msgspec.to_builtins(made), type(made))
        except (msgspec.ValidationError, TypeError) as error:
            raise EngineBroken(self.id, f"compaction() answered what it may not: {error}") from None
        if isinstance(made, CompactionStep):
            self._check_step(made, view)
        return made

    def _check_step(self, step: CompactionStep, view: View) -> None:
        """Raises EngineBroken where a summary can not be made as the step says."""
        if not 0 <= step.first <= step.last < view.steps:
            raise EngineBroken(
                self.id,
                f"compaction() answered steps {step.first} to {step.last} of {view.steps}",
            )
        if step.target_tokens < 1:
            raise EngineBroken(
                self.id, f"compaction() leaves a summary {step.target_tokens} tokens"
            )
        unknown = set(step.replaces) - {summary.id for summary in view.summaries}
        if unknown:
            raise EngineBroken(
                self.id, f"compaction() replaces {len(unknown)} summaries that the view has not got"
            )

    async def dispose(self) -> None:
        """See Engine.dispose."""
        try:
            await self._engine.dispose()
        except Exception as error:
            raise threw(self.id, error) from error

    def _answer(
        self, method: Callable[..., T], kinds: type[Any] | tuple[type[Any], ...], *arguments: Any
    ) -> T:
        try:
            answer = method(*arguments)
        except Exception as error:
            raise threw(self.id, error) from error
        if not isinstance(answer, kinds):
            raise EngineBroken(self.id, f"{method.__name__}() answered a {type(answer).__name__}")
        return answer
