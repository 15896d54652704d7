"""Sessions that go on at one budget and are compacted in the background: real ones, and made up
ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from pathlib import Path

from hypothesis import strategies as st

from contextengine.formats import read_transcript
from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.message import Form, Slot
from contextengine_server.context.plan import Plan, Summarized, plan_tokens
from contextengine_server.context.view import Summary
from contextengine_server.engines.contract import Engine
from contextengine_server.testing.engine.real_sessions import REAL_SHAPER, real_sessions, rows_of
from contextengine_server.testing.engine.steadiness import scraps
from contextengine_server.testing.engine.trial import Trial, lawful, outline, trial_of
from contextengine_server.testing.engine.views import FRAME, sent_slots
from contextengine_server.testing.oracle.pairs import ViewRow

DATA = Path("tests/data")
PASSES = 40
"""No job of these sessions takes so many."""


def steps_shown(plan: Plan) -> tuple[set[int], set[int]]:
    """The steps that a plan shows as they are, and those that its summaries stand for."""
    raw: set[int] = set()
    told: set[int] = set()
    for segment in plan.segments:
        if isinstance(segment, Summarized):
            told |= set(range(segment.summary.first_step, segment.summary.last_step + 1))
        else:
            raw |= set(range(segment.first, segment.last + 1))
    return raw, told


@dataclass
class Replay:
    """A session that goes on at one budget: it is assembled, and then compacted where that is due,
    as it is by a server whose background keeps pace."""

    engine: Engine
    budget: ReferenceTokens
    one: Trial
    written: float = 1.0
    """The share of what it may write that the summarizer does write."""
    hidden: set[int] = field(default_factory=set)
    before: list[bytes] = field(default_factory=list)
    said: tuple[str, bool] = ("", False)
    masked: set[int] = field(default_factory=set)
    sent: int = 0
    kept: int = 0
    """Of the tokens sent, those that begin what was sent the step before."""
    uses: list[float] = field(default_factory=list)
    """The share of the budget that is used, of each assembly since the session is larger."""
    epochs: int = 0
    holes: int = 0
    """Assemblies with room for the newest step that is neither shown nor summarized."""
    untold: set[str] = field(default_factory=set)
    """The summaries that are not shown."""
    unforced: list[str] = field(default_factory=list)
    """Assemblies, compactions between them included, that leave out the newest of what is not shown
    (a step, or a summary) although there is room and it was not left out before: where it was, it
    may not come back."""
    told_back: int = 0
    """Those that show a summary which was not shown before."""
    back: int = 0
    """Assemblies that show what was not shown before."""
    large_back: int = 0
    """Those of them that show more than scraps again, which no eviction takes: law 6 takes them
    with the tail that they stand in, where that has to give way."""
    lifted: int = 0
    """Assemblies that show whole what was masked before."""

    @property
    def share(self) -> float:
        """Of the tokens sent, those that were sent before."""
        return self.kept / self.sent if self.sent else 0.0

    def go_on(self, rows: Sequence[ViewRow]) -> None:
        """These messages are stored."""
        self.one.add(rows)
        self.look()
        self.compact()
        self.watch(self.engine.plan(self.one.view, self.budget))

    def compact(self) -> None:
        """What is due in the background."""
        if not self.engine.due(self.one.view, self.budget, None):
            return
        for done in range(PASSES):
            room = self.engine.threshold * self.budget
            reached = done > 0 and self.one.view.view_tokens() <= room
            if not self.one.compaction(
                self.engine, self.budget, reached=reached, written=self.written, spare=FRAME
            ):
                return
            self.note(self.engine.plan(self.one.view, self.budget))
        raise AssertionError(f"{PASSES} passes at once")

    def look(self) -> None:
        """Holds an assembly to the laws, and takes down what it shows."""
        view = self.one.view
        plan = self.engine.plan(view, self.budget)
        broke = lawful(view, self.engine, plan, self.budget)
        assert broke is None, str(broke)
        in_order(plan)
        tokens = plan_tokens(plan, view)
        raw, told = steps_shown(plan)
        hidden = set(range(view.steps)) - raw - told
        self.back += bool(self.hidden & raw)
        self.large_back += bool((self.hidden & raw) - scraps(view))
        if hidden and view.holds(max(hidden)):
            self.holes += tokens + view.atom(max(hidden)).tokens <= self.budget
        self.watch(plan)
        self.compare(sent_slots(plan, view), (self.engine.addition(plan.summaries), bool(hidden)))
        self.sent += tokens
        if view.total > self.budget:
            self.uses.append(tokens / self.budget)

    def watch(self, plan: Plan) -> None:
        """Takes down what is left out, and whether it had to be: it may not come back where it was
        left out before. A step that is shown head and tail counts whole for what comes after it, so
        while there is one it may leave room."""
        view = self.one.view
        hidden, untold = self.hidden, self.untold
        waits = [(s.first_step, s.tokens, s.id in untold) for s in self.note(plan)]
        waits += [
            (at, view.atom(at).tokens, at in hidden)
            for at in self.hidden
            if view.holds(at) and view.covering(at) is None
        ]
        if waits and not plan.over and not self.engine.saved(view, self.budget):
            at, tokens, before = max(waits)
            if not before and plan_tokens(plan, view) + tokens <= self.budget:
                self.unforced.append(f"{at} of {tokens} tokens: {outline(plan)}")

    def note(self, plan: Plan) -> list[Summary]:
        """Takes down what is left out, also between the passes of a job; the summaries of it."""
        view = self.one.view
        raw, told = steps_shown(plan)
        shown = {summary.id for summary in plan.summaries}
        self.told_back += bool(self.untold & shown)
        left = [summary for summary in view.summaries if summary.id not in shown]
        self.hidden, self.untold = set(range(view.steps)) - raw - told, {one.id for one in left}
        return left

    def compare(self, slots: Sequence[Slot], said: tuple[str, bool]) -> None:
        """How much of it begins what was sent before. `said`: what stands before the messages."""
        hashes = [slot.hash for slot in slots]
        pairs = zip(self.before, hashes, strict=False)
        same = 0
        if said == self.said:
            same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        self.kept += sum(slot.tokens for slot in slots[:same])
        self.epochs += same < len(self.before)
        self.before, self.said = hashes, said
        masked = {slot.sequence for slot in slots if slot.form is Form.PLACEHOLDER}
        self.lifted += bool(self.masked & {slot.sequence for slot in slots} - masked)
        self.masked |= masked


def in_order(plan: Plan) -> None:
    """Holds that all stands where it happened."""
    firsts = [
        segment.summary.first_step if isinstance(segment, Summarized) else segment.first
        for segment in plan.segments
    ]
    assert firsts == sorted(firsts)


def replayed(
    engine: Engine, rows: Sequence[ViewRow], budget: int, *, written: float = 1.0
) -> Replay:
    """A session, a reply of its model at a time."""
    one = trial_of([], REAL_SHAPER)
    replay, new = Replay(engine, ReferenceTokens(budget), one, written), list[ViewRow]()
    for row in rows:
        if row.message.role == pb.ROLE_ASSISTANT and new:
            replay.go_on(new)
            new = []
        new.append(row)
    return replay


@cache
def coding() -> list[ViewRow]:
    """The coding session."""
    [rows] = real_sessions(DATA / "coding_session.pi.jsonl")
    return rows


@cache
def doubled() -> list[ViewRow]:
    """The same with each result twice as long: the largest steps are larger than small budgets."""
    messages = [pb.Message.FromString(row.message.SerializeToString()) for row in coding()]
    for message in messages:
        for part in message.parts:
            for said in part.tool_result.parts:
                said.text.text *= 2
    return rows_of(messages)


@cache
def airline(part: int, of: int = 2) -> list[ViewRow]:
    """Every so manieth of the airline dialogues, one behind the other as one session under one
    policy."""
    messages: list[pb.Message] = []
    for number, transcript in enumerate(read_transcript(DATA / "airline_transcripts.jsonl")):
        if number % of == part:
            messages += _without_policy(transcript.messages) if messages else transcript.messages
    return rows_of(messages)


def _without_policy(messages: Iterable[pb.Message]) -> list[pb.Message]:
    return [message for message in messages if message.role != pb.ROLE_SYSTEM]


Turn = tuple[int, list[tuple[int, int]], int]
"""The words of a request, of each call's message and its result, and of the reply."""


