"""Whether a session's rows agree with each other, and mending what follows from the messages.

What was said cannot be worked out again: a message that is missing or is not what its hash names is
told, never mended. Counts, the facts of messages, summaries of nothing and the search index can.
After the integrity checks of Comis (packages/agent/src/context-engine/dag-integrity.ts), whose
event `context:integrity` this emits.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter

import msgspec
from google.protobuf.message import DecodeError
from msgspec import structs
from msgspec.structs import replace

from contextengine_server.compaction.summary_quality import ours_now, quoting, stand_ins
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import View
from contextengine_server.context.work import Work, batches, emptied
from contextengine_server.errors import CorruptRow, LostRace
from contextengine_server.recall.audit import stale_passages
from contextengine_server.session.address import Address, not_found
from contextengine_server.session.change import Editor, PreparedChange
from contextengine_server.session.load import inherits, lineage_rows, lineage_summaries, load
from contextengine_server.session.rows import facts_by_sequence
from contextengine_server.session.session import Session, contents
from contextengine_server.session.sessions import Sessions
from contextengine_server.session.state import SessionState, facts_of
from contextengine_server.slices import in_slices
from contextengine_server.store.agent_facts import FoundInSession
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Facts, MessageRow, SessionHead, SummaryRow
from contextengine_server.telemetry.events import Events
from contextengine_server.wire.damage import as_shown, intact, readable

EVENT = "context:integrity"
MADE_AGAIN = ("summary_hash", "stand_in_summary", "private_summary")
"""Issues that are mended by making summaries again, which is not done here."""

MAX_LOOKS = 3
"""How often a session is looked at that is rewound, reset or answered late meanwhile."""

_AT_ONCE = 256
_NAMED = 5
"""Sequences or ids that are named; of more, how many."""


@dataclass(slots=True)
class Issue:
    """Something that is not as it should be."""

    kind: str
    """`message_hash`, `summary_hash`, `missing_sequence`, `stale_counts`, `stale_facts`,
    `orphan_summary`, `lost_child`, `crossed_summaries`, `search_index`, `stray_answers`,
    `lost_source`, `stand_in_summary` or `private_summary`."""
    found: str
    mendable: bool = False
    mended: bool = False
    serves: bool = False
    """True where everything works in spite of it."""


@dataclass(slots=True)
class IntegrityReport:
    """What was looked at, and what was found."""

    messages: int = 0
    summaries: int = 0
    issues: list[Issue] = field(default_factory=list)


class _Truth(msgspec.Struct, frozen=True):
    """What the head and the rows should say, worked out from the messages."""

    messages: int
    tokens: int
    summaries: int
    facts: list[Facts]
    state: SessionState


class _Look(msgspec.Struct, frozen=True):
    """What one look at a session saw."""

    head: SessionHead
    report: IntegrityReport
    orphans: list[str]
    truth: _Truth | None
    """None where messages cannot be read."""
    lost: Sequence[str]
    """Facts that the agent remembers of messages that the session has not got."""


class Integrity(msgspec.Struct, frozen=True):
    """Examines the rows of sessions, and repairs what follows from the messages."""

    sessions: Sessions
    store: Store
    editor: Editor
    events: Events

    async def examine(self, address: Address, *, mend: bool = False) -> IntegrityReport:
        """Looks at all rows of a session, and mends what can be mended where that is wanted. Raises
        SessionNotFound."""
        began = perf_counter()
        look = await self._look(address.scope)
        if mend and any(issue.mendable for issue in look.report.issues):
            # A session whose newest messages cannot be read cannot be written to either.
            with suppress(CorruptRow, DecodeError):
                async with self.sessions.open(address.scope, lock=True) as session:
                    if session.head != look.head:
                        look = await self._look(address.scope)
                    await self._mend(session, address, look)
        report = look.report
        self.events.emit(
            EVENT,
            *address.scope,
            revision=look.head.revision,
            counts={
                "issues": len(report.issues),
                "repairs_applied": sum(issue.mended for issue in report.issues),
                "errors": sum(not (issue.mendable or issue.serves) for issue in report.issues),
                "duration_ms": round((perf_counter() - began) * 1000),
            },
            attributes={"issue_types": ",".join(issue.kind for issue in report.issues)},
        )
        return report

    async def _look(self, scope: Scope) -> _Look:
        """Looks at a session as it is at one revision, whatever comes behind it meanwhile; where
        what was there is changed, again."""
        for _ in range(MAX_LOOKS):
            head = await self.store.head(scope)
            if head is None:
                raise not_found(scope)
            report = IntegrityReport()
            missing = await self._messages(head, report)
            stored = _as_of(await self.store.summaries(scope, retired=True), head.revision)
            report.summaries, rows = len(stored), as_shown(stored)
            inherited: Sequence[SummaryRow] = ()
            if inherits(head):
                inherited = await lineage_summaries(self.store, head, as_of=head.revision)
            orphans = [row.id for row in rows if _orphan(head, row, missing)]
            report.issues += _summaries(rows, inherited, orphans)
            report.issues += _to_make_again(rows, await quoting(self.store, head, rows))
            truth = await self._truth(head)
            if truth is not None:
                report.issues += _counts(head, truth)
            stale = await stale_passages(self.store, scope)
            if stale:
                found = f"the index does not hold {stale} messages or summaries as they are"
                report.issues.append(Issue("search_index", found, mendable=True))
            facts = await self.store.memory.facts_of(scope)
            now = await self.store.head(scope)
            if now is None or now.incarnation != head.incarnation:
                continue
            report.issues += _strays(await self._stray_replies(now))
            lost = [fact.id for fact in facts if not 0 < fact.sequence <= now.last_sequence]
            report.issues += _lost_sources(lost)
            if SessionState.decode(now.state).view.reopened <= head.revision:
                return _Look(head, report, orphans, truth, lost)
        raise LostRace(
            f"session {scope.session} changes faster than it can be looked at", retry_after_ms=1000
        )

    async def _mend(self, session: Session, address: Address, look: _Look) -> None:
        """Mends what a look found. The session is locked."""
        truth, kinds = look.truth, {issue.kind for issue in look.report.issues if issue.mendable}

        async def edit(session: Session, new: SessionHead, state: SessionState) -> PreparedChange:
            if truth is None:
                new = replace(new, summary_count=new.summary_count - len(look.orphans))
                return PreparedChange(state, new, retire_summaries=look.orphans, reload=True)
            new = replace(
                new,
                message_count=truth.messages,
                message_tokens=truth.tokens,
                summary_count=truth.summaries - len(look.orphans),
            )
            return PreparedChange(
                truth.state, new, retire_summaries=look.orphans, facts=truth.facts, reload=True
            )

        if kinds - {"search_index", "stray_answers", "lost_source"}:
            await self.editor.change(session, address, edit, expected_revision=look.head.revision)
        if "search_index" in kinds:
            await self.store.index.renew(address.scope)
        if "stray_answers" in kinds:
            await self.store.stray_replies(address.scope, look.head.revision, erase=True)
        if look.lost:
            head = look.head
            gone = FoundInSession(head.scope, head.incarnation, head.revision, forgotten=look.lost)
            await self.store.memory.add(gone)
        for issue in look.report.issues:
            issue.mended = issue.mendable

    async def left_over(self, scope: Scope, *, mend: bool = False) -> IntegrityReport:
        """Looks for what is left of a session that is not there (any more), and erases it where
        that is wanted."""
        report = IntegrityReport(
            issues=list(_strays(await self.store.stray_replies(scope, -1, erase=mend)))
        )
        for issue in report.issues:
            issue.mended = mend
        return report

    async def _stray_replies(self, head: SessionHead | None) -> int:
        """How many answers belong to no revision. Of those that are written meanwhile the head that
        was read before does not know."""
        while head is not None:
            count = await self.store.stray_replies(head.scope, head.revision)
            now = await self.store.head(head.scope) if count else head
            if now is None or now.revision == head.revision:
                return count
            head = now
        return 0

    async def _messages(self, head: SessionHead, report: IntegrityReport) -> list[int]:
        """Whether every sequence has its message, and every message is what its hash names. The
        sequences that have none."""
        first = head.parent_sequence + 1 if head.parent_session else 1
        wrong: list[int] = []
        missing: list[int] = []
        for start in range(first, head.last_sequence + 1, _AT_ONCE):
            end = min(start + _AT_ONCE - 1, head.last_sequence)
            rows = await self.store.messages(head.scope, start, end, retired=True)
            report.messages += len(rows)
            there = {row.sequence for row in rows}
            missing += [sequence for sequence in range(start, end + 1) if sequence not in there]
            wrong += await asyncio.to_thread(_changed, rows)
        if missing:
            found = f"{_some(missing)} of {head.last_sequence} sequences have no message"
            report.issues.append(Issue("missing_sequence", found))
        if wrong:
            found = (
                f"{_some(wrong)} of {report.messages} messages are not what their hash names"
                " (CORRUPT_ROW): each is shown as a gap; import the session again, exported from a"
                " backup, and they are mended"
            )
            report.issues.append(Issue("message_hash", found))
        return missing

    async def _truth(self, head: SessionHead) -> _Truth | None:
        """Folds all rows of the view anew; None where one cannot be read."""
        state = SessionState.decode(head.state)
        try:
            encoding = await self.sessions.encodings.of(state.encoding)
            at = head.revision
            view, summaries = await load(self.store, head, state, encoding.shaper, None, as_of=at)
        except CorruptRow:
            return None
        parts = await lineage_rows(self.store, head, as_of=at)
        count, own = sum(len(rows) for _, rows in parts), parts[-1][1]
        total, facts = head.message_tokens, list[Facts]()
        # Of a gap it is not known what it called and answered, and so neither what others are to it
        # nor what the view comes to.
        if not await in_slices(_damaged(view)):
            total, facts = view.total, await in_slices(_other_facts(own, view))
        if facts:
            state = structs.replace(state, view=facts_of(view, state.view), checkpoints=())
        await in_slices(emptied(*contents(view), *(rows for _, rows in parts)))
        return _Truth(count, total, len(summaries), facts, state)


def _damaged(view: View) -> Work[bool]:
    """Whether a view holds a message that cannot be read."""
    for atom in view.atoms:
        if any(one.damaged for one in (*atom.entries, *(dropped for dropped, _ in atom.dropped))):
            return True
        yield
    return False


def _other_facts(rows: Sequence[MessageRow], view: View) -> Work[list[Facts]]:
    """The facts of the session's own messages that their rows do not have so."""
    now = yield from facts_by_sequence(view)
    other: list[Facts] = []
    for some in batches(rows):
        for row in some:
            one = now.get(row.sequence)
            if one is not None and one != Facts(row.sequence, row.step, row.start, row.late_of):
                other.append(one)
        yield
    yield from emptied(now)
    return other


