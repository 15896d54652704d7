"""The `pipeline` engine, after Comis's of ten layers (docs/pipeline.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from contextengine_server.context.message import Form
from contextengine_server.context.plan import Declared, Plan
from contextengine_server.context.view import Summary, View

from ..base import ADDITION, BEYOND, BaseEngine
from ..contract import SESSION_SEARCH, CompactionGoal, CompactionStep, NothingToDo, Tools
from . import compaction
from .forms import Shaping
from .options import PipelineOptions
from .plan import TAIL_STEPS, plan

MASKED_REACH = 5
"""So many times its budget of history a plan may need, where results are shown in short."""
FORMS = frozenset((Form.HEAD_TAIL, Form.PLACEHOLDER, Form.WITHOUT_REASONING, Form.STRIPPED_TAGS))


class PipelineEngine(BaseEngine[PipelineOptions]):
    """Shows a window of turns, leaves out dead and old results, and summarizes the middle."""

    id = "pipeline"
    name = "Context pipeline"
    threshold = compaction.THRESHOLD
    summary_tokens = 4_000
    tools = Tools((SESSION_SEARCH,))
    declared = Declared(tail_steps=TAIL_STEPS, forms=FORMS)

    def __init__(self, options: PipelineOptions) -> None:
        super().__init__(options)
        self.chunk = compaction.CHUNK
        self.declared = replace(self.declared, rehydrates=options.post_compaction_sections)

    def reach(self, cell: int) -> int | None:
        """Further than its budget: what is masked costs next to nothing."""
        return MASKED_REACH * (cell + max(1, cell // BEYOND))

    def addition(self, summaries: Sequence[Summary]) -> str:
        """The uncertainty clause where summaries are shown."""
        return ADDITION if summaries else ""

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        """See `pipeline.plan`."""
        return plan(view, budget, reserved, self.options)

    def saved(self, view: View, available: int) -> Mapping[int, int]:
        """See `pipeline.forms`."""
        return Shaping(view, available, self.options).now().saved

    def due(self, view: View, available: int, measured: int | None) -> bool:
        """See `pipeline.compaction`."""
        return compaction.due(view, available, measured, self.options)

    def compaction(self, view: View, goal: CompactionGoal) -> CompactionStep | NothingToDo:
        """See `pipeline.compaction`."""
        return compaction.next_step(view, goal, self.options)
