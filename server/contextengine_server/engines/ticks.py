"""When what is shown of results moves: each time results have grown by so many tokens, and not
between.

A tick follows from the sum of all results there were, which the fold carries; so it is found by one
look-up, and a restart changes nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import replace

from msgspec import structs

from contextengine_server.context.view import View


def results_at(view: View, count: int, every: int) -> int:
    """Of the first `count` results in memory those that had come by the newest tick of then; there
    is one each time results have grown by `every` tokens."""
    sums = view.observations.sums
    if not count:
        return 0
    before = _before(view)
    at = (before + sums[count - 1]) // every * every - before
    return bisect_left(sums, at, 0, count) + 1 if at > 0 else 0


def earlier(view: View, at: int, every: int) -> Iterator[tuple[int, int]]:
    """The moments just before each tick in memory, the newest first: how many results there were,
    and how many of them by the tick before. `at`: those by the newest tick."""
    while at:
        there = at - 1
        at = results_at(view, there, every)
        yield there, at


def _before(view: View) -> int:
    """The tokens of the results before those in memory."""
    sums = view.observations.sums
    return view.fold.observed - (sums[-1] if sums else 0)


def view_before(view: View, count: int) -> View:
    """The view just before a result came."""
    coming = view.observations.all[count]
    last = view.atom(coming.step).clone()
    last.slots = [slot for slot in last.slots if 0 < slot.sequence < coming.sequence]
    last.tokens = sum(slot.tokens for slot in last.slots)
    users = view.users[: bisect_right(view.users, coming.step)]
    return replace(
        view,
        atoms=[*view.atoms[: coming.step - view.base], last],
        total=last.end,
        pinned=[step for step in view.pinned if step <= coming.step],
        large=[step for step in view.large if step < coming.step],
        answers=[step for step in view.answers if step <= coming.step],
        fold=structs.replace(
            view.fold,
            user_step=users[-1] if users and view.holds(users[-1]) else -1,
            reigns=tuple(reign for reign in view.fold.reigns if reign.end <= last.end),
        ),
    )