def _orphan(head: SessionHead, row: SummaryRow, missing: Sequence[int]) -> bool:
    """True for a live summary over a range in which the session has no message of its own.
    `missing`: its sequences that have none, in order."""
    first = max(row.first_sequence, head.parent_sequence + 1 if head.parent_session else 1)
    if row.retired_revision or row.last_sequence < first:
        return False
    last = min(row.last_sequence, head.last_sequence)
    return bisect_right(missing, last) - bisect_left(missing, first) == max(0, last - first + 1)


def _as_of(rows: Sequence[SummaryRow], revision: int) -> list[SummaryRow]:
    """The summaries as they were at a revision."""
    return [
        replace(row, retired_revision=0) if row.retired_revision > revision else row
        for row in rows
        if row.created_revision <= revision
    ]


def _strays(count: int) -> Iterator[Issue]:
    if count:
        found = f"{count} answers to requests belong to no revision of the session"
        yield Issue("stray_answers", found, mendable=True)


def _lost_sources(lost: Sequence[str]) -> Iterator[Issue]:
    if lost:
        found = f"{len(lost)} facts are remembered of messages that the session has not got"
        yield Issue("lost_source", found, mendable=True)


def _changed(rows: Sequence[MessageRow]) -> list[int]:
    return [row.sequence for row in rows if readable(row) is None]


