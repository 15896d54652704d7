"""What stays evicted: how full the view was when its summaries were committed, from which it is
worked out what had been cut by then.

A summary makes room, and what was evicted before it must not come back for that
(docs/semantics.md#what-stays-and-what-goes). How much was evicted depends on the budget, so the
facts of every commit are kept. Only the outermost matter: of two commits, the one with the fuller
view and the further reach decides at every budget.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace


class CommitSnapshot(msgspec.Struct, frozen=True):
    """The view just before a summary's commit: what was evicted then, at any budget, is worked out
    from it again."""

    view: int = 0
    """Its tokens."""
    total: int = 0
    """The running token sum behind its newest atom."""
    fixed: int = 0
    """The tokens of its summaries and leading messages."""
    peak: int = 0
    """The tokens of its largest user message."""

    @property
    def reach(self) -> int:
        """The running sum that a cut would have reached in a budget without any room. The room that
        a budget leaves is subtracted from it."""
        return self.total + self.fixed

    def filled(self, share: int) -> int:
        """The tokens of the view together with the room that was kept free for the newest user
        message, at most `share`. Room is kept free only once there are summaries."""
        return self.view + (min(self.peak, share) if self.view != self.total else 0)


def _emptiness(before: CommitSnapshot) -> int:
    return -before.view


@dataclass(slots=True)
class EvictionHistory:
    """The outermost of all commits: the fuller the view was, the less far its cut reached."""

    front: list[CommitSnapshot] = field(default_factory=list)
    """The view's tokens falling, the reach rising."""

    def add(self, before: CommitSnapshot) -> None:
        """Takes in one more commit."""
        at = bisect_left(self.front, -before.view, key=_emptiness)
        same = at < len(self.front) and self.front[at].view == before.view
        outer = at if same else at - 1
        if outer >= 0 and self.front[outer].reach >= before.reach:
            if before.peak > self.front[outer].peak:
                self.front[outer] = replace(self.front[outer], peak=before.peak)
            return
        behind, peak = at, before.peak
        while behind < len(self.front) and self.front[behind].reach <= before.reach:
            peak = max(peak, self.front[behind].peak)
            behind += 1
        self.front[at:behind] = [before if peak == before.peak else replace(before, peak=peak)]

    def at(self, room: int, share: int = 0) -> CommitSnapshot | None:
        """The commit whose eviction reached furthest, in a budget with this much room of which at
        most `share` is kept free for the newest user message. None where nothing had been
        evicted at that budget."""
        index = bisect_left(self.front, share - room, key=_emptiness)
        behind = (self.front[at] for at in range(index - 1, -1, -1))
        return next((before for before in behind if before.filled(share) > room), None)


def history_of(commits: Iterable[CommitSnapshot]) -> EvictionHistory:
    """The outermost of these commits."""
    history = EvictionHistory()
    for before in commits:
        history.add(before)
    return history
