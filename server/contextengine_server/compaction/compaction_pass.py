"""One pass of a compaction: what its summary is made of, and the row that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from contextengine_server.context.eviction import CommitSnapshot
from contextengine_server.context.laws.progress import input_key
from contextengine_server.context.message import Entry
from contextengine_server.context.summary_text import SummaryFacts, render
from contextengine_server.context.view import Summary, View
from contextengine_server.engines.contract import CompactionStep
from contextengine_server.session.rows import summary_cost
from contextengine_server.store.rows import SessionHead, SummaryRow
from contextengine_server.summarize.request import SummaryResult
from contextengine_server.tokens import MESSAGE_TOKENS
from contextengine_server.wire.slots import WireShaper

MAX_OVERAGE = 3
"""A summary of more than so many times its target is cut there, as with lossless-claw's option
summaryMaxOverageFactor (src/db/config.ts)."""

ASKED = 3
"""So many of the user's newest messages say what a summary may dwell on."""

CUT = "\n[cut here: the summary was longer than it may be; what it stands for can be expanded]"


class Pass(msgspec.Struct, frozen=True, eq=False):
    """A summary to be made: its step, and what it stands for. Nothing here changes when the session
    goes on."""

    step: CompactionStep
    entries: Sequence[Entry]
    """The messages that it is made of; for one over summaries, those between them."""
    children: Sequence[Summary]
    """The summaries that it stands in for."""
    gain: int
    """The tokens that leave the view with it."""
    first_sequence: int
    last_sequence: int
    span_start: int
    span_end: int
    asked: Sequence[Entry] = ()
    """What the user said last in the session, oldest first."""

    @property
    def sources(self) -> Sequence[Summary]:
        """The summaries that it is made of; none for one over messages."""
        return self.children if self.step.depth or self.step.update else ()

    def asked_before(self, user_step: int) -> bool:
        """See `SummaryRow.asked_before`; the newest user's message stands at this step."""
        first = self.children[0] if self.children else None
        if first is not None and first.first_step == self.step.first:
            return first.asked_before
        return user_step < self.step.first

    def key(self, configuration: str) -> str:
        """Names its input, for law 12."""
        hashes = [child.slot.hash for child in self.sources]
        hashes += [entry.hash for entry in self.entries]
        return input_key(hashes, f"{configuration}:{self.step.most_tokens}")


def prepare(view: View, step: CompactionStep) -> Pass:
    """What a step would cover in this view, which holds all of it."""
    return replace(_covering(view, step), asked=asked_last(view))


def asked_last(view: View) -> list[Entry]:
    """The newest messages of the user's in memory, oldest first."""
    entries = [entry for step in view.users[-ASKED:] for entry in view.atom(step).entries]
    return [entry for entry in entries if entry.traits.says][-ASKED:]


def _covering(view: View, step: CompactionStep) -> Pass:
    children = [summary for summary in view.summaries if summary.id in step.replaces]
    if step.depth:
        return _fold(view, step, children)
    if step.update and children:
        return _update(view, step, children)
    kept = set(view.pinned) | set(range(view.leading))
    # By sequence: the results in one message may stand behind calls of several steps.
    entries = {
        e.sequence: e
        for at in range(step.first, step.last + 1)
        if at not in kept
        for e in view.atom(at).entries
    }
    stays = set(view.intent())
    steps = range(step.first, step.last + 1)
    begin, end = view.atom(step.first), view.atom(step.last)
    return Pass(
        step,
        # Pinned and leading messages are shown all the same and never summarized.
        list(entries.values()),
        children,
        sum(child.tokens for child in children)
        + sum(
            view.atom(at).tokens for at in steps if at not in stays and view.covering(at) is None
        ),
        begin.first,
        max((entry.sequence for entry in _in_place(view, step, steps)), default=end.first),
        begin.start,
        end.end,
    )


def _fold(view: View, step: CompactionStep, children: Sequence[Summary]) -> Pass:
    """One over summaries, and over what lies uncovered between them."""
    first, last = children[0], children[-1]
    kept = set(view.intent())
    between = [at for at in _uncovered(view, step) if at not in kept]
    entries = {entry.sequence: entry for at in between for entry in view.atom(at).entries}
    gain = sum(child.tokens for child in children)
    return Pass(
        step,
        list(entries.values()),
        children,
        gain + sum(view.atom(at).tokens for at in between),
        first.first_sequence,
        last.last_sequence,
        first.span_start,
        last.span_end,
    )


def _uncovered(view: View, step: CompactionStep) -> list[int]:
    """The steps of a range that no summary covers."""
    return [
        at
        for first, last, _ in view.uncovered()
        for at in range(max(first, step.first), min(last, step.last) + 1)
    ]


