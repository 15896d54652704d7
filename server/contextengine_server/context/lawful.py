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

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from .eviction import CommitSnapshot
from .layout import Range, lay_out
from .plan import Plan
from .view import Summary, View

USER_SHARE = 8
"""At most this part of the room is kept free for the largest user message, beside summaries."""
STEP_SHARE = 0.8
"""At most this part of what is left then is kept free for the largest step."""
SCRAP = 200
"""Tokens of steps before the newest user message that are not worth a summary of their own: no
eviction takes them, so that nothing stays evicted for ever."""

NOTHING: Mapping[int, int] = {}


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


def kept_before(view: View, cut: int) -> int:
    """The tokens of what law 4 keeps although it lies before the cut."""
    return sum(view.atom(step).tokens for step in view.must_stay() if step < cut)


def least(view: View, saved: Mapping[int, int] = NOTHING) -> int:
    """The tokens of what no law lets go: what law 4 keeps, and the newest step, which law 6 keeps
    unless a summary covers it."""
    stays, newest = view.must_stay(), view.steps - 1
    tokens = sum(view.atom(step).tokens for step in stays)
    if view.steps and newest >= view.raw_from and newest not in stays:
        tokens += view.atom(newest).tokens - saved.get(newest, 0)
    return tokens


def newest_within(
    view: View, room: int, oldest: int = 0, saved: Mapping[int, int] = NOTHING
) -> int:
    """The first of the newest steps that take no more than this room together, no step before
    `oldest` and never less than the newest. What law 4 keeps is shown anyway and takes none of
    it."""
    stays = set(view.must_stay())

    def cost(step: int) -> int:
        return 0 if step in stays else view.atom(step).tokens - saved.get(step, 0)

    first = view.steps - 1
    left = room - cost(first)
    while first > max(oldest, view.base) and (left := left - cost(first - 1)) >= 0:
        first -= 1
    return first


