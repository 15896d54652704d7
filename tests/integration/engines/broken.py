"""Engines that fail in one chosen way, to see what the service makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from contextengine_server.context.plan import Keep, Plan
from contextengine_server.context.view import Summary, View
from contextengine_server.engines.contract import CompactionGoal, CompactionStep, NothingToDo
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.engines.registration import Registration

SAID = "step 7 has no body"
SECRET = "hunter2-swordfish"
TEXT = f"{SAID}: password={SECRET}"
"""What the exceptions say. Operators read it without the secret; no other caller reads any of
it."""


class Boom(RuntimeError):
    """What the broken engine raises."""


class Fragile(DagEngine):
    """The dag, but for one operation that breaks in the way of `how`."""

    id = "fragile"
    name = "Fragile"
    how: ClassVar[str] = ""
    disposed: ClassVar[int] = 0

    def _break(self, operation: str) -> None:
        if type(self).how == operation:
            raise Boom(TEXT)

    def reach(self, cell: int) -> int | None:
        self._break("reach")
        return super().reach(cell)

    def addition(self, summaries: Sequence[Summary]) -> str:
        self._break("addition")
        return super().addition(summaries)

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        self._break("plan")
        match type(self).how:
            case "no plan":
                return None  # type: ignore[return-value]
            case "too much":
                return Plan((Keep(0, view.steps - 1, "kept"),))
            case "nothing":
                return Plan(())
            case "steps that are not there":
                return Plan((Keep(0, view.steps + 5, "kept"),))
            case "twice":
                return Plan((Keep(0, view.steps - 1, "kept"),) * 2)
        return super().plan(view, budget, reserved)

    def due(self, view: View, available: int, measured: int | None) -> bool:
        self._break("due")
        return super().due(view, available, measured)

    def compaction(self, view: View, goal: CompactionGoal) -> CompactionStep | NothingToDo:
        self._break("compaction")
        if type(self).how == "no step":
            return None  # type: ignore[return-value]
        if type(self).how == "a step that is not there":
            return CompactionStep(0, view.steps, 100)
        return super().compaction(view, goal)

    async def dispose(self) -> None:
        type(self).disposed += 1
        self._break("dispose")


class Wanting:
    """No engine at all."""

    id = "wanting"

    def __init__(self, options: Any) -> None:
        pass


def refuse(options: Any) -> Any:
    """A factory that raises."""
    raise Boom(TEXT)


FRAGILE = Registration("fragile", DagOptions, Fragile, "plugin:test")
WANTING = Registration("wanting", DagOptions, Wanting, "plugin:test")  # type: ignore[arg-type]
REFUSING = Registration("refusing", DagOptions, refuse, "plugin:test")
