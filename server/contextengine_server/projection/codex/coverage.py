"""Which messages of a session the bound native thread holds."""

from __future__ import annotations

from collections.abc import Sequence

from ..model import Item
from ..task import Task
from ..thread import Binding
from .decision import ThreadDecision
from .truncation import Fitted


def sequences(items: Sequence[Item]) -> tuple[int, int]:
    """The first and last sequence among the items."""
    sequences = [item.sequence for item in items if item.sequence]
    return (min(sequences), max(sequences)) if sequences else (0, 0)


def held_before(task: Task, items: Sequence[Item]) -> tuple[int, int]:
    """The first and last sequence that the bound thread holds, with this turn's own."""
    known = task.binding or Binding()
    newest = max(known.last_sequence, sequences(items)[1], task.prompt_sequence)
    return known.first_sequence, newest


def held_after(
    task: Task, items: Sequence[Item], decision: ThreadDecision, fitted: Fitted
) -> tuple[int, int]:
    """The first and last sequence that the thread holds from now on: from the first entry shown
    to the newest."""
    if not decision.project:
        return held_before(task, items)
    first, last = sequences(items)
    return max(first, min(fitted.first or first, last)), max(last, task.prompt_sequence)


def unseen(task: Task, items: Sequence[Item]) -> list[Item]:
    """What reached the session outside the bound thread: behind its last sequence, and not labelled
    as the thread's own."""
    known = task.binding or Binding()
    return [
        item
        for item in items
        if item.sequence > known.last_sequence
        and item.labels.get("codex.thread") != known.thread_id
    ]


def has_gap(task: Task, items: Sequence[Item]) -> bool:
    """True where messages that the thread has not seen are gone from the context, or it saw some
    that are."""
    known = task.binding
    if known is None or not known.last_sequence:
        return False
    newest = max([task.prompt_sequence, *(item.sequence for item in items)])
    firsts = [item.sequence or (item.summary.first if item.summary else 0) for item in items]
    later = [first for first in firsts if first > known.last_sequence]
    evicted = bool(later) and len(later) == len([first for first in firsts if first])
    return 0 < newest < known.last_sequence or (evicted and min(later) > known.last_sequence + 1)
