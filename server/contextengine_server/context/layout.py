"""Laying out what is shown: ranges of steps, summaries, and what law 4 keeps, each at its own
place; and which of the live summaries these are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter, itemgetter

from msgspec.structs import replace

from .message import Slot
from .plan import Beside, Keep, Listed, Reshaped, Segment, Summarized
from .view import Summary, View

Range = tuple[int, int]
_place = itemgetter(0)
_FIRST_STEP = attrgetter("first_step")


def lay_out(
    view: View, ranges: Iterable[Range], summaries: Sequence[Summary], reason: str = ""
) -> tuple[Segment, ...]:
    """Segments in order: the ranges, merged with the steps that must stay, and the summaries where
    what they cover begins."""
    placed: list[tuple[int, Segment]] = [(s.first_step, Summarized(s)) for s in summaries]
    stays = view.must_stay()
    covered = [step for step in stays if view.covering(step) is not None]
    # Each for itself: a form of one that is covered moves no running sums.
    placed += [(step, Keep(step, step, reason)) for step in covered]
    merged = _merge([*ranges, *((step, step) for step in stays if step not in covered)])
    for first, last in merged:
        for piece_first, piece_last in _split(first, last, summaries):
            placed.append((piece_first, Keep(piece_first, piece_last, reason)))
    placed.sort(key=_place)  # stable: a summary stands before its own steps that must stay
    return tuple(segment for _, segment in placed)


def uncovered(view: View, behind: int = 0) -> list[Range]:
    """The ranges of steps that no summary covers, in order; `behind`: from this running sum on."""
    return [(first, last) for first, last, _ in view.uncovered(behind)]


def everything(view: View) -> tuple[Segment, ...]:
    """The whole view: summaries in place of what they cover."""
    if not view.summaries:
        return (Keep(0, view.steps - 1),) if view.steps else ()
    return lay_out(view, uncovered(view), view.summaries)


def beside(
    segments: Sequence[Segment], behind: Sequence[Slot], ending: Slot | None, step: int
) -> tuple[Listed, ...]:
    """The segments with items of ours between them: some behind the last summary, and one where a
    step begins, if what stands there is shown."""
    listed: list[Listed] = []
    last = max((at for at, one in enumerate(segments) if isinstance(one, Summarized)), default=-1)
    for at, segment in enumerate(segments):
        if isinstance(segment, Summarized):
            listed.append(segment)
            if at == last:
                listed += [Beside(slot, segment.summary.last_step) for slot in behind]
        elif ending is None or not segment.first <= step <= segment.last + 1:
            listed.append(segment)
        else:
            if segment.first < step:
                listed.append(replace(segment, last=step - 1))
            listed.append(Beside(ending, step))
            if step <= segment.last:
                listed.append(replace(segment, first=step))
            ending = None
    return tuple(listed)


def stands(segments: Sequence[Segment], step: int) -> bool:
    """True where what a step begins with, or what was before it, is shown, so that an item can
    stand there."""
    return any(
        not isinstance(each, Summarized) and each.first <= step <= each.last + 1
        for each in segments
    )


def _merge(ranges: list[Range]) -> list[Range]:
    merged: list[Range] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _split(first: int, last: int, summaries: Sequence[Summary]) -> list[Range]:
    """A range that runs over the beginning of a summary is parted there, so that the summary can
    stand at its place."""
    edges = [s.first_step for s in summaries if first < s.first_step <= last]
    starts = [first, *edges]
    ends = [*(edge - 1 for edge in edges), last]
    return list(zip(starts, ends, strict=True))


def reshaped(
    segments: Sequence[Segment],
    forms: Mapping[int, Mapping[int, Slot]],
    reasons: Mapping[int, str],
) -> tuple[Segment, ...]:
    """The segments with messages of some steps in other forms: slots by sequence, by step, and why
    by step."""
    if not forms:
        return tuple(segments)
    steps = sorted(forms)
    parted: list[Segment] = []
    for segment in segments:
        if not isinstance(segment, Keep):
            parted.append(segment)
            continue
        first = segment.first
        for step in steps:
            if segment.first <= step <= segment.last:
                if first < step:
                    parted.append(Keep(first, step - 1, segment.reason))
                parted.append(Reshaped(step, step, reasons[step], dict(forms[step])))
                first = step + 1
        if first <= segment.last:
            parted.append(Keep(first, segment.last, segment.reason))
    return tuple(parted)


def top_level(summaries: list[Summary]) -> list[Summary]:
    """Those of the live summaries that no other live one lists as its child or stands in the place
    of, in order. One that was made again is below whatever lists the one that it was made for."""
    below = {child for summary in summaries for child in summary.children}
    remade = {summary.id: summary.remakes for summary in summaries if summary.remakes}
    for id in remade:
        before = id
        while before in remade and before not in below:
            before = remade[before]
        if before in below:
            below.add(id)
    below.update(remade.values())
    return sorted((s for s in summaries if s.id not in below), key=_FIRST_STEP)


def standing(summaries: Iterable[Summary]) -> dict[str, Summary]:
    """What stands for each of these summaries: the newest that was made in its place, or itself."""
    by_id = {summary.id: summary for summary in summaries}
    after = {summary.remakes: summary.id for summary in by_id.values() if summary.remakes}
    newest: dict[str, Summary] = {}
    for id in by_id:
        last = id
        while last in after:
            last = after[last]
        newest[id] = by_id[last]
    return newest
