"""What every engine needs to be lawful: the smallest list that no law lets go of, and what is shown
where not all of a view fits.

An engine is free in what it shows, and the laws only say no. These functions say what is always
right: an engine that shows `fitting` of a view breaks no law, brings nothing back that it had
evicted, and leaves no room empty that the newest of what it evicted would fit into. Tokens are in
the reference encoding. `saved` is what other forms of messages save, by step: a message over its
cap is shown head and tail.

What is evicted first is raw history, the oldest first, down to the newest step. What stands before
it (summaries, and what lies uncovered between them) has room of its own, in which the newest stands
longest. That room depends on nothing that shrinks again: so neither a large step nor a large
message of a user's that comes and goes makes anything come and go with it.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, takewhile

import msgspec
from msgspec.structs import replace

from .carried import Reign
from .eviction import CommitSnapshot, encoded
from .layout import Range, lay_out
from .plan import Plan
from .settled import SCRAP, needs_of, settled, settled_room
from .view import Summary, View

NOTHING: Mapping[int, int] = {}


class Saved(Mapping[int, int]):
    """What other forms of messages save, by step, worked out for the steps that are asked for."""

    @abstractmethod
    def within(self, first: int, last: int) -> Iterable[int]:
        """The steps from `first` to `last` that something may be saved of, the newest first: none
        between them is looked at."""


SavedThen = Callable[[int], Mapping[int, int]]
"""What other forms of messages saved after the commit of a revision: tokens by step."""


class Moment(msgspec.Struct, frozen=True, eq=False):
    """The view as it was before more of it was shown in other forms."""

    view: View
    saved: Mapping[int, int]
    """What other forms saved by then, by step."""
    grown: int = 0
    """The tokens that some of them have more than the messages themselves."""

    @property
    def tokens(self) -> int:
        """Those of the view as it was shown."""
        return self.view.view_tokens() - sum(self.saved.values())


def _no_moments() -> Iterator[Moment]:
    return iter(())


def _was_crowded(moments: Callable[[], Iterator[Moment]], room: int) -> bool:
    """True where something was evicted at one of these moments. What the view holds as it is only
    grows, and so does what forms have more."""
    large = takewhile(lambda one: one.view.view_tokens() + one.grown > room, moments())
    return any(one.tokens > room for one in large)


def _nothing(revision: int) -> Mapping[int, int]:
    return NOTHING


class Fitting(msgspec.Struct, frozen=True):
    """What is shown of a view besides what law 4 keeps."""

    ranges: Sequence[Range]
    """Steps that no summary covers: the first and the last of each range."""
    summaries: Sequence[Summary]
    rule: str = ""
    """Why the rest is not shown; empty: there is no rest."""
    over: bool = False
    """True where this is the smallest lawful list, and exceeds the room."""


def plan_of(
    view: View,
    ranges: Sequence[Range],
    summaries: Sequence[Summary] = (),
    *,
    rule: str = "",
    over: bool = False,
) -> Plan:
    """The plan that shows these ranges of steps and summaries, and what law 4 keeps besides, each
    at its own place."""
    if not rule:
        cut = 0
    else:
        cut = next((first for first, _ in ranges if first >= view.raw_from), view.steps)
    return Plan(lay_out(view, ranges, summaries), cut=cut, rule=rule, over=over)


def least(view: View, saved: Mapping[int, int] = NOTHING) -> int:
    """The tokens of what no law lets go: what law 4 keeps, and the newest step, which law 6 keeps
    unless a summary covers it."""
    stays, newest = view.must_stay(), view.steps - 1
    tokens = _kept_tokens(view, saved)
    if view.steps and newest >= view.raw_from and newest not in stays:
        tokens += view.atom(newest).tokens - saved.get(newest, 0)
    return tokens


def _kept_tokens(view: View, saved: Mapping[int, int]) -> int:
    """The tokens of what is in every assembly, but for the newest step."""
    return sum(view.atom(step).tokens - saved.get(step, 0) for step in view.must_stay())


def _fits(view: View, first: int, room: int, saved: Mapping[int, int]) -> bool:
    """True where this room holds the newest steps from `first` on."""
    newest = view.steps - 1
    if first < view.unanswered:
        return newest_within(view, room, first, saved) <= first
    stays = newest in view.must_stay()
    return (0 if stays else view.atom(newest).tokens - saved.get(newest, 0)) <= room


def newest_within(
    view: View, room: int, oldest: int = 0, saved: Mapping[int, int] = NOTHING
) -> int:
    """The first of the newest steps that take no more than this room together, no step before
    `oldest` and never less than what the next reply answers. What is in every assembly is shown
    anyway and takes none of it."""
    newest, low = view.steps - 1, max(oldest, view.base)
    last = min(newest, max(low, view.unanswered))
    free = {step: amount for step, amount in saved.items() if step >= low}
    free.update((step, view.atom(step).tokens) for step in view.must_stay() if step >= low)
    steps = sorted(free)
    behind = [*accumulate((free[step] for step in reversed(steps)), initial=0)][::-1]

    def fits(first: int) -> bool:
        return view.span(first, newest) - behind[bisect_left(steps, first)] <= room

    return min(low + bisect_left(range(low, last), True, key=fits), last)


def fitting(
    view: View,
    room: int,
    tail_steps: int = 1,
    saved: Mapping[int, int] = NOTHING,
    saved_then: SavedThen = _nothing,
    moments: Callable[[], Iterator[Moment]] = _no_moments,
) -> Fitting:
    """What is shown in this room; `tail_steps` are the newest steps that the engine declares;
    `saved_then` is what `saved` was once, after the commit of this revision; `moments` are those at
    which it became more although nothing was committed, the newest first.

    It follows from the view alone, and what it once left out at this room it leaves out until that
    is summarized, pinned or a summary is undone: a step of the declared tail alone comes back once
    it fits, since law 6 demands it.
    """
    if not view.steps:
        return Fitting((), (), over=room < 0)
    whole = not view.evictions.evicted(room) and not _was_crowded(moments, room)
    if whole and view.view_tokens() - sum(saved.values()) <= room:
        return Fitting([(first, last) for first, last, _ in view.uncovered()], view.summaries)
    needed = least(view, saved)
    if needed > room:
        newest = view.steps - 1
        return Fitting(
            [] if newest < view.raw_from else [(newest, newest)], (), "law budget", over=True
        )
    reached = _reached_before(view, room, view.evictions.evicting(room), saved_then)
    ranges, summaries, taken = settled(view, room, room - needed, reached, saved)
    begin, stays = view.raw_from, _kept_tokens(view, saved)
    if begin < view.steps:
        left = room - stays - taken
        asked = {step for step, _ in ranges}
        first = max(_cut(view, room, left, begin, saved, asked), view.cut_from(reached, begin))
        for one in moments():
            if one.view.steps - 1 <= first:
                break
            stood = _kept_tokens(one.view, one.saved)
            first = max(first, _cut(one.view, room, room - stood - taken, begin, one.saved))
        if first > (tail := max(view.tail_from(tail_steps), begin)):
            first = min(first, newest_within(view, left, tail, saved))
        scrap, cost = _scrap(view, begin, left, tail_steps)
        if scrap < first and _fits(view, first, left - cost, saved):
            ranges.append((begin, scrap - 1))
        ranges.append((first, view.steps - 1))
    return Fitting(ranges, summaries, f"cut at step {max(begin, ranges[-1][0] if ranges else 0)}")


def snapshot_of(view: View, saved: Mapping[int, int] = NOTHING) -> CommitSnapshot:
    """The view just before a summary's commit. `saved`: what other forms of messages save of it at
    the budget that the summary is made for, by step."""
    user, begin, peak = view.user_step, view.raw_from, 0
    if user >= begin or (user >= 0 and view.covering(user) is not None):
        peak = view.atom(user).tokens
    peak = max([peak, *(r.tokens - (view.total - r.end) for r in _reigns(view, begin))])
    tokens, needs = view.view_tokens() - sum(saved.values()), encoded(needs_of(view, saved))
    return CommitSnapshot(
        tokens, view.total, view.fixed_tokens(), peak, user_step=user, needs=needs
    )


def evicted_by_now(view: View, room: int, saved_then: SavedThen = _nothing) -> int:
    """The first step behind every summary that would not stay evicted in this room, were a summary
    committed now; the first of all where nothing is evicted."""
    newest = max((summary.created for summary in view.summaries), default=0)
    then = replace(snapshot_of(view, saved_then(newest)), masked=newest)
    if then.view <= room:
        return view.raw_from
    return view.cut_from(_reached_before(view, room, [then], saved_then), view.raw_from)


def _scrap(view: View, begin: int, left: int, tail_steps: int) -> tuple[int, int]:
    """Where what lies before the newest user message and behind every summary is a scrap: the step
    of that message, and the tokens of what law 4 does not keep. Else a step behind all.

    One that was evicted with the tail that it once stood in stays evicted (law 6).
    """
    user, stays = view.user_step, set(view.must_stay())
    last = min(user + tail_steps, view.steps) - 1

    def loose(behind: int) -> int:
        """The tokens of what law 4 does not keep, from `begin` to a step."""
        fixed = (view.atom(step).tokens for step in stays if begin <= step <= behind)
        return view.span(begin, behind) - sum(fixed)

    near = begin < user <= begin + SCRAP
    if near and (begin >= view.base or all(map(view.holds, range(begin, last + 1)))):
        cost = loose(user - 1)
        if cost <= SCRAP and loose(last) <= left:
            return user, cost
    return view.steps, 0


def _cut(
    view: View,
    room: int,
    left: int,
    begin: int,
    saved: Mapping[int, int],
    shown: Container[int] = (),
) -> int:
    """The first of the newest steps that fit, beside what law 4 keeps, now and at every moment
    since the newest summary's commit: a user's message that has gone from before the cut since then
    leaves its room to what is added, and to nothing that was evicted. `shown`: the steps before
    `begin` that are shown still."""
    first = newest_within(view, left, begin, saved)
    committed = max((summary.before.total for summary in view.summaries), default=0)
    for reign in _reigns(view, 0):
        if reign.step < begin and (reign.end <= committed or reign.step in shown):
            continue  # it took none of this room, or takes it still
        # A message that alone exceeds the room was shown in half of it.
        took = reign.tokens if reign.tokens <= room else room // 2
        more = took - (view.total - reign.end)
        if reign.step < first and more > 0:
            first = max(first, newest_within(view, left - more, begin, saved))
    return first


def _reigns(view: View, begin: int) -> Iterator[Reign]:
    """The users' messages from a step on that were the newest one before this one, newest first."""
    return (reign for reign in reversed(view.fold.reigns) if reign.step >= begin)


