"""Compaction by the runtime, for engines that do not compact by themselves."""

from __future__ import annotations

from contextengine_server.context.view import View

from .contract import CompactionGoal, CompactionStep, NothingToDo
from .legacy import LegacyEngine, LegacyOptions

_BUILT_IN = LegacyEngine(LegacyOptions())


def delegate_compaction_to_runtime(
    view: View, goal: CompactionGoal
) -> CompactionStep | NothingToDo:
    """What the `compaction` of an engine answers that does not own compaction: one summary of all
    but the newest min(20,000 tokens, half the budget).

    A host that compacts its own transcript gets the range and is told to (Compact answers
    `delegated`, and RecordHostChange{COMPACTED} reports back); for any other the built-in
    compaction makes that summary, through the chain of summarizers. An engine that answered nothing
    instead would leave a session over its budget for good.
    """
    return _BUILT_IN.compaction(view, goal)
