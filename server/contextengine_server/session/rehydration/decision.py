"""What comes back behind the summaries is decided with the commit that makes them, and stored with
it: so it stays the same until the next one, and after a restart.

It holds no texts of messages: results are named by their sequence.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from contextengine_server.context.view import Summary, View
from contextengine_server.session.session import Session
from contextengine_server.session.state import Reading, Rehydration, SessionState
from contextengine_server.store.rows import SummaryRow

from .reads import MOST_FILES, covered_reads, in_sight

SAVED_SHARE = 0.75
"""What comes back may take this share of what summaries save: else they were of no use."""
FRAME = 160
"""The tokens of what stands around sections and files, and of the words to go on with, about."""


def rehydrated(session: Session, rows: Sequence[SummaryRow], state: SessionState) -> SessionState:
    """The state with which these summaries are committed. One that is made again in the place of
    another changes nothing."""
    new = [row for row in rows if not row.remakes]
    if not new:
        return state
    view, before = session.view, state.rehydration
    ranges = [(row.first_step, row.last_step) for row in new]
    covered = max([last for _, last in ranges] + [s.last_step for s in view.summaries])
    count = session.encoding.text_tokens
    sections = sum(count(text) for _, text in state.workspace)
    room = int(SAVED_SHARE * _saved(view, new)) - sections
    found = {one.target: one for one in before.reads if not in_sight(view, one, covered)}
    seen = 0
    for one in covered_reads(view, ranges, count):
        known = found.get(one.target)
        if not in_sight(view, one, covered) and (known is None or known.sequence < one.sequence):
            found[one.target] = one
        seen += one.target in found
        if seen == MOST_FILES:
            break  # what else there is is older
    reads = list[Reading]()
    for one in sorted(found.values(), key=_newest)[:MOST_FILES]:
        if one.tokens <= room:
            reads.append(one)
            room -= one.tokens
    peak = FRAME + sections + sum(one.tokens for one in reads)
    return replace(
        state,
        rehydration=Rehydration(
            step=_over(view),
            reads=tuple(reads),
            channel=state.channel,
            peak=max(before.peak, peak),
        ),
    )


def _saved(view: View, new: Sequence[SummaryRow]) -> int:
    """The tokens that summaries save, with these."""
    ranges = [(row.first_step, row.last_step) for row in new]
    saved = sum(row.span_end - row.span_start - row.tokens for row in new)
    return saved + sum(
        one.covered_tokens - one.tokens for one in view.summaries if not _within(one, ranges)
    )


def _within(one: Summary, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= one.first_step and one.last_step <= last for first, last in ranges)


def _over(view: View) -> int:
    """The first step that has not begun, or is not over: calls of it may still be answered."""
    newest = view.atoms[-1] if view.atoms else None
    if newest is not None and not newest.closed and (newest.pending or newest.growing):
        return newest.step
    return view.steps


def _newest(one: Reading) -> int:
    return -one.sequence