def _reached_before(
    view: View, room: int, commits: Iterable[CommitSnapshot], saved_then: SavedThen
) -> int:
    """The running sum before which raw history had been evicted when one of these summaries was
    committed; 0: there is none. The commits come in the order of `EvictionHistory.evicting`: once
    no other can have reached further, none is looked at.

    Where the same was saved of the same history, the one that reached furthest without it did so
    with it: of the many commits of one compaction, which differ in what was free for that history,
    the others are not worked out.
    """
    leading = sum(view.atom(step).tokens for step in range(view.leading))
    pinned = sum(view.atom(step).tokens for step in view.pinned if view.holds(step))
    peak = view.evictions.peak
    most, alone = settled_room(view, room), settled_room(view, room, asked=False)
    furthest: dict[tuple[int, int], tuple[int, Mapping[int, int]]] = {}
    reached, done = 0, (-1, -1)
    for then in commits:
        if (then.total, then.masked) == done:
            continue
        # None reaches further than with all that may stand beside the newest history.
        if leading <= room and then.total + peak + pinned <= reached:
            break
        free = room - leading - min(max(0, then.fixed - leading), most if then.peak else alone)
        saved = saved_then(then.masked)
        known = furthest.get(once := (then.total, id(saved)))
        least = reached if known is None else max(reached, known[0])
        if then.total - free + max(peak, then.peak) + pinned <= least:
            done = then.total, then.masked  # the rest of these had more free
            continue
        whole = _reached_in_full(view, then.total, then.peak, free)
        if whole <= least:
            continue
        furthest[once] = whole, saved
        # What nothing is saved of comes to the same.
        if saved is not NOTHING:
            whole = _reached_in_short(view, whole, then.total - whole, saved)
        reached = max(reached, whole)
    return reached