def _summaries(
    rows: Sequence[SummaryRow], inherited: Sequence[SummaryRow], orphans: Sequence[str]
) -> Iterator[Issue]:
    remade = {row.remakes for row in rows if not row.retired_revision}
    live = [row for row in rows if not row.retired_revision and row.id not in remade]
    bad = [row.id for row in live if not intact(row)]
    if bad:
        found = (
            f"{_some(bad)} of {len(live)} summaries are not what their hashes name (CORRUPT_ROW):"
            " each is shown as a label, and the messages that it covers can be expanded"
        )
        yield Issue("summary_hash", found)
    if orphans:
        yield Issue(
            "orphan_summary", f"{_some(orphans)} summaries stand for no message", mendable=True
        )
    known = {row.id: row for row in [*inherited, *rows]}
    lost = [row.id for row in rows if any(child not in known for child in row.children)]
    if lost:
        yield Issue(
            "lost_child", f"{_some(lost)} summaries were made of summaries that are not there"
        )
    crossed = [row.id for row in rows if not row.retired_revision and not _encloses(row, known)]
    if crossed:
        yield Issue(
            "crossed_summaries", f"{_some(crossed)} summaries do not enclose what they were made of"
        )


def _to_make_again(rows: Sequence[SummaryRow], quoted: Sequence[str]) -> Iterator[Issue]:
    stood_in = stand_ins(ours_now(rows))
    if stood_in:
        found = f"{_some(stood_in)} summaries were written by what stood in for a model"
        yield Issue("stand_in_summary", found, serves=True)
    if quoted:
        found = f"{_some(quoted)} summaries quote private reasoning of a model"
        yield Issue("private_summary", found, serves=True)


def _encloses(row: SummaryRow, known: dict[str, SummaryRow]) -> bool:
    children = [known[child] for child in row.children if child in known]
    return row.first_sequence <= row.last_sequence and all(
        row.first_sequence <= child.first_sequence
        and child.last_sequence <= row.last_sequence
        and (child.depth < row.depth or row.depth == 0)
        for child in children
    )


def _counts(head: SessionHead, truth: _Truth) -> Iterator[Issue]:
    """Whether the head counts what there is, and messages know where they are shown."""
    counted = head.message_count, head.message_tokens, head.summary_count
    if counted != (truth.messages, truth.tokens, truth.summaries):
        found = (
            f"the head counts {head.message_count} messages of {head.message_tokens} tokens and"
            f" {head.summary_count} summaries; there are {truth.messages} of {truth.tokens}, and"
            f" {truth.summaries}"
        )
        yield Issue("stale_counts", found, mendable=True)
    if truth.facts:
        found = (
            f"{_some([one.sequence for one in truth.facts])} messages do not know where they are"
            " shown"
        )
        yield Issue("stale_facts", found, mendable=True)


def _some(named: Sequence[object]) -> str:
    """How many, and which, of a list of sequences or ids."""
    shown = ", ".join(map(str, named[:_NAMED]))
    return f"{len(named)} ({shown}{', …' if len(named) > _NAMED else ''})"
