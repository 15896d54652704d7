"""The `layered` engine, after PyClaw's plugin `dag-compressor` (docs/layered.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contextengine_server.context.message import Form
from contextengine_server.context.plan import Declared, Plan
from contextengine_server.context.view import Summary, View

from ..base import ADDITION, BaseEngine
from ..contract import CompactionGoal, CompactionStep, NothingToDo, Tools
from . import compaction
from .facts import facts
from .forms import forms_of_view
from .options import LayeredOptions
from .plan import TAIL_STEPS, plan
from .sizes import facts_tokens, limit_of, told_tokens
from .teller import LayerTeller


class LayeredEngine(BaseEngine[LayeredOptions]):
    """Keeps what is critical, tells of what is important, states facts and leaves out the rest."""

    id = "layered"
    name = "Layered context"
    tools = Tools(("ctx_search", "ctx_inspect", "ctx_expand"))
    declared = Declared(tail_steps=TAIL_STEPS, forms=frozenset({Form.HEAD_TAIL}))

    def __init__(self, options: LayeredOptions) -> None:
        super().__init__(options)
        settings = options.compaction
        self.threshold = 1 - settings.reserve_ratio if settings.enabled else 0.0
        self.chunk = compaction.CHUNK
        self.summary_tokens = told_tokens(options)
        self.teller = None if options.linear else LayerTeller(options, facts_tokens(options))

    def addition(self, summaries: Sequence[Summary]) -> str:
        """The uncertainty clause where summaries are shown."""
        return ADDITION if summaries else ""

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        """See `layered.plan`."""
        return plan(view, budget, reserved)

    def saved(self, view: View, available: int) -> Mapping[int, int]:
        """See `layered.forms`."""
        return forms_of_view(view, available).saved

    def due(self, view: View, available: int, measured: int | None) -> bool:
        """See `layered.compaction`."""
        return compaction.due(view, available, measured, self.options)

    def limit(self, view: View, available: int) -> int:
        """See `layered.sizes`."""
        return limit_of(available, self.options)

    def facts(self, view: View, available: int) -> dict[str, object]:
        """See `layered.facts`."""
        return facts(view, available, self.options)

    def compaction(self, view: View, goal: CompactionGoal) -> CompactionStep | NothingToDo:
        """See `layered.compaction`."""
        return compaction.next_step(view, goal, self.options)