def turns_of(
    asked: Sequence[int], called: Sequence[int], answered: Sequence[int], most: int
) -> st.SearchStrategy[list[Turn]]:
    """Requests, each with replies that call tools, of these sizes."""
    calls = st.tuples(st.sampled_from(called), st.sampled_from(answered))
    turn = st.tuples(
        st.sampled_from(asked), st.lists(calls, max_size=most), st.sampled_from([10, 200])
    )
    return st.lists(turn, min_size=1, max_size=12)


MIXED = turns_of([3, 30, 300, 1_500], [3, 60], [5, 80, 600, 2_500], 12)
"""Sessions of very different steps."""
ALIKE = st.one_of(
    turns_of([3, 30], [3, 60], [5, 80, 300], 40),
    turns_of([30, 300], [60], [2_500, 4_000], 12),
    turns_of([300, 1_500], [3], [5], 2),
)
"""Sessions of many small steps, of few large ones, or of talk."""


def rows_of_turns(turns: list[Turn], files: int = 0) -> list[ViewRow]:
    """The messages of these turns. `files`: each call reads one of so many; 0: no call says what it
    reads."""
    messages: list[pb.Message] = []
    for asked, calls, replied in turns:
        messages.append(_said(pb.ROLE_USER, asked))
        for number, (said, answered) in enumerate(calls):
            path = f"f{(answered + number) % files}" if files else ""
            call = f"c{len(messages)}"
            message = _said(pb.ROLE_ASSISTANT, said)
            message.parts.append(_call(call, path))
            messages.append(message)
            result = pb.ToolResultPart(call_id=call, parts=_said(pb.ROLE_TOOL, answered).parts)
            messages.append(pb.Message(role=pb.ROLE_TOOL, parts=[pb.Part(tool_result=result)]))
        messages.append(_said(pb.ROLE_ASSISTANT, replied))
    return rows_of(messages)


def _said(role: pb.Role, words: int) -> pb.Message:
    return pb.Message(role=role, parts=[pb.Part(text=pb.TextPart(text="word " * words))])


def _call(id: str, path: str) -> pb.Part:
    call = pb.ToolCallPart(call_id=id, name="read")
    if path:
        call.arguments_json = b'{"path": "%s"}' % path.encode()
    return pb.Part(tool_call=call)
