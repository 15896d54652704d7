"""What `dag` promises over a whole session with its default options: nothing comes back, no room is
left that something would fit into, all stands in order, most of a list is what was sent before, and
the budget is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.fold import apply, extend
from contextengine_server.context.laws.case import Case
from contextengine_server.context.laws.check import violation
from contextengine_server.context.laws.progress import shrinks
from contextengine_server.context.message import Entry, Role
from contextengine_server.context.plan import Plan, Summarized, plan_tokens, segment_slots
from contextengine_server.context.view import Summary, View
from contextengine_server.engines.contract import CompactionGoal, CompactionStep
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.testing.engine import views
from tests.properties.replays import COUNT, REVISIONS, SHAPER, TURNS, Turn, entries_of, real_entries

DAG = DagEngine(DagOptions())
FLOOR = 110
"""Tokens of a summary that says hardly anything."""


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
    """A session that goes on and is compacted before each reply, at one budget."""

    budget: ReferenceTokens
    view: View = field(default_factory=views.empty)
    hidden: set[int] = field(default_factory=set)
    before: list[bytes] = field(default_factory=list)
    sent: int = 0
    kept: int = 0
    uses: list[float] = field(default_factory=list)
    holes: int = 0
    back: int = 0
    looks: int = 0
    made: int = 0

    def go_on(self, entries: Sequence[Entry]) -> None:
        apply(self.view, extend(self.view, entries, SHAPER))
        if DAG.due(self.view, self.budget, None):
            self.compact()
        self.look()

    def compact(self) -> None:
        for passes in range(40):
            reached = passes > 0 and not DAG.due(self.view, self.budget, None)
            goal = CompactionGoal(self.budget, floor=FLOOR, reached=reached)
            step = DAG.compaction(self.view, goal)
            if not isinstance(step, CompactionStep):
                return
            made = self.summary(step)
            assert shrinks(sum(self.replaced(step)), made.tokens), "a summary that does not shrink"
            self.view.place(made)

    def replaced(self, step: CompactionStep) -> Iterator[int]:
        """The tokens that leave the view with a step."""
        yield from (s.tokens for s in self.view.summaries if s.id in step.replaces)
        kept = set(self.view.must_stay())
        for at in range(step.first, step.last + 1):
            if at not in kept and self.view.covering(at) is None:
                yield self.view.atom(at).tokens

    def summary(self, step: CompactionStep) -> Summary:
        """Of as many tokens as it is to have."""
        below = [s for s in self.view.summaries if s.id in step.replaces]
        self.made += 1
        text = "word " * max(1, step.target_tokens - 100)
        made, _ = views.summary(
            self.view, step.first, step.last, text.strip(),
            created=REVISIONS * self.view.last_sequence + self.made % REVISIONS,
            count=COUNT, below=below, depth=step.depth,
        )  # fmt: skip
        return made

    def look(self) -> None:
        """Holds an assembly to the laws, and takes down what is not one."""
        plan, self.looks = DAG.plan(self.view, self.budget), self.looks + 1
        tokens = plan_tokens(plan, self.view)
        assert violation(Case(plan, self.view, self.budget, tokens, DAG.declared)) is None
        self.in_order(plan)
        raw, told = steps_shown(plan)
        hidden = set(range(self.view.steps)) - raw - told
        self.back += bool(self.hidden & raw)
        if hidden and self.view.holds(max(hidden)):
            self.holes += tokens + self.view.atom(max(hidden)).tokens <= self.budget
        self.hidden = hidden
        slots = [slot for segment in plan.segments for slot in segment_slots(segment, self.view)]
        same = True
        for place, slot in enumerate(slots):
            same = same and place < len(self.before) and self.before[place] == slot.hash
            self.kept += slot.tokens if same else 0
        self.sent += tokens
        self.before = [slot.hash for slot in slots]
        if self.view.total > self.budget:
            self.uses.append(tokens / self.budget)

    @staticmethod
    def in_order(plan: Plan) -> None:
        firsts = [
            segment.summary.first_step if isinstance(segment, Summarized) else segment.first
            for segment in plan.segments
        ]
        assert firsts == sorted(firsts)


def replayed(entries: Sequence[Entry], budget: int) -> Replay:
    """A session, a reply of its model at a time."""
    replay, new = Replay(ReferenceTokens(budget)), list[Entry]()
    for entry in entries:
        if entry.traits.role == Role.ASSISTANT and new:
            replay.go_on(new)
            new = []
        new.append(entry)
    return replay


@pytest.mark.parametrize(
    ("budget", "prefix", "use"),
    [(8_000, 0.88, 0.75), (16_000, 0.93, 0.8), (32_000, 0.955, 0.8), (50_000, 0.97, 0.8),
     (100_000, 0.985, 0.75)],
)  # fmt: skip
def test_the_coding_session(budget: int, prefix: float, use: float) -> None:
    replay = replayed(real_entries(), budget)
    assert (replay.back, replay.holes) == (0, 0)
    assert replay.kept / replay.sent >= prefix
    assert median(replay.uses) >= use


@given(TURNS, st.integers(8_000, 40_000))
def test_any_session(turns: list[Turn], budget: int) -> None:
    """Of small and large steps, with long requests and short ones, none above a third of the
    budget."""
    replay = replayed(entries_of(turns), budget)
    assert (replay.back, replay.holes) == (0, 0)
