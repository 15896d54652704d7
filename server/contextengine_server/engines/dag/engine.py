"""The `dag` engine, after Comis's lossless context DAG and lossless-claw (docs/dag.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contextengine_server.context.message import Form
from contextengine_server.context.plan import Declared, Keep, Plan
from contextengine_server.context.view import Summary, View

from ..base import ADDITION, BaseEngine
from ..contract import CompactionGoal, CompactionStep, NothingToDo, Tools
from . import compaction
from .options import DagOptions
from .plan import plan
from .sizes import LEAST_LIMIT, limit_of, saved_of

SUMMARY_TOKENS = 4_000
"""What a model that writes a summary needs room for, where no option says how long one may be."""


class DagEngine(BaseEngine[DagOptions]):
    """Stores losslessly, summarizes the oldest history outside the tail, assembles within the
    budget."""

    id = "dag"
    name = "Lossless context DAG"

    def __init__(self, options: DagOptions) -> None:
        super().__init__(options)
        self.threshold = options.context_threshold or 1.0
        self.defers = options.defer_compaction
        self.chunk = options.leaf_chunk_tokens
        self.summary_tokens = options.leaf_target_tokens or SUMMARY_TOKENS
        self.tools = Tools(("ctx_search", "ctx_inspect", "ctx_expand"), options.max_expand_tokens)
        self.declared = Declared(
            tail_steps=options.fresh_tail_turns,
            forms=frozenset({Form.HEAD_TAIL, Form.PLACEHOLDER}),
        )

    def addition(self, summaries: Sequence[Summary]) -> str:
        """The uncertainty clause where summaries are shown."""
        return ADDITION if summaries else ""

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        """All of it where it fits; else see `dag.plan`."""
        plain = view.atoms and not (view.large or view.summaries or view.evictions.front)
        if plain and view.total <= budget - reserved:
            return Plan((Keep(0, view.base + len(view.atoms) - 1),))
        return plan(view, budget, reserved, self.options.fresh_tail_turns)

    def saved(self, view: View, available: int) -> Mapping[int, int]:
        """See `dag.sizes`."""
        return saved_of(view, available, self.options)

    def due(self, view: View, available: int, measured: int | None) -> bool:
        """See `dag.compaction`."""
        used = max(view.total, measured or 0)
        if not view.summaries and used <= min(self.threshold, LEAST_LIMIT) * available:
            return False
        return compaction.due(view, available, measured, self.options)

    def limit(self, view: View, available: int) -> int:
        """See `dag.sizes`."""
        return limit_of(view, available, self.options)

    def compaction(self, view: View, goal: CompactionGoal) -> CompactionStep | NothingToDo:
        """See `dag.compaction`."""
        return compaction.next_step(view, goal, self.options)
