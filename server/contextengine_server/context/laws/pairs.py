"""Law 1, pairs: no tool call without its results, no result without its call, none twice, order
kept.

Inside an atom the fold holds it. Over a plan it means: whole atoms, each at most once, in order. A
summary stands where what it covers begins; steps that it covers and law 4 keeps may follow it.
"""

from __future__ import annotations

from ..plan import Summarized
from .case import Case, Violation


def check(case: Case) -> Violation | None:
    """Segments are in order, disjoint, and made of steps that exist and were read."""
    behind: tuple[int, ...] = ()
    following = 0
    """The step behind what is shown so far."""
    for segment in case.plan.segments:
        if isinstance(segment, Summarized):
            place = (segment.summary.first_step, False)
            if segment.summary.first_step < following:
                return Violation(
                    1, "pairs", f"summary {segment.summary.id} stands behind what it covers"
                )
        else:
            place = (segment.first, True)
            if segment.first > segment.last:
                return Violation(1, "pairs", f"empty range {segment.first} to {segment.last}")
            if segment.first < 0 or segment.last >= case.view.steps:
                wrong = segment.first if segment.first < 0 else segment.last
                return Violation(1, "pairs", f"step {wrong} does not exist")
            if segment.first < following:
                return Violation(1, "pairs", f"step {segment.first} is shown twice")
            if not all(
                map(case.view.holds, range(segment.first, min(segment.last + 1, case.view.base)))
            ):
                return Violation(
                    1, "pairs", f"steps {segment.first} to {segment.last} were not read"
                )
            following = segment.last + 1
        if place <= behind:
            return Violation(1, "pairs", f"what begins at step {place[0]} stands out of order")
        behind = place
    return None
