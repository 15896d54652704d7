"""What is shown of all that stands before the newest raw history: summaries, and what lies
uncovered between them.

Each part of it is shown where it has always had room. How much it has needed so far follows from
what has stood behind it, and from the newest steps and users' messages that there were: since the
newest commit these are known one by one (`Peak`), and what was needed by then is stored with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import msgspec

from .carried import Peak, most_of
from .eviction import Needs, decoded
from .layout import Range
from .view import Summary, View

USER_SHARE = 8
"""At most this part of the room is kept free for the largest user message, beside summaries."""
STEP_SHARE = 0.8
"""At most this part of what is left then is kept free for the largest step."""
MOST_NEEDS = 256
"""Of so many parts it is known what they have needed: no list shows more of them."""
SCRAP = 200
"""Tokens of steps before the newest user message that are not worth a summary of their own: no
eviction takes them, so that nothing stays evicted for ever."""


def settled_room(view: View, room: int, *, asked: bool = True) -> int:
    """How much of the room what stands before the newest raw history may take: all but what law 4
    keeps, and what is kept free for the largest user message and the largest step. `asked`: the
    newest user message stands behind it."""
    rest = _beside_leading(view, room)
    rest -= min(view.user_peak, rest // USER_SHARE) if asked else 0
    return max(0, rest - min(view.fold.step_peak, int(rest * STEP_SHARE)))


def _beside_leading(view: View, room: int) -> int:
    stays = (*range(view.leading), *view.pinned)
    return max(0, room - sum(view.atom(step).tokens for step in stays if view.holds(step)))


def settled(
    view: View, room: int, free: int, reached: int, saved: Mapping[int, int]
) -> tuple[list[Range], list[Summary], int]:
    """What is shown of all that stands before the newest raw history: the newest of it that fits
    the room for it, with its tokens. `free` is what the least list leaves; `reached` the running
    sum before which history had been evicted.

    Each is shown where it has had room beside the newest step and the newest user message ever
    since it stands there: so neither a smaller step nor what is made anew in fewer tokens brings
    anything back. Summaries come first: without one, nothing says what was before.
    """
    most = _beside_leading(view, room)
    summaries, steps, taken = list[Summary](), list[int](), 0
    for summary, need in _told(view, saved):
        if need <= most and taken + summary.tokens <= free:
            summaries.append(summary)
            taken += summary.tokens
    for step, need, cost in _between(view, reached, saved):
        if need <= most and taken + cost <= free:
            steps.append(step)
            taken += cost
    return [(step, step) for step in sorted(steps)], summaries[::-1], taken


def needs_of(view: View, saved: Mapping[int, int]) -> Needs:
    """What each part has needed by now; of the newest summaries and of the newest ranges."""
    told = ((summary.first_step, need) for summary, need in _told(view, saved))
    between = ((gap.last, gap.need) for gap in _gaps(view, saved))
    return dict([*islice(told, MOST_NEEDS), *islice(between, MOST_NEEDS)])


def _told(view: View, saved: Mapping[int, int]) -> Iterator[tuple[Summary, int]]:
    """The summaries, the newest first, each with the least room that would always have held it."""
    known, tokens = _known(view), 0
    demand = most_of(_lately(view), (), _capped(view, saved))
    for summary in reversed(view.summaries):
        tokens += summary.tokens
        before = known.get(summary.first_step, 0) if _stood(view, summary) else 0
        yield summary, max(before, tokens + demand)


def _behind_leading(view: View, first: int, tokens: int) -> tuple[int, int]:
    """A range of steps without those that lead: its first step and its tokens."""
    leads = range(first, view.leading)
    return max(first, view.leading), tokens - sum(view.atom(at).tokens for at in leads)


class Gap(msgspec.Struct, frozen=True):
    """A range of steps that no summary covers, before one that does."""

    first: int
    last: int
    need: int
    """The least room that would always have held all summaries and what stands behind it."""


def _gaps(view: View, saved: Mapping[int, int]) -> Iterator[Gap]:
    """The ranges of steps between summaries, the newest first.

    What is too little for a summary of its own is judged anew with the summary that follows it:
    left out once, it would be for good.
    """
    known, following = _known(view), len(view.summaries)
    behind = sum(summary.tokens for summary in view.summaries)
    kept, capped = set(view.pinned), _capped(view, saved)
    for first, last, tokens in reversed(view.uncovered()):
        if last >= view.raw_from or last < view.leading:
            continue
        first, tokens = _behind_leading(view, first, tokens)
        while following and view.summaries[following - 1].first_step > last:
            following -= 1
        fixed = (view.atom(at).tokens for at in kept if first <= at <= last and view.holds(at))
        tokens -= sum(fixed)
        stood = tokens > SCRAP or _stood(view, view.summaries[following])
        # While its own message was the newest of a user's, no room was needed to keep it.
        lately = (peak for peak in _lately(view) if not first <= peak.user_step <= last)
        need = behind + most_of(lately, range(last, view.raw_from), capped)
        yield Gap(first, last, max(need, known.get(last, 0)) if stood else need)
        behind += tokens


def _between(view: View, reached: int, saved: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
    """The steps between summaries that were not evicted while they were the newest history, the
    newest first: with the room that each needs, and its tokens as it is shown."""
    scraps, stays = _scraps(view), set(view.must_stay())
    behind = view.summaries[-1].span_end if view.summaries else 0
    for gap in _gaps(view, saved):
        need = gap.need
        for step in range(gap.last, max(gap.first, view.leading) - 1, -1):
            if not view.holds(step):
                if behind > reached:
                    return  # more than the room holds is in memory
                continue
            atom = view.atom(step)
            behind = atom.start
            if step not in view.pinned:
                need += atom.tokens
            if step not in stays and (step in scraps or atom.start >= reached):
                yield step, need, atom.tokens - saved.get(step, 0)


def _known(view: View) -> Needs:
    """What each part had needed by the newest commit."""
    return decoded(view.evictions.newest.needs)


def _stood(view: View, summary: Summary) -> bool:
    """True where the summary was there before the newest commit."""
    return summary.created < view.evictions.created


def _capped(view: View, saved: Mapping[int, int]) -> Mapping[int, int]:
    """What other forms saved of steps while they were the newest: those of messages over a cap. A
    mask comes later."""
    return {step: saved[step] for step in view.large if step in saved}


def _lately(view: View) -> Iterator[Peak]:
    """What was taken of every room since the newest commit."""
    since = view.evictions.newest.total
    covered = view.summaries[-1].span_end if view.summaries else 0
    return (peak for peak in view.fold.peaks if peak.end >= since and peak.end > covered)


def _scraps(view: View) -> set[int]:
    """The steps between summaries that were never evicted for what came behind them: a user's
    message, which was the newest when an engine summarized what was done for it, and scraps beside
    it."""
    found: set[int] = set()
    asked = {s.first_step for s in view.summaries if s.origin == "engine" and s.asked_before}
    for first, last, _ in view.uncovered():
        steps = range(first, last + 1)
        if last + 1 not in asked or not all(map(view.holds, steps)):
            continue
        newest = max((step for step in steps if view.atom(step).user), default=-1)
        if sum(view.atom(step).tokens for step in steps if step != newest) <= SCRAP:
            found.update(steps)
    return found