def _update(view: View, step: CompactionStep, children: Sequence[Summary]) -> Pass:
    """One that brings summaries up to date: of their texts, and of the messages in the range that
    none of them covers. Only these need be in memory."""
    kept, stays = {*view.pinned, *range(view.leading)}, set(view.intent())
    fresh = _uncovered(view, step)
    entries = {e.sequence: e for at in fresh if at not in kept for e in view.atom(at).entries}
    begin = None if children[0].first_step == step.first else view.atom(step.first)
    end = None if children[-1].last_step == step.last else view.atom(step.last)
    return Pass(
        step,
        list(entries.values()),
        children,
        sum(child.tokens for child in children)
        + sum(view.atom(at).tokens for at in fresh if at not in stays),
        begin.first if begin is not None else children[0].first_sequence,
        max((entry.sequence for entry in _in_place(view, step, fresh)), default=end.first)
        if end is not None
        else children[-1].last_sequence,
        begin.start if begin is not None else children[0].span_start,
        end.end if end is not None else children[-1].span_end,
    )


def bounded(summary: SummaryResult, target: int, count: Callable[[str], int]) -> SummaryResult:
    """The summary, cut where it is far longer than its text was to be, in tokens: a model may not
    mind its target."""
    most = MAX_OVERAGE * max(1, target)
    text, tokens = summary.text, summary.tokens
    while tokens > most:
        text = text[: len(text) * most * 9 // (tokens * 10)]
        tokens = count(text + CUT)
        if not text:
            break
    return summary if text == summary.text else replace(summary, text=text + CUT, tokens=tokens)


def row_of(
    made: Pass,
    summary: SummaryResult,
    head: SessionHead,
    before: CommitSnapshot,
    shaper: WireShaper,
    taken: Container[str] = (),
) -> SummaryRow:
    """The summary's row, for a commit that makes this the session's head. `taken`: the ids of
    others of the same commit."""
    row = SummaryRow(
        id=id_of(head.revision, summary.text, taken),
        depth=made.step.depth,
        first_sequence=made.first_sequence,
        last_sequence=made.last_sequence,
        message_count=_message_count(made),
        source_tokens=made.gain,
        tokens=0,
        text=summary.text,
        created_revision=head.revision,
        first_step=made.step.first,
        last_step=made.step.last,
        span_start=made.span_start,
        span_end=made.span_end,
        asked_before=made.asked_before(before.user_step),
        children=tuple(child.id for child in made.children),
        start_ms=min(_known(_starts(made)), default=None),
        end_ms=max(_known(_ends(made)), default=None),
        summarizer=summary.summarizer,
        fallback=summary.fallback,
        generation=head.generation + 1,
        origin=made.step.origin,
        role=made.step.role,
        wanted=summary.wanted,
    )
    return replace(row_after(row, before), tokens=summary_cost(row, shaper))


def row_after(row: SummaryRow, before: CommitSnapshot) -> SummaryRow:
    """The row with the view just before its commit."""
    return replace(
        row,
        before_view=before.view,
        before_total=before.total,
        before_fixed=before.fixed,
        before_peak=before.peak,
        before_needs=before.needs,
    )


def id_of(revision: int, text: str, taken: Container[str]) -> str:
    """Derived, so that the same session compacted in the same way gets the same summary, wherever
    that happens."""
    # In decimal, which tokenizers take by threes.
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=8)
    while (made := f"s{revision}-{int(digest.hexdigest(), 16) % 10**9:09}") in taken:
        digest.update(b"again")
    return made


def frame_tokens(made: Pass, count: Callable[[str], int]) -> int:
    """What the summary of a pass costs besides its text, a token or three less at times: its id is
    not known yet."""
    facts = SummaryFacts(
        id="s" + "9" * 9 + "-" + "9" * 9,
        depth=made.step.depth,
        descendant_count=_message_count(made),
        start_ms=min(_known(_starts(made)), default=None),
        end_ms=max(_known(_ends(made)), default=None),
    )
    return MESSAGE_TOKENS + count(render(facts, "x"))


def _message_count(made: Pass) -> int:
    return sum(child.message_count for child in made.sources) + len(made.entries)


def _starts(made: Pass) -> list[int | None]:
    return [child.start_ms for child in made.sources] + [entry.time_ms for entry in made.entries]


def _ends(made: Pass) -> list[int | None]:
    return [child.end_ms for child in made.sources] + [entry.time_ms for entry in made.entries]


def _known(times: Iterable[int | None]) -> list[int]:
    return [time for time in times if time is not None]


def _in_place(view: View, step: CompactionStep, steps: Iterable[int]) -> list[Entry]:
    """The messages of these steps of the range that stand at their own position: a late result lies
    behind the range."""
    behind = view.first_of(step.last + 1)
    return [
        entry
        for at in steps
        for entry in view.atom(at).entries
        if behind is None or entry.sequence < behind
    ]
