"""Long messages of the assistant that are shown head and tail before the budget's cap would have it
(Hermes's `tail_assistant_max_chars`). They move with compactions, as old results do."""

from __future__ import annotations

from bisect import bisect_left

from contextengine_server.context.message import MIN_CAP_CHARS, Role
from contextengine_server.context.view import View

from ..bounds import cap_chars
from ..masks import LEAST_SAVED, Masks, steps_before
from .options import CompressorOptions


def long_answers(
    view: View, cell: int, revision: int, tail_steps: int, options: CompressorOptions
) -> Masks:
    """What to show of messages over their cap behind the summaries, since the commit of a revision;
    the newest steps of that moment stay as they are."""
    cap, shown = max(MIN_CAP_CHARS, options.tail_assistant_max_chars), Masks()
    asked = options.tail_assistant_max_chars and options.tail_mode == "lean"
    if not asked or not revision or not view.large or cap >= cap_chars(cell):
        return shown
    before, stays = steps_before(view, revision) - tail_steps, set(view.must_stay())
    for step in view.large[bisect_left(view.large, max(view.raw_from, view.base)) :]:
        if step >= before:
            break
        atom = view.atom(step)
        if step in stays or atom.pending:
            continue
        roles = {entry.sequence: entry.traits.role for entry in atom.entries}
        for slot in atom.slots:
            if slot.bounded is None or roles.get(slot.sequence) != Role.ASSISTANT:
                continue
            short = slot.bounded(cap)
            if short is not None and slot.tokens - short.tokens > LEAST_SAVED:
                shown.setdefault(step, {})[slot.sequence] = short
    return shown
