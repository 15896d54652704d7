"""The `compressor` engine, after the built-in one of Hermes (docs/compressor.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from contextengine_server.context.message import Form
from contextengine_server.context.plan import Declared, Plan
from contextengine_server.context.view import Summary, View

from ..base import BEYOND, BaseEngine
from ..contract import CompactionGoal, CompactionStep, NothingToDo, Tools
from . import compaction
from .facts import facts
from .forms import TAIL_STEPS, forms_now
from .options import CompressorOptions
from .plan import plan
from .sizes import SMALL_SHARE, SUMMARY_MOST, threshold_in
from .words import HANDOFF

SHORT_REACH = 4
"""So many times its budget of history a plan may need, where old results are shown in short."""


DECLARED = Declared(
    tail_steps=TAIL_STEPS, forms=frozenset({Form.HEAD_TAIL, Form.PLACEHOLDER}), handoff=True
)


class CompressorEngine(BaseEngine[CompressorOptions]):
    """Keeps the head and the tail, and one summary of what lies between."""

    id = "compressor"
    name = "Context compressor"
    summary_tokens = SUMMARY_MOST
    tools = Tools(("ctx_search", "ctx_inspect", "ctx_expand"))

    def __init__(self, options: CompressorOptions) -> None:
        super().__init__(options)
        self.threshold = max(options.threshold, SMALL_SHARE) if options.enabled else 0.0
        self.chunk = compaction.CHUNK
        abort = options.abort_on_summary_failure
        self.declared = replace(DECLARED, failing="abort" if abort else "cool_down")

    def reach(self, cell: int) -> int | None:
        """Further than its budget: what is shown in short costs next to nothing."""
        return SHORT_REACH * (cell + max(1, cell // BEYOND))

    def addition(self, summaries: Sequence[Summary]) -> str:
        """What the summary is, and is not, where it is shown."""
        return HANDOFF if summaries else ""

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        """See `compressor.plan`."""
        return plan(view, budget, reserved, self.options)

    def saved(self, view: View, available: int) -> Mapping[int, int]:
        """See `compressor.forms`."""
        return forms_now(view, available, self.options).saved

    def due(self, view: View, available: int, measured: int | None) -> bool:
        """See `compressor.compaction`."""
        return compaction.due(view, available, measured, self.options)

    def limit(self, view: View, available: int) -> int:
        """See `compressor.sizes`."""
        return threshold_in(view, available, self.options)

    def facts(self, view: View, available: int) -> dict[str, object]:
        """See `compressor.facts`."""
        return facts(view, available, self.options)

    def compaction(self, view: View, goal: CompactionGoal) -> CompactionStep | NothingToDo:
        """See `compressor.compaction`."""
        return compaction.next_step(view, goal, self.options)
