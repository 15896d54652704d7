"""The `legacy` engine of OpenClaw, Genesis and FluffBuzz: what is there is shown; compaction is the
runtime's affair.

It never evicts: over budget it says so, and the harness compacts. The built-in runtime compaction
makes one summary of the older messages and keeps the newest min(20,000 tokens, half the budget) as
they are, as OpenClaw does with its setting keepRecentTokens
(docs/reference/session-management-compaction.md there).
"""

from __future__ import annotations

from msgspec.structs import replace

from contextengine_server.context.lawful import newest_within, plan_of
from contextengine_server.context.layout import everything, uncovered
from contextengine_server.context.plan import Declared, Plan, plan_tokens
from contextengine_server.context.view import View

from ..base import BaseEngine
from ..contract import CompactionGoal, CompactionStep, NothingToDo
from .heartbeats import RULE as HEARTBEAT
from .heartbeats import idle
from .limit import RULE, hidden, within
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

    def plan(self, view: View, budget: int, reserved: int = 0) -> Plan:
        """The whole view, and nothing less: what does not fit is for the harness to compact. Where
        an operator limits the turns, all of the newest of them; and no idle heartbeats."""
        beats = idle(view, self.options)
        gone = hidden(view, self.options, {first for first, _ in beats})
        if gone or beats:
            ranges = uncovered(view)
            for first, last in (*beats, (gone.start, gone.stop - 1)):
                ranges = within(ranges, range(first, last + 1))
            rule = RULE if gone else HEARTBEAT
            made = plan_of(view, ranges, view.summaries, rule=rule)
            name = f"heartbeats to {beats[-1][0]}" if beats else ""
            over = plan_tokens(made, view) > budget - reserved
            return replace(made, over=over, forms=name)
        return Plan(everything(view), over=view.view_tokens() > budget - reserved)

    def compaction(self, view: View, goal: CompactionGoal) -> CompactionStep | NothingToDo:
        """One summary over all but the newest part, in place of every summary before. The newest
        part is as small as the room makes it, down to the last step."""
        used = max(view.view_tokens(), goal.measured or 0)
        if not goal.force and used <= goal.available:
            return NothingToDo("already under target")
        if not view.steps:
            return NothingToDo("nothing to compact")
        fixed = sum(view.atom(step).tokens for step in view.must_stay())
        room = goal.room - fixed - (used - view.view_tokens())
        # Where it is over, so little is kept that what is folded gains more than the floor.
        kept = min(self.options.keep_recent_tokens, goal.available // 2, room - goal.floor)
        last = newest_within(view, max(0, kept), view.raw_from) - 1
        return self._step(view, goal, last, used)

    def _step(
        self, view: View, goal: CompactionGoal, last: int, used: int
    ) -> CompactionStep | NothingToDo:
        """The summary over everything up to a step, or up to where summaries reach already."""
        first = next(
            (step for step in range(view.leading, view.steps) if step not in set(view.pinned)),
            view.steps,
        )
        if view.summaries:
            first = max(view.leading, min(first, view.summaries[0].first_step))
            last = max(last, view.raw_from - 1)
        if last < first:
            return NothingToDo("nothing to compact")
        replaced = [summary for summary in view.summaries if summary.first_step >= first]
        if len(replaced) == 1 and replaced[0].last_step >= last and used <= goal.room:
            return NothingToDo("already compacted")
        stays = set(view.must_stay())
        gain = sum(s.tokens for s in replaced) + sum(
            view.atom(step).tokens
            for run_first, run_last in uncovered(view)
            for step in range(max(run_first, first), min(run_last, last) + 1)
            if step not in stays
        )
        room = goal.room - (used - gain)
        if gain <= goal.floor:
            return NothingToDo("already compacted" if replaced else "nothing to compact")
        target = max(goal.floor, min(self.options.summary_max_tokens, room, gain - 1))
        previous = "\n\n".join(summary.text for summary in replaced)
        return CompactionStep(
            first, last, target, tuple(s.id for s in replaced), previous, origin="runtime"
        )
