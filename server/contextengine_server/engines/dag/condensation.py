"""Condensed summaries: which run of neighbouring summaries of one depth is folded into a deeper
one.

The shallowest depth is folded first, and of it the oldest run, as in lossless-claw
(src/compaction.ts). So nodes of one depth stay alike, however many passes made them. What was
folded stays below its parent and can be expanded.
"""

from __future__ import annotations

from collections.abc import Iterator

from contextengine_server.context.view import Summary, View

from ..contract import CompactionStep
from .options import DagOptions


def crowded(view: View, available: int, options: DagOptions) -> bool:
    """True where the summaries take more of the view than they should: half of what the threshold
    leaves, at most the tokens of a leaf's chunk, at least those of one condensed summary
    (lossless-claw's default of summaryPrefixTargetTokens, src/compaction.ts)."""
    share = int(options.context_threshold * available / 2)
    limit = max(options.condensed_target_tokens, min(options.leaf_chunk_tokens, share))
    return sum(summary.tokens for summary in view.summaries) > limit


def can_fold(view: View, options: DagOptions) -> bool:
    """True where there is a run to fold, whatever it gains."""
    return any(len(run) >= options.condensed_min_fanout for run in _runs(view))


def next_fold(view: View, options: DagOptions, floor: int) -> CompactionStep | None:
    """The next condensed summary, from the oldest end of a run: up to a leaf's chunk of summaries,
    at least the fan-out."""
    best: list[Summary] | None = None
    for run in _runs(view):
        part = _part(run, options)
        deeper = best is not None and run[0].depth >= best[0].depth
        if len(part) >= options.condensed_min_fanout and not deeper and _tokens(part) > floor:
            best = part
    if best is None:
        return None
    gain, depth = _tokens(best), best[0].depth + 1
    earlier = [s for s in view.summaries if s.depth == depth and s.last_step < best[0].first_step]
    return CompactionStep(
        best[0].first_step,
        best[-1].last_step,
        # Half of the source: a target near its size would end as a summary that hardly shrinks it.
        min(options.condensed_target_tokens, max(floor, gain // 2)),
        replaces=tuple(summary.id for summary in best),
        depth=depth,
        previous=earlier[-1].text if earlier else "",
    )


def _runs(view: View) -> Iterator[list[Summary]]:
    """Neighbours of one depth: nothing but pinned messages, which no summary stands for, lies
    between them."""
    pinned = set(view.pinned)
    run: list[Summary] = []
    for summary in view.summaries:
        if run and not (
            run[-1].depth == summary.depth
            and all(step in pinned for step in range(run[-1].last_step + 1, summary.first_step))
        ):
            yield run
            run = []
        run.append(summary)
    if run:
        yield run


def _part(run: list[Summary], options: DagOptions) -> list[Summary]:
    part: list[Summary] = []
    tokens = 0
    for summary in run:
        tokens += summary.tokens
        if tokens > options.leaf_chunk_tokens and len(part) >= options.condensed_min_fanout:
            break
        part.append(summary)
    return part


def _tokens(summaries: list[Summary]) -> int:
    return sum(summary.tokens for summary in summaries)