def settled_room(view: View, room: int) -> int:
    """How much of the room what stands before the newest raw history may take: all but what law 4
    keeps, and what is kept free for the largest user message and the largest step."""
    rest = _beside_leading(view, room)
    rest -= min(view.user_peak, rest // USER_SHARE)
    return max(0, rest - min(view.step_peak, int(rest * STEP_SHARE)))


def _room_before_peak(view: View, room: int) -> int:
    """The same for what was there before the largest step: that step may have left it less."""
    return max(0, _beside_leading(view, room) - view.user_peak - view.step_peak)


def _beside_leading(view: View, room: int) -> int:
    stays = (*range(view.leading), *view.pinned)
    return max(0, room - sum(view.atom(step).tokens for step in stays if view.holds(step)))


def fitting(
    view: View, room: int, tail_steps: int = 1, saved: Mapping[int, int] = NOTHING
) -> Fitting:
    """What is shown in this room; `tail_steps` are the newest steps that the engine declares.

    It follows from the view alone, and what it once left out at this room it leaves out until that
    is summarized, pinned or a summary is undone: a step of the declared tail alone comes back once
    it fits, since law 6 demands it.
    """
    if not view.steps:
        return Fitting((), (), over=room < 0)
    commits = list(view.evictions.evicting(room))
    if not commits and view.view_tokens() - sum(saved.values()) <= room:
        return Fitting([(first, last) for first, last, _ in view.uncovered()], view.summaries)
    needed = least(view, saved)
    if needed > room:
        newest = view.steps - 1
        return Fitting(
            [] if newest < view.raw_from else [(newest, newest)], (), "law budget", over=True
        )
    reached = max((_reached_before(view, room, before) for before in commits), default=0)
    ranges, summaries, taken = _settled(view, room, room - needed, reached, saved)
    begin, stays = view.raw_from, sum(view.atom(step).tokens for step in view.must_stay())
    if begin < view.steps:
        left = room - stays - taken
        first = max(_cut(view, left, begin, saved), view.cut_from(reached, begin))
        if first > (tail := max(view.tail_from(tail_steps), begin)):
            first = min(first, newest_within(view, left, tail, saved))
        scrap, cost = _scrap(view, begin, left, tail_steps)
        if scrap < first and newest_within(view, left - cost, begin, saved) <= first:
            ranges.append((begin, scrap - 1))
        ranges.append((first, view.steps - 1))
    return Fitting(ranges, summaries, f"cut at step {max(begin, ranges[-1][0] if ranges else 0)}")


def snapshot_of(view: View, saved: int = 0) -> CommitSnapshot:
    """The view just before a summary's commit. `saved`: what other forms of messages save of it at
    the budget that the summary is made for."""
    user, begin, peak = view.user_step, view.raw_from, 0
    if user >= begin or (user >= 0 and view.covering(user) is not None):
        peak = view.atom(user).tokens
    peak = max([peak, *(more for _, more in _reigns(view, begin))])
    return CommitSnapshot(view.view_tokens() - saved, view.total - saved, view.fixed_tokens(), peak)


def _settled(
    view: View, room: int, free: int, reached: int, saved: Mapping[int, int]
) -> tuple[list[Range], list[Summary], int]:
    """What is shown of all that stands before the newest raw history: the newest of it that fits
    the room for it, with its tokens. `free` is what the least list leaves; `reached` the running
    sum before which history had been evicted.

    The newest summary is shown in any room that holds it: without one, nothing says what came
    before.
    """
    left = min(settled_room(view, room), free)
    before_peak = min(left, _room_before_peak(view, room))
    steps, taken = _scraps_within(view, left // 2, saved)
    scraps, stays = _scraps(view), set(view.must_stay())
    summaries: list[Summary] = []
    for piece in _settled_pieces(view):
        if isinstance(piece, Summary):
            most = before_peak
            if piece.before.total >= view.fold.peak_end:
                most = left if summaries else free
            if taken + piece.tokens > most:
                break
            summaries.append(piece)
            taken += piece.tokens
        elif piece not in stays and piece not in scraps:
            if not view.holds(piece):
                break
            atom = view.atom(piece)
            cost = atom.tokens - saved.get(piece, 0)
            if atom.start < reached:
                continue
            if taken + cost > left:
                break
            steps.append(piece)
            taken += cost
    return [(step, step) for step in sorted(steps)], summaries[::-1], taken


def _scraps_within(view: View, left: int, saved: Mapping[int, int]) -> tuple[list[int], int]:
    """The newest of the scraps that fit, and their tokens."""
    steps: list[int] = []
    taken, stays = 0, set(view.must_stay())
    for step in sorted(_scraps(view) - stays, reverse=True):
        cost = view.atom(step).tokens - saved.get(step, 0)
        if taken + cost > left:
            break
        steps.append(step)
        taken += cost
    return steps, taken


def _scraps(view: View) -> set[int]:
    """The steps between summaries that were never evicted for what came behind them: users'
    messages, which were the newest when an engine summarized what was done for them, and scraps
    beside them."""
    found: set[int] = set()
    engines = {summary.first_step for summary in view.summaries if summary.origin == "engine"}
    for first, last, _ in view.uncovered():
        if last + 1 not in engines or not view.holds(first) or _was_evicted(view, last + 1):
            continue
        steps = range(first, last + 1)
        users = {step for step in steps if view.atom(step).user}
        if sum(view.atom(step).tokens for step in steps if step not in users) <= SCRAP:
            found.update(steps)
    return found


def _was_evicted(view: View, step: int) -> bool:
    """True where what lies before this step, with which a summary begins, could have been evicted
    before that was committed: another user's message had come by then."""
    first = view.atom(step).first
    since = min((made for lo, _, made, _ in view.leaves if lo == first), default=0)
    return any(
        atom.user and atom.entries[0].created < since for atom in view.atoms[step - view.base :]
    )


def _scrap(view: View, begin: int, left: int, tail_steps: int) -> tuple[int, int]:
    """Where what lies before the newest user message and behind every summary is a scrap: the step
    of that message, and the tokens of what law 4 does not keep. Else a step behind all.

    One that was evicted with the tail that it once stood in stays evicted (law 6).
    """
    user, stays = view.user_step, set(view.must_stay())
    if begin < user <= begin + SCRAP and begin >= view.base:
        cost = sum(view.atom(step).tokens for step in range(begin, user) if step not in stays)
        if cost <= SCRAP and view.span(begin, min(user + tail_steps, view.steps) - 1) <= left:
            return user, cost
    return view.steps, 0


def _settled_pieces(view: View) -> Iterator[Summary | int]:
    """Summaries, and the steps uncovered between them, the newest first."""
    gaps = [(first, last) for first, last, _ in view.uncovered() if last < view.raw_from]
    for summary in reversed(view.summaries):
        while gaps and gaps[-1][0] > summary.last_step:
            first, last = gaps.pop()
            yield from range(last, first - 1, -1)
        yield summary
    for first, last in reversed(gaps):
        yield from range(last, first - 1, -1)


def _cut(view: View, left: int, begin: int, saved: Mapping[int, int]) -> int:
    """The first of the newest steps that fit, beside what law 4 keeps, now and at every moment
    since the newest summary's commit: a user's message that has gone from before the cut since then
    leaves its room to what is added, and to nothing that was evicted."""
    first = newest_within(view, left, begin, saved)
    for step, more in _reigns(view, begin):
        if step < first and more > 0:
            # A message that alone exceeds the room is shown in half of it.
            more = more if more <= left else left // 2
            first = max(first, newest_within(view, left - more, begin, saved))
    return first


def _reigns(view: View, begin: int) -> Iterator[tuple[int, int]]:
    """The users' messages that were the newest one before this one, newest first: step, and the
    tokens that its place and what was there by then took beyond what is there now."""
    following: int | None = None
    for step in range(view.steps - 1, max(view.base, begin) - 1, -1):
        atom = view.atom(step)
        if atom.user:
            if following is not None:
                yield step, atom.tokens - (view.total - following)
            following = atom.start
        if following is not None and view.total - following >= view.user_peak:
            return


def _reached_before(view: View, room: int, then: CommitSnapshot) -> int:
    """The running sum before which raw history had been evicted when a summary was committed."""
    leading = sum(view.atom(step).tokens for step in range(view.leading))
    settled = min(max(0, then.fixed - leading), settled_room(view, room))
    free = room - leading - settled
    free -= then.peak if then.peak <= free else free // 2  # what exceeds it is shown in half of it
    pinned = [view.atom(step) for step in view.pinned if view.holds(step)]
    reached, known = then.total - free, -1
    # What is pinned before the cut takes room, which may move the cut on: it only rises.
    while reached != known:
        known = reached
        reached = then.total - free + sum(a.tokens for a in pinned if a.start < reached)
    return reached
