"""Where a compaction ends: which of the newest steps stay as they are.

After Hermes's compressor: a budget of tokens from the newest message back, whole
turns, the newest words of the user and the newest answer. Each of these only ever reaches further
back in a larger budget.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from contextengine_server.context.atom import Atom
from contextengine_server.context.lawful import newest_within
from contextengine_server.context.message import Role
from contextengine_server.context.view import View

from .options import CompressorOptions
from .sizes import SOFT, tail_budget

LEAST_ROWS, MOST_ROWS = 3, 8
"""What `protect_last_n` says holds within these."""
ROWS_SHARE = 0.25
"""The newest messages that stay for their number take no more than this share of the budget."""
ANCHOR_SHARE = 0.4
"""What stays for a turn's sake takes no more than this share of the budget, the tail included."""
HEAD_SHARE = 0.1
"""First messages that take more than this share of the budget are treated like the rest."""
LOOK_BACK = 256
"""The newest answer is sought in so many steps."""


def head(view: View, available: int, options: CompressorOptions) -> int:
    """The step behind the first messages, which stay as they are until the first compaction."""
    if view.summaries or not options.protect_first_n or view.base > view.leading:
        return view.leading
    step, rows, tokens = view.leading, 0, 0
    while step < view.steps and rows < options.protect_first_n:
        atom = view.atom(step)
        step, rows, tokens = step + 1, rows + len(atom.entries), tokens + atom.tokens
    return step if tokens <= HEAD_SHARE * available else view.leading


def tails(view: View, available: int, options: CompressorOptions) -> Iterator[int]:
    """The first of the newest steps that stay, the longest tail first: with what stays for a turn's
    sake; by its budget alone; only what the next reply answers, which always stays."""
    begin, waiting = view.raw_from, view.unanswered
    budget = tail_budget(available, options)
    soft = newest_within(view, int(budget * SOFT), begin)
    rows = _rows(view, available, begin, options)
    yield min(_anchored(view, available, min(soft, rows), options), waiting)
    yield min(newest_within(view, budget, begin), waiting)
    yield waiting


def _rows(view: View, available: int, begin: int, options: CompressorOptions) -> int:
    """The first of the newest steps that stay for the number of their messages."""
    wanted = max(LEAST_ROWS, min(options.protect_last_n, MOST_ROWS))
    oldest = newest_within(view, int(available * ROWS_SHARE), begin)
    step = view.steps - 1
    rows = len(view.atom(step).entries)
    while step > oldest and rows < wanted:
        step -= 1
        rows += len(view.atom(step).entries)
    return step


def _anchored(view: View, available: int, cut: int, options: CompressorOptions) -> int:
    """The cut further back, for the sake of what it would part: a turn, the newest words of the
    user, the newest answer; each as far as there is room. A turn that is over goes as a whole where
    there is none."""
    oldest = newest_within(view, int(available * ANCHOR_SHARE), view.raw_from)
    anchors = [cut, _whole_turn(view, cut, oldest)]
    users = view.users[-options.min_tail_user_messages :]
    anchors += [step for step in (*users[:1], _answer(view)) if step >= oldest]
    return min(anchors[1:])


def _whole_turn(view: View, cut: int, oldest: int) -> int:
    """The beginning of the turn that a cut parts; where that is too far back, that of the next one;
    where there is none, the cut."""
    at = bisect_right(view.users, cut)
    if at and view.users[at - 1] >= oldest:
        return min(view.users[at - 1], cut)
    following = view.users[bisect_left(view.users, cut) :][:1]
    return following[0] if following else cut


def _answer(view: View) -> int:
    """The newest message in which the assistant calls no tools; -1: there is none near."""
    oldest = max(view.raw_from, view.base, view.steps - LOOK_BACK)
    for step in range(view.steps - 1, oldest - 1, -1):
        if _answers(view.atom(step)):
            return step
    return -1


def _answers(atom: Atom) -> bool:
    return not atom.calls and any(
        entry.traits.role == Role.ASSISTANT and not entry.traits.only_reasoning
        for entry in atom.entries
    )
