"""Where one summary is kept up to date, in place of several that are folded.

Of several, each pays for what frames it, and the newest say of their few messages far more than the
oldest of their many. One that is made anew with what follows says of all of it what is worth most.
It costs the whole of the summary with each compaction: little where the list begins anew anyway,
and nothing is lost by it where it is written from the messages again and not from its own text.
"""

from __future__ import annotations

from contextengine_server.context.settled import settled_room
from contextengine_server.context.view import Summary, View

from ..contract import CompactionGoal
from .condensation import may_join
from .options import DagOptions
from .sizes import Shares, few_steps

MOST_EXTRACTED, MOST_WRITTEN = 60, 8
"""There is one where summaries have no more room than so many times what the smallest costs; and
where a model writes it, which is given its text and not the messages again, and is paid by what it
writes: there what frames several would take too much."""
MUCH = 0.4
"""Where less of the history is worth telling, and steps are large beside the budget, the newest of
it is worth more than how the oldest is told."""
FILLED = 0.85
"""It takes this share of the room of summaries."""
GROWN = 0.85
"""From this share of its room on it is taken to be as large as it becomes."""
LARGER = 0.4
"""A step twice as large as any before, up to this share of the budget, leaves it its room: without
it nothing would say what came before."""
MOST_TOKENS, MOST_MESSAGES = 200_000, 4_000
"""What one covers at most, in order to be made from messages again in little time."""


def keeps_one(view: View, shares: Shares, goal: CompactionGoal, options: DagOptions) -> bool:
    """True where one summary stands for all that it can. Not where an option says that it would be
    too short for that."""
    if shares.worth < MUCH and few_steps(view, goal.available):
        return False
    most = MOST_EXTRACTED if goal.capacity is None else MOST_WRITTEN
    room, longest = shares.settled_room, options.leaf_target_tokens
    return room <= most * goal.floor and (longest is None or room <= longest)


def room_of_one(view: View, shares: Shares, available: int) -> int:
    """The tokens that it may take, where there is no other."""
    peak = view.fold.step_peak
    spare = min(peak, max(0, int(LARGER * available) - peak))
    room = min(int(FILLED * shares.settled_room), settled_room(view, available) - spare)
    return max(0, room)


def growth_of_one(view: View, shares: Shares, available: int) -> int:
    """How much larger it may become; 0 where it is nearly as large as it may be: what writes it may
    write less."""
    room = room_of_one(view, shares, available)
    return room - shares.settled if shares.settled < GROWN * room else 0


def taken_in(view: View, first: int) -> list[Summary]:
    """The newest summaries, which are made anew with what follows from a step on. A host's own
    stay as they are: what it wrote is not said again by picking from the messages."""
    found: list[Summary] = []
    tokens = messages = 0
    for summary in reversed(view.summaries):
        tokens += summary.covered_tokens
        messages += summary.message_count
        if (
            summary.origin != "engine"
            or summary.last_step >= first
            or max(tokens / MOST_TOKENS, messages / MOST_MESSAGES) > 1
            or not may_join(view, summary.last_step + 1, first)
        ):
            break
        found, first = [summary, *found], summary.first_step
    return found
