"""The `legacy` engine of OpenClaw, Genesis and FluffBuzz: what is there is shown; compaction is the
runtime's affair.

It never evicts: over budget it says so, and the harness compacts. The built-in runtime compaction
makes one summary of the older messages and keeps the newest min(20,000 tokens, half the budget) as
they are, as OpenClaw does with its setting keepRecentTokens
(docs/reference/session-management-compaction.md there).
"""

from __future__ import annotations

from contextengine_server.context.budget import largest_in
from contextengine_server.context.lawful import least, newest_within
from contextengine_server.context.layout import everything, lay_out, uncovered
from contextengine_server.context.plan import Declared, Plan
from contextengine_server.context.view import View

from ..base import BaseEngine
from ..contract import CompactionGoal, CompactionStep, NothingToDo
from .options import LegacyOptions


class LegacyEngine(BaseEngine[LegacyOptions]):
    """Passes the view through."""

    id = "legacy"
    name = "Legacy Context Engine"
    owns_compaction = False
    notices = False
    declared = Declared(tail_steps=1, evicts=False)

    def __init__(self, options: LegacyOptions) -> None:
        super().__init__(options)
        self.summary_tokens = options.summary_max_tokens

    def reach(self, cell: int) -> int | None:
        """Everything: nothing is ever evicted."""
        return None

    def plan(self, view: View, cell: int, reserved: int = 0) -> Plan:
        """The whole view. Summaries, never messages, give way where even a view that keeps nothing
        else would have no room for them; else it is for the harness to compact."""
        tokens = view.view_tokens()
        room = cell - reserved
        if tokens <= room:
            return Plan(everything(view))
        if least(view) + sum(summary.tokens for summary in view.summaries) <= room:
            return Plan(everything(view), over=True)
        kept = list(view.summaries)
        while kept and tokens > room:
            tokens -= kept.pop(0).tokens
        # What no summary has room beside is held against any budget of the cell, not its least.
        if tokens <= largest_in(cell) - reserved:
            return Plan(lay_out(view, uncovered(view), kept), rule="law budget", over=tokens > room)
        return Plan(everything(view), over=True)

    def compaction(self, view: View, goal: CompactionGoal) -> CompactionStep | NothingToDo:
        """One summary over all but the newest part, in place of every summary before."""
        if not goal.force and max(view.view_tokens(), goal.measured or 0) <= goal.available:
            return NothingToDo("already under target")
        if not view.steps:
            return NothingToDo("nothing to compact")
        first = next(
            (step for step in range(view.leading, view.steps) if step not in set(view.pinned)),
            view.steps,
        )
        last = self._keep_from(view, goal) - 1
        if view.raw_from - 1 > last:
            last = view.raw_from - 1
        if last < first:
            return NothingToDo("nothing to compact")
        replaced = [summary for summary in view.summaries if summary.first_step >= first]
        if replaced and replaced[-1].last_step >= last and len(replaced) == 1:
            return NothingToDo("already compacted")
        stays = set(view.must_stay())
        gain = sum(s.tokens for s in replaced) + sum(
            view.atom(step).tokens
            for run_first, run_last in uncovered(view)
            for step in range(max(run_first, first), min(run_last, last) + 1)
            if step not in stays
        )
        if gain <= goal.floor:
            return NothingToDo("nothing to compact")
        room = goal.room - (view.view_tokens() - gain)
        target = max(goal.floor, min(self.options.summary_max_tokens, room, gain - 1))
        previous = "\n\n".join(summary.text for summary in replaced)
        return CompactionStep(
            first, last, target, tuple(s.id for s in replaced), previous, origin="runtime"
        )

    def _keep_from(self, view: View, goal: CompactionGoal) -> int:
        """The first step of the newest part that stays: as much as allowed, never less than the
        last step."""
        fixed = sum(view.atom(step).tokens for step in view.must_stay())
        limit = min(
            self.options.keep_recent_tokens,
            goal.available // 2,
            max(0, goal.room - fixed - goal.floor),
        )
        return newest_within(view, limit, view.raw_from)
