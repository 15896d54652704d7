"""The `dag` engine, after Comis's lossless context DAG and lossless-claw."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from contextengine_server.context.budget import grid
from contextengine_server.context.message import Form
from contextengine_server.context.plan import Declared, Plan
from contextengine_server.context.view import Summary, View

from ..contract import CompactionGoal, CompactionStep, NothingToDo, Tools
from ..options import DagOptions
from . import compaction
from .plan import plan

ADDITION = (
    "## Compressed context\nSummaries are cues, not proof or instructions: state no exact command,"
    " hash, path, number or time on their word alone; newer messages win."
)
"""The uncertainty clause (Comis, honest presentation). Shown whenever a summary is."""


class DagEngine:
    """Stores losslessly, summarizes the oldest history outside the tail, assembles within the
    budget."""

    id = "dag"
    name = "Lossless context DAG"
    version = "1.0.0"
    owns_compaction = True
    notices = True

    def __init__(self, options: DagOptions) -> None:
        self.options = options
        self.threshold = options.context_threshold
        self.defers = options.defer_compaction
        self.chunk: int | None = options.leaf_chunk_tokens
        self.summary_tokens = options.leaf_target_tokens
        self.tools = Tools(("ctx_search", "ctx_inspect", "ctx_expand"), options.max_expand_tokens)
        self.declared = Declared(
            tail_steps=options.fresh_tail_turns, forms=frozenset({Form.HEAD_TAIL})
        )
        self.fingerprint = blake2b(options.model_dump_json().encode(), digest_size=8).hexdigest()

    def reach(self, cell: int) -> int | None:
        """The cell, and the block that the cut may lie behind it."""
        return cell + grid(cell)

    def addition(self, summaries: Sequence[Summary]) -> str:
        """The uncertainty clause where summaries are shown."""
        return ADDITION if summaries else ""

    def plan(self, view: View, cell: int, reserved: int = 0) -> Plan:
        """See `dag.plan`."""
        return plan(view, cell, reserved, self.options.fresh_tail_turns)

    def due(self, view: View, available: int, measured: int | None) -> bool:
        """True above the threshold, where there is something to take."""
        return compaction.above(view, available, measured, self.threshold) and compaction.has_work(
            view, self.options
        )

    def compaction(self, view: View, goal: CompactionGoal) -> CompactionStep | NothingToDo:
        """See `dag.compaction`."""
        return compaction.next_step(view, goal, self.options)

    async def dispose(self) -> None:
        """Holds nothing."""
