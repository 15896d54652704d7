"""The facts of a range go to memory before it is summarized
(docs/summaries.md#facts-before-a-summary).

What keeps facts is not part of compaction: `Memory` is the port that it comes in by. This says when
it is called, and keeps in the session's state which ranges it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Protocol

import msgspec
import structlog
from cachetools import LRUCache
from msgspec.structs import replace

from contextengine_server.compaction.compaction_pass import Pass
from contextengine_server.compaction.summary_request import source_message
from contextengine_server.context.scope import Scope
from contextengine_server.context.work import Work, batches
from contextengine_server.memory.range import MemoryRange
from contextengine_server.session.session import Session
from contextengine_server.session.state import FLUSH, SessionState
from contextengine_server.store.debts import Debt
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.protocols import Store
from contextengine_server.summarize.request import SourceMessage
from contextengine_server.telemetry.meters import Meters

SOFT, HARD = 0.75, 0.90
"""Shares of the budget: Comis's softThresholdRatio and hardThresholdRatio."""
PATIENT_S, HURRIED_S = 30.0, 2.0
"""How long a summary waits for memory, and how long from the hard share on."""
_RETRY_MS = 10_000
PART, PART_CHARS = 500, 1 << 20
"""Messages that memory is given at a time, and about how many characters of them: some seconds of
its work, so that what it took is known of a range that takes longer than anyone waits."""

log = structlog.get_logger("contextengine.memory")


class Memory(Protocol):
    """What keeps facts of an agent. It may read, write and ask models for as long as it likes:
    whoever calls it waits for so long and no longer."""

    async def flush(self, given: MemoryRange) -> None:
        """Takes the facts of a range. Called once for each, and again under the same id where it
        failed, was interrupted, or the process ended before that was written down. Whatever it
        raises is told and stops no compaction."""


class FlushRules(msgspec.Struct, frozen=True):
    """When memory is told. Shares of what the budget leaves for messages."""

    soft: float = SOFT
    """From here on the range that comes next is handed over ahead, in the background."""
    hard: float = HARD
    """From here on a summary hardly waits for it."""


class Told(msgspec.Struct, frozen=True):
    """A range that was handed over."""

    first: int
    last: int
    kept: int
    """The last sequence that memory took; the one before the first: none."""

    @property
    def ok(self) -> bool:
        """True where it took all."""
        return self.kept >= self.last

    def noted(self, state: SessionState) -> SessionState:
        """The state that knows of it."""
        if self.kept >= self.first:
            state = state.told(self.first, self.kept)
        if self.ok:
            return state
        missed = self.kept + 1, self.last
        others = tuple(one for one in state.unflushed if one != missed)
        return replace(state, unflushed=(*others, missed))


class MemoryFlush:
    """Hands ranges over to memory. Without one it does nothing, and nothing is noted."""

    def __init__(
        self, memory: Memory | None, store: Store, meters: Meters, rules: FlushRules
    ) -> None:
        self.memory, self.rules = memory, rules
        self._store, self._meters = store, meters
        self._done: LRUCache[str, bool] = LRUCache(4_096)
        """What was handed over by this process: a pass that is planned again finds it done."""

    def listens(self, session: Session) -> bool:
        """True where there is a memory that hears of this session. What a parent tells a child that
        it spawned is no user's word."""
        return self.memory is not None and not session.state.depth

    def of_pass(self, session: Session, made: Pass) -> Work[MemoryRange | None]:
        """What memory lacks of what a pass summarizes; None: nothing, or there is no memory."""
        if not self.listens(session):
            return None
        flushed = session.state.flushed
        lacking = [
            entry
            for entry in made.entries
            if not any(first <= entry.sequence <= last for first, last in flushed)
        ]
        if not lacking:
            return None
        first, last = lacking[0].sequence, max(entry.sequence for entry in lacking)
        messages: list[SourceMessage] = []
        for some in batches(lacking):
            messages += map(source_message, some)
            yield
        return range_of(session, first, last, messages)

    async def tell(self, given: MemoryRange, seconds: float = PATIENT_S) -> Told:
        """Hands a range over in parts, and waits so long. Only cancellation is raised."""
        assert self.memory is not None
        kept, asked = given.first - 1, False
        try:
            async with asyncio.timeout(seconds):
                for part in _parts(given):
                    if part.id not in self._done:
                        asked = True
                        await self.memory.flush(part)
                        self._done[part.id] = True
                    kept = part.last
            kept = given.last  # also of a range of which nothing is left to tell
        except Exception as error:
            log.warning(
                "facts were not kept",
                session=given.scope.session,
                error=type(error).__name__,
                first=kept + 1,
                last=given.last,
            )
        if asked:
            self._meters.flushed["missed" if kept < given.last else "kept"].value += 1
        return Told(given.first, given.last, kept)

    def patience(self, used: int, available: int) -> float:
        """How long a summary waits, in seconds."""
        return HURRIED_S if used >= self.rules.hard * available else PATIENT_S

    def ahead(self, session: Session, available: int) -> bool:
        """True where there is something to hand over that no compaction does now: the range that
        comes next, from the soft share on, unless memory has it; or one that it missed."""
        if not self.listens(session):
            return False
        if session.state.unflushed:
            return True
        covered = max((one.last_sequence for one in session.live_summaries), default=0)
        told = max((last for _, last in session.state.flushed), default=0)
        return told <= covered and session.view.view_tokens() >= self.rules.soft * available

    async def owe(self, scope: Scope, now_ms: int) -> None:
        """Has what memory missed handed over again, in the background. Does nothing where the store
        cannot be written: the next turn does it."""
        with suppress(StoreUnavailable):
            later = now_ms + _RETRY_MS
            await self._store.add_debt(Debt(scope, FLUSH, now_ms, not_before_ms=later))


def range_of(
    session: Session,
    first: int,
    last: int,
    messages: Sequence[SourceMessage],
    as_of: int | None = None,
) -> MemoryRange:
    """These messages, under the id of their range. `as_of`: the revision at which they were read;
    None: now."""
    incarnation = session.view.incarnation
    revision = session.revision if as_of is None else as_of
    named = _id_of(session.scope, incarnation, first, last)
    return MemoryRange(named, session.scope, incarnation, revision, first, last, messages)


def _parts(given: MemoryRange) -> Iterator[MemoryRange]:
    """A range in parts that follow each other; itself where it is small."""
    messages = sorted(given.messages, key=lambda message: message.sequence)
    begins, first = 0, given.first
    while begins < len(messages):
        ends, chars = begins, 0
        while ends < len(messages) and ends - begins < PART and chars < PART_CHARS:
            chars += len(messages[ends].text)
            ends += 1
        last = messages[ends].sequence - 1 if ends < len(messages) else given.last
        named = _id_of(given.scope, given.incarnation, first, last)
        yield replace(given, id=named, first=first, last=last, messages=messages[begins:ends])
        begins, first = ends, last + 1


def _id_of(scope: Scope, incarnation: str, first: int, last: int) -> str:
    named = "\0".join((*scope, incarnation, str(first), str(last)))
    return blake2b(named.encode("utf-8", "replace"), digest_size=16).hexdigest()
