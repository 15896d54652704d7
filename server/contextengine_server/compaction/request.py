"""A compaction that is asked for, what it stands on, and what it did."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import msgspec

from contextengine_server.context.budget import ReferenceTokens, cell
from contextengine_server.context.view import Summary
from contextengine_server.engines.contract import Engine
from contextengine_server.engines.rewrite import rewriter_of
from contextengine_server.engines.teller import teller_of
from contextengine_server.session.session import Session
from contextengine_server.session.sessions import Sessions
from contextengine_server.slices import ASIDE_STEPS, aside
from contextengine_server.store.rows import SummaryRow
from contextengine_server.summarize.request import Steering
from contextengine_server.telemetry.tracing import Trace

T = TypeVar("T")

MAX_PASSES = 5_000
"""Passes of one call: a history of a hundred million tokens in leaves of 20,000. Every pass shrinks
the view, so it ends before."""

MOST_HELD = 262_144
"""Tokens of raw history that a pass has in memory, where there are so many: a megabyte of text. Of
a longer one it has as much as its budget may show and the engine takes at a time."""

MAX_MOVED = 3
"""How often in a row a call plans again because the session was reshaped meanwhile."""

ABORTED = "summary failed"
NO_SMALLER = "nothing to compact: a summary would not be smaller"
HELD = "nothing to compact: a compaction was undone, and none is made until one is forced"
DEFERRED = "deferred to background"
UNCHANGED = "next request unchanged"
NOT_REMADE = "nothing to make again"
REMADE = "summaries made again"


class CompactionRequest(msgspec.Struct, frozen=True):
    """What a compaction should reach."""

    available: ReferenceTokens
    force: bool = False
    to_threshold: bool = False
    uncounted: ReferenceTokens = ReferenceTokens(0)
    """What the harness measured beyond what is counted here (`session.assembly.pressure`)."""
    steering: Steering = Steering()
    passes: int = MAX_PASSES


def reach_of(engine: Engine, wanted: CompactionRequest) -> int | None:
    """What a pass looks at is in memory, in a session that was just read as in any other: all that
    an assembly at its budget may show, and as much again as the engine takes at a time."""
    reach = engine.reach(ReferenceTokens(cell(wanted.available)))
    return None if reach is None or engine.chunk is None else reach + engine.chunk


async def hold_raw_history(sessions: Sessions, session: Session) -> None:
    """Has a session hold what is newer than every summary, up to `MOST_HELD` tokens. How much of it
    is worth telling and which files it read is judged by all that is in memory, and nobody who read
    the session just now may judge otherwise. The session is not locked."""
    view = session.view
    since = view.summaries[-1].span_end if view.summaries else 0
    reach = min(view.total - since, MOST_HELD)
    if view.base > view.raw_from and not session.holds(reach):
        async with session.lock:
            await sessions.fresh(session, reach)


class Compacted(msgspec.Struct):
    """What a compaction did."""

    reason: str
    before: ReferenceTokens
    after: ReferenceTokens
    summaries: list[SummaryRow | Summary] = []
    error: str = ""
    """What went wrong on the way, whatever was done in spite of it; empty: nothing."""

    helps: bool = True
    """False where the assembly at the caller's budget is no smaller than before. What was made
    makes the view smaller, and is kept."""

    no_help: str = UNCHANGED
    """What to say where it does not help."""

    @property
    def compacted(self) -> bool:
        """True where the next request is smaller now."""
        return bool(self.summaries) and self.helps

    @property
    def why(self) -> str:
        """Why it is not, or what went wrong on the way; empty: nothing to say."""
        return self.no_help if self.summaries and not self.helps else self.reason or self.error

    def failed(self, failure: str | None) -> Compacted:
        """Nothing more is done, since models failed."""
        self.error = f"{ABORTED}: {failure or 'other'}"
        return self.ended(self.error)

    def ended(self, reason: str) -> Compacted:
        """Nothing more is done; the reason counts where nothing was."""
        self.reason = "" if self.summaries else reason
        return self


class Precondition(msgspec.Struct, frozen=True):
    """What must still stand at the commit: nothing that reshapes older history happened."""

    incarnation: str
    reset: int
    rewound: int
    late: int
    undone: int
    generation: int


def precondition_of(session: Session) -> Precondition:
    """What a compaction that is planned now stands on."""
    view, head = session.view, session.head
    generation = head.generation if head is not None else 0
    return Precondition(
        view.incarnation,
        view.reset_mark,
        view.rewind_mark,
        view.late_mark,
        session.state.undo_mark,
        generation,
    )


def describe(span: Trace, done: Compacted) -> None:
    """What a compaction did. Tokens in the reference encoding."""
    span.set("contextengine.compaction.summaries", len(done.summaries))
    span.set("contextengine.compaction.tokens_before", done.before)
    span.set("contextengine.compaction.tokens_after", done.after)


async def answered(
    engine: Engine,
    steps: int,
    ask: Callable[[], T],
    unwritten: AbstractAsyncContextManager[object],
    *,
    reads: bool = False,
) -> T:
    """What an engine says of a view of so many steps, when it is to compact or is asked whether it
    would: of a long one beside the event loop, and where it `reads` what messages say.
    `unwritten`: within it nobody writes to the session; its lock, or nothing where the caller holds
    that."""
    long = steps >= ASIDE_STEPS or (reads and teller_of(engine) is not None)
    if not long or rewriter_of(engine) is not None:
        return ask()
    async with unwritten:
        return await aside(ask)
