"""What stays evicted: how full the view was when its summaries were committed, from which it is
worked out what had been cut by then.

A summary makes room, and what was evicted before it must not come back for that
(docs/semantics.md#what-stays-and-what-goes). How much was evicted depends on the budget, so the
facts of every commit are kept. Only those matter that no other outdoes in everything: at every
budget it is one of them that reached furthest.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from functools import lru_cache

import msgspec
from msgspec.structs import replace

Needs = Mapping[int, int]
"""The least room, beside what leads and what is pinned, that would always have held a part of what
stands before the newest history, and all of it that stands behind the part. A part is named by the
first step of a summary, or by the last of a range that none covers: of a range without its own
tokens, so that each of its steps may be held against it."""

_NEEDS = msgspec.json.Decoder(dict[int, int])


def encoded(needs: Needs) -> str:
    """Needs as a summary's row holds them: few of them are ever looked at again."""
    return msgspec.json.encode(needs).decode() if needs else ""


@lru_cache(maxsize=1_024)
def decoded(needs: str) -> Needs:
    """Needs from a row; none where nothing is known, or what was written cannot be read."""
    try:
        return _NEEDS.decode(needs) if needs else {}
    except msgspec.DecodeError:
        return {}


class CommitSnapshot(msgspec.Struct, frozen=True):
    """The view just before a summary's commit: what was evicted then, at any budget, is worked out
    from it again."""

    view: int = 0
    """Its tokens."""
    total: int = 0
    """The running token sum behind its newest atom."""
    fixed: int = 0
    """The tokens of what stood before its newest history: summaries, what lay uncovered between
    them, and leading messages."""
    peak: int = 0
    """The tokens that a user's message took besides, where the cut lay behind it."""
    masked: int = 0
    """The revision of the commit before it, which decided what was masked; 0: there was none. It
    follows from the summaries there are, and is stored nowhere."""
    user_step: int = -1
    """The step of the newest user's message; -1: there was none, or it is not known any more."""
    needs: str = ""
    """What each part of what stood before the newest history had needed by then (`Needs`, as
    `encoded`)."""

    @property
    def reach(self) -> int:
        """The running sum that a cut would have reached in a budget without any room. The room that
        a budget leaves is subtracted from it."""
        return self.end + self.fixed

    @property
    def end(self) -> int:
        """The same where nothing but the newest history took room."""
        return self.total + self.peak

    def is_outdone(self, others: Iterable[CommitSnapshot]) -> bool:
        """True where one of the others is so full that this one decides at no budget."""
        view, masked, end, reach = self.view, self.masked, self.end, self.reach
        return any(
            one.view >= view
            and one.total + one.fixed >= reach  # a message may have taken nothing besides
            and one.total >= end
            and one.masked <= masked
            for one in others
        )


@dataclass(slots=True)
class EvictionHistory:
    """The commits that may decide what stays evicted."""

    front: list[CommitSnapshot] = field(default_factory=list)
    """The fullest first; none of them outdoes another."""
    by_history: list[CommitSnapshot] = field(default_factory=list)
    """The same by how much history there was, those of one history and its masks by what stood
    before its newest."""
    runs: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By the revision of each commit: how much history there was, and the first of the commits of
    that same history."""
    peak: int = 0
    """The most that a user's message took besides."""
    newest: CommitSnapshot = field(default_factory=CommitSnapshot)
    """The view before the newest commit."""
    created: int = 0
    """The revision of the newest commit; 0: there was none."""

    def add(self, before: CommitSnapshot, created: int, masked: int = 0) -> None:
        """Takes in one more commit, of this revision; `masked`: see `CommitSnapshot`. It counts as
        following the first commit of the history that the one before it had: all of a compaction
        leave the same masks."""
        total, first = self.runs.get(masked, (-1, masked))
        self.runs[created] = before.total, first if total == before.total else created
        before = replace(before, masked=first)
        if created >= self.created:
            self.newest, self.created = before, created
        # A commit outdoes none that is fuller: these stand before `first`, those as full to `last`.
        first = bisect_left(self.front, -before.view, key=_emptiness)
        last = bisect_right(self.front, -before.view, key=_emptiness)
        if before.is_outdone(self.front[:last]):
            return
        left = [
            [one for one in some if not one.is_outdone((before,))]
            for some in (self.front[first:last], self.front[last:])
        ]
        gone = set(map(id, self.front[first:])) - {id(one) for some in left for one in some}
        self.front[first:] = [*left[0], before, *left[1]]
        if gone:
            self.by_history = [one for one in self.by_history if id(one) not in gone]
        insort(self.by_history, before, key=_history)
        self.peak = max(self.peak, before.peak)

    def copy(self) -> EvictionHistory:
        """A copy that goes on by itself."""
        by_history, runs = list(self.by_history), dict(self.runs)
        return replaced(self, front=list(self.front), by_history=by_history, runs=runs)

    def evicted(self, room: int) -> bool:
        """True where a budget with this much room had evicted something before a commit."""
        return bool(self.front) and self.front[0].view > room

    def evicting(self, room: int) -> Iterator[CommitSnapshot]:
        """The commits before which it had, those of the most history first; of one history and its
        masks those before which the most stood before its newest."""
        return (before for before in reversed(self.by_history) if before.view > room)


def history_of(commits: Iterable[tuple[CommitSnapshot, int, int]]) -> EvictionHistory:
    """The commits of these that may decide, each with its revision and that of the one before."""
    history = EvictionHistory()
    for before, created, masked in commits:
        history.add(before, created, masked)
    return history


def _emptiness(before: CommitSnapshot) -> int:
    return -before.view


def _history(before: CommitSnapshot) -> tuple[int, int, int]:
    return before.total, before.masked, before.fixed
