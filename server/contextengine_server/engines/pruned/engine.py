"""The one door: an engine whose plans show old results in short.

What the engine itself decides is not changed by it: what it evicts, and when it compacts, follows
from messages as they came. So nothing that was evicted comes back for room that pruning made, and
what it saves is saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace
from pydantic import BaseModel

from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.budget import cell as on_grid
from contextengine_server.context.epoch import digest
from contextengine_server.context.message import Form
from contextengine_server.context.plan import Plan, plan_tokens
from contextengine_server.context.view import Summary, View

from ..companion import companion_of
from ..contract import (
    SESSION_SEARCH,
    CompactionGoal,
    CompactionStep,
    Engine,
    NothingToDo,
    facts_of,
)
from ..rewrite import rewriter_of
from ..teller import teller_of
from .forms import in_short
from .moments import Pruned, Reader, pruned_by_now
from .rules import PruningRules

CELLS = 3
"""So many cells further back than the engine shows anything a decision about it may look."""


class PrunedEngine:
    """An engine under the rules of session pruning."""

    def __init__(self, engine: Engine, rules: PruningRules) -> None:
        self._engine, self._rules = engine, rules
        self.id = engine.id
        self.name = engine.name
        self.version = engine.version
        self.owns_compaction = engine.owns_compaction
        self.threshold = engine.threshold
        declared = engine.declared
        self.declared = replace(declared, forms=declared.forms | {Form.PLACEHOLDER})
        self.defers = engine.defers
        self.notices = engine.notices
        self.chunk = engine.chunk
        self.summary_tokens = engine.summary_tokens
        self.tools = engine.tools
        self.rewriter = rewriter_of(engine)
        self.companion = companion_of(engine)
        self.teller = teller_of(engine)
        self.facts = facts_of(engine)
        self.fingerprint = digest([engine.fingerprint, rules]).hex()
        # It reads messages by their sequences, and is named where an engine has it: the others'
        # is ctx_expand, whose name their markers do not say.
        self._tool = SESSION_SEARCH if SESSION_SEARCH in engine.tools.names else ""
        self._reader = Reader(rules, declared.tail_steps, declared.evicts)

    @property
    def options(self) -> BaseModel:
        """See Engine.options."""
        return self._engine.options

    def reach(self, cell: ReferenceTokens) -> int | None:
        """Further than the engine's own, so that what was decided is found again."""
        reach = self._engine.reach(cell)
        return None if reach is None else reach + CELLS * cell

    def addition(self, summaries: Sequence[Summary]) -> str:
        """See Engine.addition."""
        return self._engine.addition(summaries)

    def plan(self, view: View, budget: ReferenceTokens, reserved: int = 0) -> Plan:
        """The engine's plan, with old results in short."""
        made = self._engine.plan(view, budget, reserved)
        pruned = pruned_by_now(view, on_grid(budget), self._reader)
        if pruned == Pruned():
            return made
        short = in_short(made, view, pruned, self._rules, self._tool)
        if short.over and plan_tokens(short, view) <= budget - reserved:
            short = replace(short, over=False)
        return short

    def saved(self, view: View, available: ReferenceTokens) -> Mapping[int, int]:
        """What the engine's own forms save: of what it evicts and summarizes nothing else tells."""
        return self._engine.saved(view, available)

    def due(self, view: View, available: ReferenceTokens, measured: ReferenceTokens | None) -> bool:
        """See Engine.due."""
        return self._engine.due(view, available, measured)

    def limit(self, view: View, available: ReferenceTokens) -> int:
        """See Engine.limit."""
        return self._engine.limit(view, available)

    def compaction(self, view: View, goal: CompactionGoal) -> CompactionStep | NothingToDo:
        """See Engine.compaction."""
        return self._engine.compaction(view, goal)

    async def dispose(self) -> None:
        """See Engine.dispose."""
        await self._engine.dispose()
