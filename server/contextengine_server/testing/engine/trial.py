"""A session under trial: the view that an engine plans over, and the same session as the oracles
know it, which judge the plan."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from contextengine_server.compaction.summary_request import words_of
from contextengine_server.context.budget import ReferenceTokens, cell
from contextengine_server.context.eviction import CommitSnapshot
from contextengine_server.context.fold import apply, extend
from contextengine_server.context.lawful import snapshot_of
from contextengine_server.context.laws.case import Case, Violation
from contextengine_server.context.laws.check import violation
from contextengine_server.context.plan import Plan, Summarized, plan_tokens
from contextengine_server.context.view import View
from contextengine_server.engines.contract import CompactionGoal, Engine, NothingToDo
from contextengine_server.testing.oracle.assembly import broken
from contextengine_server.testing.oracle.known import Known, SentList
from contextengine_server.testing.oracle.pairs import CoveredRange, ViewRow, WholeList, listing
from contextengine_server.testing.oracle.summaries import Covering
from contextengine_server.wire.slots import WireShaper

from .views import SHAPER, empty, entry_of, items, sent_slots, summary

FLOOR = 160
"""What the smallest summary costs, about."""


@dataclass
class Trial:
    """A view, and the same session as the oracles know it."""

    view: View
    rows: list[ViewRow]
    shaper: WireShaper = SHAPER
    stretches: list[CoveredRange] = field(default_factory=list)
    coverings: list[Covering] = field(default_factory=list)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        steps = [(atom.first, atom.tokens) for atom in self.view.atoms]
        made = [(s.first_step, s.last_step, s.tokens) for s in self.view.summaries]
        printer.text(f"(first, tokens) {steps}, summaries {made}, rows {self.rows}")

    def listing(self) -> WholeList:
        return listing(self.rows, self.stretches)

    def add(self, rows: Sequence[ViewRow]) -> None:
        """The session goes on."""
        entries = [entry_of(row, self.shaper.count) for row in rows]
        apply(self.view, extend(self.view, entries, self.shaper))
        self.rows = [*self.rows, *rows]

    def compact(
        self,
        first: int,
        last: int,
        body: str,
        replaces: Sequence[str] = (),
        depth: int = 0,
        before: CommitSnapshot | None = None,
    ) -> None:
        """A summary over the steps first to last is committed, in place of others. `before`: the
        view then, where messages are shown in other forms."""
        newest = max((one.created for one in self.view.covered), default=0)
        created = max(self.rows[-1].created, newest) + 1
        below = [s for s in self.view.summaries if s.id in replaces]
        made, covering = summary(
            self.view,
            first,
            last,
            body,
            created=created,
            count=self.shaper.count,
            below=below,
            depth=depth,
            before=before,
        )
        self.view.place(made)
        self.coverings = [*(c for c in self.coverings if c.id not in replaces), covering]
        self.stretches = [
            CoveredRange(first, last, created) for first, last, created, _ in self.view.stretches
        ]

    def compaction(
        self,
        engine: Engine,
        available: int,
        *,
        force: bool = False,
        reached: bool = False,
        written: float = 1.0,
        spare: int = FLOOR,
    ) -> bool:
        """One pass of the engine's compaction, with a summarizer that writes as many words as this
        share of the tokens that it may, less so many; False: there is none."""
        goal = CompactionGoal(available, force=force, floor=FLOOR, reached=reached, said=words_of)
        step = engine.compaction(self.view, goal)
        if isinstance(step, NothingToDo):
            return False
        before = self.view.view_tokens()
        body = "word " * max(1, int(step.target_tokens * written) - spare)
        self.compact(
            step.first,
            step.last,
            body.strip(),
            step.replaces,
            step.depth,
            snapshot_of(self.view, engine.saved(self.view, ReferenceTokens(available))),
        )
        assert self.view.view_tokens() < before, "a compaction that does not shrink the view"
        return True

    def known(self, engine: Engine, budget: int, *, view_of: WholeList | None = None) -> Known:
        """What the oracles are told; the listing may be handed in where it is worked out
        already."""
        return Known(
            rows=self.rows,
            listing=view_of or self.listing(),
            budget=budget,
            tail=engine.declared.tail_steps,
            forms=frozenset(int(form) for form in engine.declared.forms),
            evicts=engine.declared.evicts,
            coverings=self.coverings,
            costs={atom.first: atom.tokens for atom in self.view.atoms},
            reasoning_may_go=self.view.reader.reasoning_may_go,
        )


def trial_of(rows: Sequence[ViewRow], shaper: WireShaper = SHAPER) -> Trial:
    """A session that was not compacted."""
    one = Trial(empty(), [], shaper)
    one.add(rows)
    return one


def lawful(view: View, engine: Engine, plan: Plan, budget: int) -> Violation | None:
    """What the core's laws say of a plan."""
    tokens, may_go = plan_tokens(plan, view), view.reader.reasoning_may_go
    return violation(Case(plan, view, budget, tokens, engine.declared, may_go))


def judged(one: Trial, known: Known, plan: Plan) -> list[tuple[int, str]]:
    """What the oracles say of it."""
    return broken(known, SentList(items(sent_slots(plan, one.view)), over=plan.over))


def hold(
    one: Trial, engine: Engine, budget: int, reserved: int = 0, view_of: WholeList | None = None
) -> Plan:
    """Plans, and fails unless the laws and the oracles have nothing to say."""
    room = cell(budget)
    plan = engine.plan(one.view, room, reserved)
    broke = lawful(one.view, engine, plan, room - reserved)
    assert broke is None, (str(broke), engine.id, engine.declared, room, outline(plan))
    known = one.known(engine, room - reserved, view_of=view_of)
    wrong = judged(one, known, plan)
    assert not wrong, (wrong, engine.id, engine.declared, room, outline(plan))
    assert plan_tokens(plan, one.view) == sum(slot.tokens for slot in sent_slots(plan, one.view))
    return plan


def outline(plan: Plan) -> str:
    """A plan in a line, for the report of a failure."""
    segments = [
        f"S{s.summary.first_step}-{s.summary.last_step}"
        if isinstance(s, Summarized)
        else f"{s.first}-{s.last}"
        for s in plan.segments
    ]
    return f"{' '.join(segments)} cut {plan.cut} {plan.rule}{' over' if plan.over else ''}"


def budgets(tokens: int, shares: Sequence[int]) -> list[int]:
    """Budgets of so many hundredths of the session."""
    return [max(1, tokens * share // 100) for share in shares]


SHARES = (
    1,
    2,
    3,
    4,
    6,
    8,
    10,
    12,
    15,
    18,
    21,
    25,
    29,
    33,
    37,
    41,
    45,
    50,
    55,
    60,
    65,
    70,
    75,
    80,
    85,
    90,
    95,
    100,
    110,
    120,
)
"""Thirty budgets, from 1 % to 120 % of a session."""


def some(shares: Sequence[int], number: int, seed: int) -> list[int]:
    """A few of them, others at every seed."""
    return random.Random(seed).sample(list(shares), number)
