"""The view: what a session looks like to an engine now.

A view may be a window: the newest atoms from `base` on, and, before them, only the atoms that every
assembly needs (leading, pinned, the newest user message). All that a plan and its laws ask of it is
worked out when messages arrive.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from dataclasses import replace as changed

import msgspec
from msgspec.structs import replace

from .atom import Atom
from .carried import ALONE, Covered, Fault, FoldState, Pause
from .eviction import CommitSnapshot, EvictionHistory
from .message import NOBODY, Addressee, Entry, Slot
from .observations import Observations, Reply, ReplyHistory
from .scope import Scope
from .work import Work, at_once


class Summary(msgspec.Struct, frozen=True, eq=False):
    """A live summary of the view."""

    id: str
    depth: int
    first_sequence: int
    last_sequence: int
    first_step: int
    last_step: int
    span_start: int
    """The running token sum before what it covers."""
    span_end: int
    """The running token sum behind what it covers."""
    message_count: int
    created: int
    generation: int
    tokens: int
    """What showing it costs."""
    show: Callable[[], Slot]
    """Makes the item that shows it. Of summaries that stand below others it is seldom wanted, and
    there are many of them."""
    before: CommitSnapshot = CommitSnapshot()
    asked_before: bool = False
    """True where the newest user's message stood before all that it covers, when it or the first of
    what it is made of was committed: for it alone nothing before was evicted."""
    children: tuple[str, ...] = ()
    start_ms: int | None = None
    end_ms: int | None = None
    text: str = ""
    origin: str = "engine"
    summarizer: str = ""
    fallback: bool = False
    wanted: str = ""
    """Who was to write it where somebody later in the chain had to; else empty."""
    remakes: str = ""
    """The summary in whose place it stands, made again; empty: none."""
    damaged: bool = False
    """True where its text cannot be read any more, and a label stands in the place of it."""

    @property
    def slot(self) -> Slot:
        """The item that shows it."""
        return self.show()

    @property
    def covered_tokens(self) -> int:
        """The tokens of the atoms that it covers."""
        return self.span_end - self.span_start

    @property
    def reach(self) -> Covered:
        """How far it reaches."""
        return Covered(self.last_sequence, self.span_end, self.created)

    @property
    def stretch(self) -> tuple[int, int, int, int]:
        """What decides whether a late result comes for something that it covers."""
        return self.first_sequence, self.last_sequence, self.created, 0

    def shifted(self, delta: int) -> Summary:
        """The same summary after running sums before it moved by delta."""
        return replace(self, span_start=self.span_start + delta, span_end=self.span_end + delta)


@dataclass(slots=True, eq=False)
class View:
    """A session's view at one revision."""

    scope: Scope
    revision: int = 0
    incarnation: str = ""
    commit_id: bytes = b""
    """Names the commit that made it."""
    atoms: list[Atom] = field(default_factory=list)
    """The window: contiguous, from step `base` to the newest."""
    base: int = 0
    """The step of `atoms[0]`; with an empty window the next step."""
    total: int = 0
    """The running token sum behind the newest atom."""
    last_sequence: int = 0
    message_count: int = 0
    fold: FoldState = field(default_factory=FoldState)
    """What the fold carries on to the next message."""
    anchors: dict[int, Atom] = field(default_factory=dict)
    """Atoms before `base` that every assembly may need, by step."""
    follows: dict[int, int] = field(default_factory=dict)
    """The first sequences of steps that are not in memory and follow atoms that are, by step."""
    pinned: list[int] = field(default_factory=list)
    """Steps of pinned atoms, rising."""
    large: list[int] = field(default_factory=list)
    """Steps in memory with a message that may be over a cap, rising; not of those before the window
    that must stay."""
    answers: list[int] = field(default_factory=list)
    """The same of steps with results that may be long or say nothing."""
    observations: Observations = field(default_factory=Observations)
    """What tools answered in the messages in memory."""
    replies: ReplyHistory = field(default_factory=ReplyHistory)
    """What models replied in the messages in memory."""
    older: tuple[Reply, ...] = ()
    """Replies before these, in anchors, that hold reasoning."""
    reader: Addressee = NOBODY
    """Who is to read what is shown."""
    users: list[int] = field(default_factory=list)
    """The steps of users' messages in memory, in order."""
    asked: set[bytes] | None = None
    """Names the calls in memory (`session.usage.rereads`); None: nobody has asked for them."""
    pauses: list[Pause] = field(default_factory=list)  # messages in memory after a pause, in order
    summaries: list[Summary] = field(default_factory=list)
    """The top-level live summaries, in order."""
    stretches: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(first sequence, last sequence, created revision, retired revision or 0) of every summary
    that is live, or was when a late result came for what it covered."""
    covered: list[Covered] = field(default_factory=list)
    """How far each live summary reaches."""
    evictions: EvictionHistory = field(default_factory=EvictionHistory)
    """What was evicted when the live summaries were committed, those below others included."""
    rewind_mark: int = 0
    reset_mark: int = 0
    """The revisions of the newest rewind and the newest reset; 0: none."""
    channel: str = ""
    """The kind of channel that the session is held on; empty: unknown."""
    faults: dict[str, Fault] = field(default_factory=dict)
    """Parts of the engine that failed over this view or one made of it, by name."""
    lent: bool = False
    """Another session's view may hold the same atoms: they are copied before one is moved."""
    read: list[list[Atom]] = field(default_factory=list)
    """Lists of atoms that somebody goes through: none is replaced in one of them."""
    by_sequence: bool = True
    """False: a harness's own list, whose messages stand in its order, whatever their sequences."""

    @property
    def leading(self) -> int:
        """See FoldState.leading."""
        return self.fold.leading

    @property
    def user_step(self) -> int:
        """See FoldState.user_step."""
        return self.fold.user_step

    @property
    def user_peak(self) -> int:
        """See FoldState.user_peak."""
        return self.fold.user_peak

    @property
    def unanswered(self) -> int:
        """The first of the newest steps that the next reply answers: the newest, and where only
        notices, requests and the like stand behind the model's last calls, or behind another
        request, these as well."""
        return self.steps - 1 - max(0, self.fold.waiting.steps)

    @property
    def waits(self) -> bool:
        """True where the next reply answers more than the newest step."""
        return self.fold.waiting.steps > 0

    def waiting_alone(self) -> View:
        """The same view, of which the next reply answers the newest step alone."""
        return changed(self, fold=replace(self.fold, waiting=ALONE))

    @property
    def late_mark(self) -> int:
        """See FoldState.late_mark."""
        return self.fold.late_mark

    @property
    def abandoned(self) -> dict[str, list[int]]:
        """See FoldState.abandoned."""
        return self.fold.abandoned

    @property
    def steps(self) -> int:
        """How many steps the view has; the next atom's step."""
        return self.base + len(self.atoms)

    @property
    def window_start(self) -> int:
        """The running token sum before the window."""
        return self.atoms[0].start if self.atoms else self.total

    def atom(self, step: int) -> Atom:
        """The atom of a step, in the window or among the anchors. KeyError where it is not held."""
        if step >= self.base:
            return self.atoms[step - self.base]
        return self.anchors[step]

    def holds(self, step: int) -> bool:
        """True where the atom of this step is in memory."""
        return step >= self.base or step in self.anchors

    def first_of(self, step: int) -> int | None:
        """The first sequence of a step in memory, or that follows one; None: there is none."""
        return (
            self.atom(step).first
            if self.holds(step) and step < self.steps
            else self.follows.get(step)
        )

    def find(self, first: int) -> Atom | None:
        """The atom that begins with this sequence, where it is in memory."""
        if not self.by_sequence:
            return next((atom for atom in self.atoms if atom.first == first), None)
        index = bisect_left(self.atoms, first, key=_first)
        if index < len(self.atoms) and self.atoms[index].first == first:
            return self.atoms[index]
        return next((atom for atom in self.anchors.values() if atom.first == first), None)

    def holding(self, sequence: int) -> Atom | None:
        """The atom in memory that holds this message."""
        for atom in (*reversed(self.atoms), *self.anchors.values()):
            if atom.first > sequence and self.by_sequence:
                continue
            if any(entry.sequence == sequence for entry in atom.entries):
                return atom
        return None

    def entries(self) -> list[Entry]:
        """Every message in the window, shown or not, once and by sequence. One whose results answer
        calls of several atoms stands in each of them."""
        return at_once(self.gathered())

    def gathered(self) -> Work[list[Entry]]:
        """What `entries` answers."""
        held: dict[int, Entry] = {}
        for atom in self.atoms:
            for entry in (*atom.entries, *(dropped for dropped, _ in atom.dropped)):
                held[entry.sequence] = entry
            yield
        return [held[sequence] for sequence in sorted(held)]

    def place(self, summary: Summary) -> None:
        """A summary that was just committed stands where what it covers stood; summaries within its
        range are below it now."""
        earlier = [s.created for s in self.summaries if s.created < summary.created]
        first = bisect_left(self.summaries, summary.first_step, key=_first_step)
        behind = bisect_right(self.summaries, summary.last_step, key=_first_step)
        self.summaries = [*self.summaries[:first], summary, *self.summaries[behind:]]
        self.stretches.append(summary.stretch)
        self.covered.append(summary.reach)
        self.evictions.add(summary.before, summary.created, max(earlier, default=0))

    def must_stay(self) -> list[int]:
        """Steps that are in every assembly, rising: those of `intent`, and of those that the next
        reply answers all but the newest, unless a summary covers them."""
        steps = self.intent()
        if self.waits:
            waiting = range(max(self.unanswered, self.raw_from), self.steps - 1)
            return sorted({*steps, *waiting})
        return steps

    def intent(self) -> list[int]:
        """Steps that law 4 keeps verbatim in every assembly, rising: leading, pinned, the newest
        user message."""
        steps = list(range(self.leading))
        if self.pinned:
            steps = sorted(
                {*steps, *self.pinned, *((self.user_step,) if self.user_step >= 0 else ())}
            )
        elif self.user_step >= self.leading:
            steps.append(self.user_step)
        return steps

    def covering(self, step: int) -> Summary | None:
        """The top-level summary that covers a step."""
        index = bisect_right(self.summaries, step, key=_first_step) - 1
        if index >= 0 and self.summaries[index].last_step >= step:
            return self.summaries[index]
        return None

    @property
    def raw_from(self) -> int:
        """The first step behind every summary: nothing from here on is covered."""
        return self.summaries[-1].last_step + 1 if self.summaries else 0

    def cut_from(self, reached: int, first: int) -> int:
        """The first step, not before `first`, whose running token sum has reached `reached`.

        This is the one function that searches for boundaries; atoms make every edge between steps a
        safe one. Steps before the window count as not reached: a window is loaded so that the cut
        is in it.
        """
        index = bisect_left(self.atoms, reached, key=_start)
        return max(self.base + index, first)

    def tail_from(self, steps: int) -> int:
        """The first step of the newest `steps` steps."""
        return max(0, self.steps - steps)

    def span(self, first: int, last: int) -> int:
        """The tokens of the steps first to last, both in memory, by running sums."""
        if last < first:
            return 0
        base, atoms = self.base, self.atoms
        begins = atoms[first - base] if first >= base else self.anchors[first]
        ends = atoms[last - base] if last >= base else self.anchors[last]
        return ends.start + ends.tokens - begins.start

    def fixed_tokens(self) -> int:
        """The tokens before the newest raw history: summaries, what lies between, what leads."""
        tokens = sum(s.tokens for s in self.summaries)
        if self.raw_from > self.leading:
            return tokens + sum(t for _, last, t in self.uncovered() if last < self.raw_from)
        return tokens + sum(self.atom(step).tokens for step in range(self.leading))

    def had_covered(self, first: int, created: int) -> bool:
        """True where a message of this revision came while a summary covered what begins with the
        sequence `first`."""
        return any(
            lo <= first <= hi and since < created and (not gone or created < gone)
            for lo, hi, since, gone in self.stretches
        )

    def uncovered(self, behind: int = 0) -> list[tuple[int, int, int]]:
        """The ranges of steps that no summary covers, in order: (first, last, tokens). `behind`: of
        these only what begins at this running sum or later; the window must hold it."""
        ranges: list[tuple[int, int, int]] = []
        step, position = 0, 0
        for summary in (*self.summaries, None):
            following, end = (
                (self.steps, self.total)
                if summary is None
                else (summary.first_step, summary.span_start)
            )
            first = step if position >= behind else self._held_from(behind, step, following)
            if first < following:
                begins = self.atom(first).start if first > step else position
                ranges.append((first, following - 1, end - begins))
            if summary is not None:
                step, position = summary.last_step + 1, summary.span_end
        return ranges

    def _held_from(self, reached: int, first: int, following: int) -> int:
        """The first step in memory of `first` to `following` - 1 that begins at this running sum or
        later; else `following`."""
        anchored = (
            at
            for at in self.anchors
            if first <= at < following and self.anchors[at].start >= reached
        )
        return min(min(anchored, default=following), max(self.cut_from(reached, first), first))

    def view_tokens(self, behind: int = 0) -> int:
        """The tokens of the view as an engine sees it: summaries in place of what they cover, and
        what law 4 keeps. `behind`: of what no summary covers only what begins at this running sum
        or later."""
        if not self.summaries and not behind:
            return self.total
        tokens = sum(s.tokens for s in self.summaries) + sum(
            range_[2] for range_ in self.uncovered(behind)
        )
        return tokens + sum(
            self.atom(step).tokens for step in self.must_stay() if self.aside(step, behind)
        )

    def aside(self, step: int, behind: int) -> bool:
        """True where a step that must stay has to be shown besides the ranges that
        `uncovered(behind)` names: it begins before `behind`, or a summary covers it."""
        return self.atom(step).start < behind or self.covering(step) is not None


def _first(atom: Atom) -> int:
    return atom.first


def _start(atom: Atom) -> int:
    return atom.start


def _first_step(summary: Summary) -> int:
    return summary.first_step
