"""Laying out what is shown: ranges of steps, summaries, and what law 4 keeps, each at its own
place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .message import Slot
from .plan import Keep, Reshaped, Segment, Summarized
from .view import Summary, View

Range = tuple[int, int]


def lay_out(
    view: View, ranges: Iterable[Range], summaries: Sequence[Summary], reason: str = ""
) -> tuple[Segment, ...]:
    """Segments in order: the ranges, merged with the steps that must stay, and the summaries where
    what they cover begins."""
    merged = _merge([*ranges, *((step, step) for step in view.must_stay())])
    segments: list[tuple[tuple[int, int], Segment]] = [
        ((s.first_step, 0), Summarized(s)) for s in summaries
    ]
    for first, last in merged:
        for piece_first, piece_last in _split(first, last, summaries):
            segments.append(((piece_first, 1), Keep(piece_first, piece_last, reason)))
    segments.sort(key=_place)
    return tuple(segment for _, segment in segments)


def uncovered(view: View, behind: int = 0) -> list[Range]:
    """The ranges of steps that no summary covers, in order; `behind`: from this running sum on."""
    return [(first, last) for first, last, _ in view.uncovered(behind)]


def everything(view: View) -> tuple[Segment, ...]:
    """The whole view: summaries in place of what they cover."""
    if not view.summaries:
        return (Keep(0, view.steps - 1),) if view.steps else ()
    return lay_out(view, uncovered(view), view.summaries)


def _place(placed: tuple[tuple[int, int], Segment]) -> tuple[int, int]:
    return placed[0]


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
    segments: Sequence[Segment], forms: Mapping[int, Mapping[int, Slot]], reason: str
) -> tuple[Segment, ...]:
    """The segments with messages of some steps in other forms: slots by sequence, by step."""
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
                parted.append(Reshaped(step, step, reason, dict(forms[step])))
                first = step + 1
        if first <= segment.last:
            parted.append(Keep(first, segment.last, segment.reason))
    return tuple(parted)