def _reached_in_full(view: View, total: int, peak: int, free: int) -> int:
    """The same for one commit, had each message been shown as it is: `total`, `peak` as in its
    snapshot, `free` what was left for the newest history and the newest user's message."""
    free -= _beside(view, total, peak, free)
    pinned = [view.atom(step) for step in view.pinned if view.holds(step)]
    reached, known = total - free, -1
    # What is pinned before the cut takes room, which may move the cut on: it only rises.
    while reached != known:
        known = reached
        reached = total - free + sum(a.tokens for a in pinned if a.start < reached)
    return reached


def _beside(view: View, total: int, peak: int, free: int) -> int:
    """What a user's message took of what was free for the newest history, where the cut lay behind
    it: nothing where that held all that had come since the message, and the message itself."""
    if peak > free:
        return free // 2  # what exceeds it is shown in half of it
    at = bisect_left(view.users, total, key=lambda step: view.atom(step).start) - 1
    asked = view.atom(view.users[at]) if at >= 0 else None
    if asked is not None and asked.tokens == peak and total - asked.start <= free:
        return 0
    return peak


def _reached_in_short(view: View, reached: int, room: int, saved: Mapping[int, int]) -> int:
    """The same where other forms saved this much, by step: with what they saved behind it, the room
    reached further back. No steps are looked at but those that something is saved of: running sums
    tell of the rest."""
    first = max(view.raw_from, view.base)
    last = view.cut_from(reached + room, first) - 1
    if last < first:
        return reached
    furthest = min(view.atom(last).end, reached + room) - room
    for step in _within(saved, first, last):
        start, more = view.atom(step).start, saved.get(step, 0)
        if start < furthest - more:
            break
        furthest -= more
    oldest = view.cut_from(furthest, first)
    return min(reached, view.atom(oldest).start) if oldest <= last else reached


def _within(saved: Mapping[int, int], first: int, last: int) -> Iterable[int]:
    """The steps of a range that something may be saved of, the newest first."""
    if isinstance(saved, Saved):
        return saved.within(first, last)
    return sorted((step for step in saved if first <= step <= last), reverse=True)
