"""Between the rooms and an engine: whatever it throws, or answers that is no answer, is its own
failure."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ParamSpec, TypeVar, cast

import msgspec
from pydantic import BaseModel

from contextengine_server.context.plan import Plan
from contextengine_server.context.view import View

from .companion import companion_of
from .contract import CompactionGoal, CompactionStep, Engine, NothingToDo, facts_of
from .failure import EngineBroken, threw
from .rewrite import rewriter_of
from .teller import teller_of

P = ParamSpec("P")
T = TypeVar("T")

REACHES = 64
"""Budgets whose reach is kept: it follows from the options and the budget alone, and is asked for
at every call."""


def guarded(engine_id: str, method: Callable[P, T], *kinds: type[Any]) -> Callable[P, T]:
    """An engine's method that raises EngineBroken and nothing else: where it throws, and where its
    answer is of no kind that it may be."""

    def ask(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            answer = method(*arguments, **named)
        except (Exception, SystemExit, GeneratorExit) as error:
            raise threw(engine_id, error) from error
        if not isinstance(answer, kinds):
            raise EngineBroken(engine_id, f"{method.__name__}() answered a {type(answer).__name__}")
        return answer

    return ask


def _remembered(method: Callable[P, T]) -> Callable[P, T]:
    return cast(Callable[P, T], lru_cache(REACHES)(method))


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
        self.rewriter = rewriter_of(engine)
        self.companion = companion_of(engine)
        self.teller = teller_of(engine)
        self.fingerprint = engine.fingerprint
        self._options = engine.options
        self.reach = _remembered(guarded(self.id, engine.reach, int, type(None)))
        self.addition = guarded(self.id, engine.addition, str)
        self.plan = guarded(self.id, engine.plan, Plan)
        self.saved = guarded(self.id, engine.saved, dict)
        self.due = guarded(self.id, engine.due, bool)
        self.limit = guarded(self.id, engine.limit, int)
        told = facts_of(engine)
        self.facts = None if told is None else guarded(self.id, told, dict)
        self._compaction = guarded(self.id, engine.compaction, CompactionStep, NothingToDo)

    @property
    def options(self) -> BaseModel:
        """See Engine.options."""
        return self._options

    def compaction(self, view: View, goal: CompactionGoal) -> CompactionStep | NothingToDo:
        """See Engine.compaction."""
        made = self._compaction(view, goal)
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
