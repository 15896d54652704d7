"""From rows to views and back: what `session` does around the pure core, in a few lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache

from msgspec import structs

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.eviction import CommitSnapshot
from contextengine_server.context.fold import EntryFacts, Extension, apply, extend
from contextengine_server.context.lawful import snapshot_of
from contextengine_server.context.message import Entry, Slot
from contextengine_server.context.plan import Plan, segment_slots
from contextengine_server.context.scope import Scope
from contextengine_server.context.summary_text import SummaryFacts, render
from contextengine_server.context.view import Summary, View
from contextengine_server.store.rows import SummaryRow
from contextengine_server.testing.oracle.pairs import CoveredRange, ViewRow
from contextengine_server.testing.oracle.summaries import Covering
from contextengine_server.wire.message import read
from contextengine_server.wire.slots import WireShaper, item_of

SCOPE = Scope("tenant", "agent", "session")
_SAID = re.compile(r"\[(\d+)\]")


def count(text: str) -> int:
    """The tokens of a test's text: what it says (`[1200]`), and one for every eight characters."""
    return sum(map(int, _SAID.findall(text))) + len(text) // 8


SHAPER = WireShaper(count)
FRAME = 40
"""What a summary costs besides its text."""


def entry_of(row: ViewRow, count: Callable[[str], int] = count) -> Entry:
    """A row as the core holds it."""
    incoming = read(row.message, "message")
    tokens = incoming.fixed_tokens + sum(map(count, incoming.texts))
    return Entry(
        row.sequence,
        incoming.id,
        incoming.traits,
        tokens,
        incoming.hash,
        incoming.body,
        row.created,
        incoming.time_ms,
    )


def entries_of(rows: Iterable[ViewRow]) -> list[Entry]:
    return [entry_of(row) for row in rows]


def empty(stretches: Sequence[CoveredRange] = ()) -> View:
    """A view of nothing, that knows these summaries."""
    return View(
        SCOPE,
        stretches=[(one.first_sequence, one.last_sequence, one.created, 0) for one in stretches],
    )


class FoldFacts(dict[int, EntryFacts]):
    """What the store keeps of the fold, by sequence, as commits would leave it."""

    def take(self, change: Extension) -> None:
        for sequence, delta in change.shifts:
            for known in list(self.values()):
                if (
                    known.sequence > sequence
                    and known.start is not None
                    and known.sequence not in change.facts
                ):
                    self[known.sequence] = structs.replace(known, start=known.start + delta)
        self.update(change.facts)


def folded(
    entries: Sequence[Entry],
    shaper: WireShaper = SHAPER,
    *,
    batch: int = 0,
    stretches: Sequence[CoveredRange] = (),
) -> View:
    """The view of these entries, folded in batches of so many; 0: all at once."""
    view = empty(stretches)
    for at in range(0, len(entries), batch or max(len(entries), 1)):
        apply(view, extend(view, entries[at : at + (batch or len(entries))], shaper))
    return view


def items(slots: Iterable[Slot]) -> list[pb.Item]:
    """What slots show, decoded."""
    return [_decoded(slot.frame) for slot in slots]


_decoded = lru_cache(maxsize=20_000)(item_of)


def sent_slots(plan: Plan, view: View) -> list[Slot]:
    """What a plan shows, in order."""
    return [slot for segment in plan.segments for slot in segment_slots(segment, view)]


def all_slots(view: View) -> list[Slot]:
    """What the window shows, in order."""
    return [slot for atom in view.atoms for slot in atom.slots]


def summary(
    view: View,
    first: int,
    last: int,
    body: str,
    *,
    created: int,
    id: str = "",
    count: Callable[[str], int] = count,
    below: Sequence[Summary] = (),
    depth: int = 0,
    before: CommitSnapshot | None = None,
    role: str = "user",
) -> tuple[Summary, Covering]:
    """A summary over the steps first to last: as the core has it, and as its row says it. `below`:
    the summaries under it."""
    atoms = [view.atom(step) for step in range(first, last + 1)]
    sequences = [
        entry.sequence for atom in atoms for entry in (*atom.entries, *(e for e, _ in atom.dropped))
    ]
    last_sequence = max(*sequences, view.atom(last).first)
    if last + 1 < view.steps:
        last_sequence = min(last_sequence, view.atom(last + 1).first - 1)
    first_sequence = atoms[0].first
    times = [entry.time_ms for atom in atoms for entry in atom.entries if entry.time_ms is not None]
    facts = SummaryFacts(
        id=id or (f"s{first_sequence}" + (f"-{depth}.{created}" if depth or below else "")),
        depth=depth,
        descendant_count=len(set(sequences)),
        start_ms=min(times, default=None),
        end_ms=max(times, default=None),
    )
    text = render(facts, body)
    row = SummaryRow(
        id=facts.id, depth=depth, children=tuple(s.id for s in below),
        first_sequence=first_sequence, last_sequence=last_sequence,
        message_count=facts.descendant_count, source_tokens=view.span(first, last),
        tokens=count(body) + FRAME, text=body, created_revision=created,
        first_step=first, last_step=last, span_start=atoms[0].start, span_end=atoms[-1].end,
        start_ms=facts.start_ms, end_ms=facts.end_ms, role=role,
    )  # fmt: skip
    made = Summary(
        id=row.id, depth=depth, first_sequence=row.first_sequence, last_sequence=row.last_sequence,
        first_step=first,
        last_step=last, span_start=row.span_start, span_end=row.span_end,
        message_count=row.message_count,
        created=created, generation=1, children=row.children,
        tokens=row.tokens, show=cache(lambda: SHAPER.summary(row, text)), start_ms=row.start_ms,
        end_ms=row.end_ms, text=body,
        before=before or snapshot_of(view),
        asked_before=below[0].asked_before if below and below[0].first_step == first
        else view.user_step < first,
    )  # fmt: skip
    covering = Covering(
        id=row.id, depth=depth, first_sequence=first_sequence, last_sequence=last_sequence,
        message_count=row.message_count, start=_iso(row.start_ms), end=_iso(row.end_ms), body=body,
    )  # fmt: skip
    return made, covering


def _iso(time_ms: int | None) -> str:
    if time_ms is None:
        return "unknown"
    stamp = pb.SummaryInfo().start_time
    stamp.FromMilliseconds(time_ms // 1000 * 1000)
    return stamp.ToJsonString()
