"""Between rows and the core: summaries as items of the view, facts of messages as their rows
have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog
from msgspec.structs import replace

from contextengine_server.context.eviction import CommitSnapshot
from contextengine_server.context.message import Slot
from contextengine_server.context.summary_text import SummaryFacts, is_id, render, verify
from contextengine_server.context.view import Summary, View
from contextengine_server.context.work import Work
from contextengine_server.errors import CorruptRow
from contextengine_server.store.rows import Facts, SessionHead, SummaryRow
from contextengine_server.telemetry.events import Events
from contextengine_server.tokens import MESSAGE_TOKENS
from contextengine_server.wire.damage import as_shown, intact
from contextengine_server.wire.slots import WireShaper

log = structlog.get_logger("contextengine.sessions")


def summary_facts(row: SummaryRow) -> SummaryFacts:
    """What the row says, for the summary's header."""
    return SummaryFacts(
        id=row.id,
        depth=row.depth,
        descendant_count=row.message_count,
        start_ms=row.start_ms,
        end_ms=row.end_ms,
        fallback=row.fallback,
    )


def rendered(row: SummaryRow) -> str:
    """The summary as it is shown, held to law 7."""
    facts = summary_facts(row)
    text = render(facts, row.text)
    wrong = verify(facts, text)
    if wrong is not None:
        raise CorruptRow(f"summary {row.id} cannot be shown honestly: {wrong}")
    return text


def summary_cost(row: SummaryRow, shaper: WireShaper) -> int:
    """What showing a summary costs."""
    return MESSAGE_TOKENS + shaper.count(rendered(row))


def summary_overhead(count: Callable[[str], int]) -> int:
    """What a summary costs besides its body, at most: its frame as a message, header, fence and
    footer."""
    longest = SummaryFacts("s" + "9" * 9 + "-ffffffff", 9, 999_999, 0, 4_102_444_799_000, True)
    return MESSAGE_TOKENS + count(render(longest, ""))


def summary_of(row: SummaryRow, shaper: WireShaper) -> Summary:
    """A live summary as the view holds it."""
    return Summary(
        id=row.id,
        depth=row.depth,
        first_sequence=row.first_sequence,
        last_sequence=row.last_sequence,
        first_step=row.first_step,
        last_step=row.last_step,
        span_start=row.span_start,
        span_end=row.span_end,
        message_count=row.message_count,
        created=row.created_revision,
        generation=row.generation,
        tokens=row.tokens,
        show=_Shown(row, shaper),
        before=CommitSnapshot(
            row.before_view,
            row.before_total,
            row.before_fixed,
            row.before_peak,
            needs=row.before_needs,
        ),
        asked_before=row.asked_before,
        children=row.children,
        start_ms=row.start_ms,
        end_ms=row.end_ms,
        text=row.text,
        origin=row.origin,
        summarizer=row.summarizer,
        fallback=row.fallback,
        wanted=row.wanted,
        remakes=row.remakes,
    )


def stored_summaries(rows: Sequence[SummaryRow], shaper: WireShaper) -> list[Summary]:
    """Live summaries that were read, as the view holds them: a label in the place of a text that is
    not what its row's hash names. One whose very id is no text any more can be neither shown nor
    expanded; what it stood on is there without it."""
    shown = as_shown(rows)
    if shown is rows:
        return [summary_of(row, shaper) for row in rows]
    return [_read(row, shaper) for row in shown if is_id(row.id)]


def _read(row: SummaryRow, shaper: WireShaper) -> Summary:
    if intact(row):
        return summary_of(row, shaper)
    row = replace(row, tokens=summary_cost(row, shaper))
    return replace(summary_of(row, shaper), damaged=True)


class _Shown:
    """Makes the item that shows a summary when it is first wanted. Thousands of these are made for
    one cold session, and a cached function takes twenty times as long to make."""

    __slots__ = ("_row", "_shaper", "_slot")

    def __init__(self, row: SummaryRow, shaper: WireShaper) -> None:
        self._row, self._shaper = row, shaper
        self._slot: Slot | None = None

    def __call__(self) -> Slot:
        if self._slot is None:
            self._slot = self._shaper.summary(self._row, rendered(self._row))
        return self._slot


def facts_by_sequence(view: View) -> Work[dict[int, Facts]]:
    """The facts of every message that a whole view shows."""
    facts: dict[int, Facts] = {}
    for atom in view.atoms:
        late = dict(atom.late)
        for entry in atom.entries:
            facts[entry.sequence] = Facts(
                entry.sequence,
                atom.step,
                atom.start if entry.sequence == atom.first else None,
                late.get(entry.sequence),
            )
        yield
    return facts


def tell_damage(
    events: Events,
    head: SessionHead,
    damaged: Sequence[int],
    summaries: Sequence[Summary] = (),
) -> None:
    """Says that rows which were just read are not what their hashes name: messages of these
    sequences, and some of the summaries."""
    remade = {summary.remakes for summary in summaries}
    bad = [one for one in summaries if one.damaged and one.id not in remade]
    if damaged or bad:
        ids = [summary.id for summary in bad]
        scope = head.scope
        log.error("corrupt_row", session=scope.session, sequences=damaged[:5], summaries=ids[:5])
        first = min([*damaged, *(summary.first_sequence for summary in bad)])
        counts = {"rows": len(damaged) + len(bad), "first": first, "summaries": len(bad)}
        events.emit("session:corrupt_row", *scope, revision=head.revision, counts=counts)
