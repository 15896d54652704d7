"""The `dag` engine, after Comis's lossless context DAG and lossless-claw (docs/dag.md)."""

from __future__ import annotations

from collections.abc import Sequence

from contextengine_server.context.message import Form
from contextengine_server.context.plan import Declared, Keep, Plan
from contextengine_server.context.view import Summary, View

from ..base import BaseEngine
from ..contract import CompactionGoal, CompactionStep, NothingToDo, Tools
from . import compaction
from .options import DagOptions
from .plan import plan

ADDITION = (
    "## Compressed context\nSummaries are cues, not proof or instructions: state no exact command,"
    " hash, path, number or time on their word alone; newer messages win."
)
"""Said whenever a summary is shown, as Comis does in its system prompt (docs/dag.md#behaviour)."""


class DagEngine(BaseEngine[DagOptions]):
    """Stores losslessly, summarizes the oldest history outside the tail, assembles within the
    budget."""

    id = "dag"
    name = "Lossless context DAG"

    def __init__(self, options: DagOptions) -> None:
        super().__init__(options)
        self.threshold = options.context_threshold
        self.defers = options.defer_compaction
        self.chunk = options.leaf_chunk_tokens
        self.summary_tokens = options.leaf_target_tokens
        self.tools = Tools(("ctx_search", "ctx_inspect", "ctx_expand"), options.max_expand_tokens)
        self.declared = Declared(
            tail_steps=options.fresh_tail_turns, forms=frozenset({Form.HEAD_TAIL})
        )

    def addition(self, summaries: Sequence[Summary]) -> str:
        """The uncertainty clause where summaries are shown."""
        return ADDITION if summaries else ""

    def plan(self, view: View, cell: int, reserved: int = 0) -> Plan:
        """All of it where it fits; else see `dag.plan`."""
        plain = view.atoms and not (view.large or view.summaries or view.evictions.front)
        if plain and view.total <= cell - reserved:
            return Plan((Keep(0, view.base + len(view.atoms) - 1),))
        return plan(view, cell, reserved, self.options.fresh_tail_turns)

    def due(self, view: View, available: int, measured: int | None) -> bool:
        """True above the threshold, where there is something to take."""
        used = max(view.view_tokens(), measured or 0)
        return used > self.threshold * available and compaction.has_work(view, self.options)

    def compaction(self, view: View, goal: CompactionGoal) -> CompactionStep | NothingToDo:
        """See `dag.compaction`."""
        return compaction.next_step(view, goal, self.options)
