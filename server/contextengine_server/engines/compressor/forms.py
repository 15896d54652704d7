"""Messages that the compressor shows in short: those over their cap, results that a later one says
anew, and in the mode `lean` old results and, where asked for, long answers.

Results move with compactions: what was said anew, or old, when a summary was committed is shown in
short from then on. So the list begins anew no more often than it does anyway, nothing is lifted,
and a restart changes nothing. With `proactive_prune_tokens` large ones move at ticks as well
(`compressor.pruned_results`). No model has a part in it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from sys import maxsize

from contextengine_server.context.budget import cell
from contextengine_server.context.lawful import Moment
from contextengine_server.context.message import Gone, Replacement
from contextengine_server.context.observations import Observation
from contextengine_server.context.view import View

from ..bounds import Bounds, bounds_of, with_masks
from ..masks import LEAST_SAVED, Masks, steps_before
from ..ticks import view_before
from .long_answers import long_answers
from .options import CompressorOptions
from .pruned_results import Parts, newest_tick, pruned_results

TAIL_STEPS = 1
"""The newest step is as it is: the model has not answered its results yet."""
ROUNDS = 6
"""So many of the newest rounds of tool calls keep their results whole in the mode `lean`."""
OLD_TOKENS = 375
"""What is smaller stays whole however old it is: 1,500 characters, at 4 to a token."""
REASON = "an old result, or one that a later result says anew"
SHORT = f"{REASON}, or a long answer"


def forms_now(view: View, budget: int, options: CompressorOptions) -> Bounds:
    """The forms of a view's messages, since the newest summary was committed."""
    count = newest_tick(view, len(view.observations.all), options)
    return forms_at(view, budget, newest_commit(view), options, count)


def newest_commit(view: View) -> int:
    """The revision of the newest summary's commit; 0: there was none."""
    return max((summary.created for summary in view.summaries), default=0)


def moments(view: View, budget: int, options: CompressorOptions) -> Iterator[Moment]:
    """The view just before each tick since the newest commit: what was short then was less."""
    revision, at = newest_commit(view), newest_tick(view, len(view.observations.all), options)
    while at:
        there = at - 1
        at, before = newest_tick(view, there, options), view_before(view, there)
        yield Moment(before, forms_at(before, budget, revision, options, at).saved)


def forms_at(
    view: View, budget: int, revision: int, options: CompressorOptions, count: int = 0
) -> Bounds:
    """The same since the commit of a revision, 0: there was none; and since a tick by which the
    first `count` results in memory had come."""
    bounds = bounds_of(view, cell(budget))
    masks = short_results(view, revision, options, count)
    answers = long_answers(view, cell(budget), revision, TAIL_STEPS, options)
    for step, slots in answers.items():
        masks[step] = slots | masks.get(step, {})
    return with_masks(bounds, view, masks, REASON if not answers else SHORT) if masks else bounds


def coming_forms(view: View, budget: int, options: CompressorOptions) -> Bounds:
    """The forms that a commit would leave now."""
    return forms_at(view, budget, maxsize, options)


def short_results(view: View, revision: int, options: CompressorOptions, count: int = 0) -> Masks:
    """What to show of results behind the summaries since the commit of a revision, and since a tick
    by which so many had come: slots by sequence, by step."""
    first, masks = max(view.raw_from, view.base), Masks()
    until = steps_before(view, revision)
    last = until - TAIL_STEPS
    if (last <= first and not count) or not view.observations.all:
        return masks
    found = _parts(view, revision, first, last, options) if last > first else Parts()
    pruned = pruned_results(view, first, until, count, options)
    stays = set(view.must_stay())
    shows = {one.sequence: one for one in view.observations.between(first, view.steps)}
    for sequence in {**found, **pruned}:
        parts = pruned.get(sequence, {}) | found.get(sequence, {})
        one = shows.get(sequence)
        if one is None or one.step in stays:
            continue
        slot = view.atom(one.step).slot_of(sequence)
        how = tuple(parts[part] for part in sorted(parts))
        shown = view.observations.shown(sequence, one.show, how)
        if slot is not None and slot.tokens - shown.tokens > LEAST_SAVED:
            masks.setdefault(one.step, {})[sequence] = shown
    return masks


def shrinkable(view: View) -> int:
    """The tokens behind the summaries that forms may save at most: of messages with results, some
    perhaps more than once, and of steps with long messages."""
    first = max(view.raw_from, view.base)
    large = view.large[bisect_left(view.large, first) :]
    results = sum(_size(view, one) for one in view.observations.between(first, view.steps))
    return results + sum(view.atom(step).tokens for step in large)


def _parts(view: View, revision: int, first: int, last: int, options: CompressorOptions) -> Parts:
    """What is left out of the steps from `first` to before `last`."""
    parts = _old(view, revision, first, last) if options.tail_mode == "lean" else Parts()
    for sequence, same in _repeated(view, revision, first, last).items():
        parts[sequence] = parts.get(sequence, {}) | same
    reads = view.observations
    begins = (view.first_of(first) or 0) if view.by_sequence else 0
    for sequence in reads.sequences[bisect_left(reads.sequences, begins) :]:
        stale = reads.stale[sequence]
        if first <= stale.step < last:
            for how in stale.at(revision):
                parts.setdefault(sequence, {})[how.part] = how
    return parts


def _old(view: View, revision: int, first: int, last: int) -> Parts:
    """Large results of all but the newest rounds that there were."""
    parts, rounds = Parts(), set[int]()
    reads = view.observations
    for one in reversed(reads.all[: reads.before_revision(revision)]):
        if one.step < first:
            break
        rounds.add(one.step)
        if len(rounds) > ROUNDS and one.step < last and _size(view, one) >= OLD_TOKENS:
            how = Replacement(one.part, Gone.MASKED, tool=one.tool)
            parts.setdefault(one.sequence, {})[one.part] = how
    return parts


def _repeated(view: View, revision: int, first: int, last: int) -> Parts:
    """Results with the text of a later one that there was, whatever tools said them: the newest
    tells them all."""
    parts, newest = Parts(), dict[bytes, Observation]()
    reads = view.observations
    for one in reversed(reads.all[: reads.before_revision(revision)]):
        if one.step < first:
            break
        later = newest.setdefault(one.text, one) if one.text else one
        if later is not one and one.step < last:
            parts.setdefault(one.sequence, {})[one.part] = Replacement(one.part, by=later.sequence)
    return parts


def _size(view: View, one: Observation) -> int:
    """The tokens of the message that carries a result."""
    if one.tokens:
        return one.tokens
    slot = view.atom(one.step).slot_of(one.sequence)
    return 0 if slot is None else slot.tokens
