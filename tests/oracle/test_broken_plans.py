"""Each law broken in each way we could think of: the law itself says so over the plan's segments,
and its oracle over the list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.laws.case import Case
from contextengine_server.context.laws.check import violation
from contextengine_server.context.message import Form, Slot
from contextengine_server.context.plan import (
    Declared,
    Keep,
    Plan,
    Reshaped,
    Segment,
    Summarized,
    plan_tokens,
)
from contextengine_server.context.scope import Scope
from contextengine_server.context.view import View
from contextengine_server.testing.engine.random_sessions import call, reasoning, result, text
from contextengine_server.testing.engine.trial import Trial, trial_of
from contextengine_server.testing.engine.views import SCOPE, count, items, sent_slots, summary
from contextengine_server.testing.oracle.assembly import broken
from contextengine_server.testing.oracle.known import SentList
from contextengine_server.testing.oracle.pairs import ViewRow
from contextengine_server.wire.bounded import cut_texts
from contextengine_server.wire.slots import frame, origin_sequence

PLACEHOLDER, HEAD_TAIL, WITHOUT_REASONING = Form.PLACEHOLDER, Form.HEAD_TAIL, Form.WITHOUT_REASONING
STRIPPED_TAGS = Form.STRIPPED_TAGS
DECLARED = Declared(tail_steps=3, forms=frozenset({PLACEHOLDER, HEAD_TAIL, WITHOUT_REASONING}))
PLENTY = 1_000_000


def message(sequence: int, role: pb.Role, *parts: pb.Part, pinned: bool = False) -> ViewRow:
    labels = {"pinned": "true"} if pinned else {}
    return ViewRow(
        sequence, pb.Message(id=f"m{sequence}", role=role, parts=parts, labels=labels), 2 * sequence
    )


def history() -> list[ViewRow]:
    """Steps 0 to 9, the last with a call that is still open."""
    return [
        message(1, pb.ROLE_SYSTEM, text(10, "policy")),  # step 0, leads
        message(2, pb.ROLE_USER, text(10, "first question")),  # 1
        message(
            3, pb.ROLE_ASSISTANT, reasoning(0, 20, "thought"), text(10, "words"), call("a")
        ),  # 2
        message(4, pb.ROLE_TOOL, result("a", 100, "found")),
        message(5, pb.ROLE_USER, text(10, "remember this"), pinned=True),  # 3
        message(6, pb.ROLE_ASSISTANT, text(10, "so noted")),  # 4
        message(7, pb.ROLE_ASSISTANT, text(10, "and more")),  # 5
        message(8, pb.ROLE_USER, text(10, "newest question")),  # 6
        message(9, pb.ROLE_ASSISTANT, reasoning(1, 20, "plan"), call("a")),  # 7
        message(10, pb.ROLE_TOOL, result("a", 50, "seen")),
        message(11, pb.ROLE_ASSISTANT, text(10, "between")),  # 8
        message(
            12, pb.ROLE_ASSISTANT, reasoning(0, 20, "go on"), call("a"), call("b")
        ),  # 9, pending
        message(13, pb.ROLE_TOOL, result("a", 50, "half")),
    ]


def settled() -> list[ViewRow]:
    """The same with the last call answered: nothing is pending."""
    return [*history(), message(14, pb.ROLE_TOOL, result("b", 50, "whole"))]


def formed(view: View, sequence: int, form: Form) -> Slot:
    """A message in another form."""
    entry = next(e for atom in view.atoms for e in atom.entries if e.sequence == sequence)
    shown = pb.Message.FromString(entry.body)
    shown.ClearField("native")
    kept = [
        part
        for part in shown.parts
        if form != Form.WITHOUT_REASONING or part.WhichOneof("kind") != "reasoning"
    ]
    del shown.parts[:]
    shown.parts.extend(kept)
    back = f"[left out; expand sequence {sequence} to see it]"
    for part in shown.parts:
        kind = part.WhichOneof("kind")
        if form == Form.PLACEHOLDER and kind == "tool_result":
            part.tool_result.parts[0].text.text = back
        elif form == Form.PLACEHOLDER and kind in ("text", "reasoning"):
            getattr(part, kind).text = back
        elif form == Form.HEAD_TAIL and kind == "reasoning":
            part.reasoning.text = "head … tail"
    if form == Form.HEAD_TAIL:
        cut_texts(shown, 2, sequence)
    body = shown.SerializeToString(deterministic=True)
    tokens = 5
    return Slot(
        sequence,
        form,
        tokens,
        b"0" * 16,
        frame(entry.id, origin_sequence(sequence), b"0" * 16, tokens, form, body),
    )


def reshaped(view: View, step: int, sequence: int, form: Form) -> Reshaped:
    return Reshaped(step, step, "masked", {sequence: formed(view, sequence, form)})


def keep(first: int, last: int) -> Keep:
    return Keep(first, last, "kept")


Piece = tuple[int, int] | tuple[int, int, Form] | str


@dataclass(frozen=True)
class Break:
    """A plan that breaks a law, and what must notice it."""

    law: int
    how: str
    pieces: list[Piece]
    rows: Callable[[], list[ViewRow]] = history
    budget: int = PLENTY
    over: bool = False
    declared: Declared = DECLARED
    reasoning_may_go: bool = False
    scope: Scope = SCOPE
    covers: tuple[tuple[int, int], ...] = ()


def segment(one: Trial, piece: Piece) -> Segment:
    """(first, last): kept. (step, sequence, form): one message of the step in a form. S0: the first
    summary."""
    if piece == "foreign":
        return Summarized(summary(one.view, 4, 5, "it was retired", created=99, id="gone")[0])
    if isinstance(piece, str):
        return Summarized(one.view.summaries[int(piece[1:])])
    if len(piece) == 2:
        return keep(*piece)
    return reshaped(one.view, *piece)


BREAKS = [
    # Law 1: pairs.
    Break(1, "a step is shown twice", [(0, 2), (2, 9)]),
    Break(1, "a range is shown twice", [(0, 9), (7, 8)]),
    Break(1, "later steps stand before earlier ones", [(3, 9), (0, 2)]),
    Break(1, "a summary stands behind what it covers", [(0, 5), "S0", (6, 9)], covers=((1, 2),)),
    Break(1, "a summary stands before its place", ["S0", (0, 0), (3, 9)], covers=((1, 2),)),
    Break(1, "a summary is shown twice", [(0, 0), "S0", "S0", (3, 9)], covers=((1, 2),)),
    Break(1, "summaries change places", [(0, 0), "S1", "S0", (6, 9)], covers=((1, 2), (4, 5))),
    # Law 2: pending.
    Break(2, "open calls are left out", [(0, 8)]),
    Break(2, "what is open is masked", [(0, 8), (9, 13, PLACEHOLDER)]),
    Break(2, "what is open lost its reasoning", [(0, 8), (9, 12, WITHOUT_REASONING)],
    reasoning_may_go=True),
    Break(2, "what is open is bounded", [(0, 8), (9, 13, HEAD_TAIL)]),
    # Law 3: reasoning.
    Break(3, "signed reasoning is cut", [(0, 1), (2, 3, HEAD_TAIL), (3, 9)]),
    Break(3, "redacted reasoning is cut", [(0, 6), (7, 9, HEAD_TAIL), (8, 9)]),
    Break(3, "reasoning is left out where the provider wants it", [(0, 1), (2, 3,
    WITHOUT_REASONING), (3, 9)]),
    Break(3, "reasoning is left out inside the open loop", [(0, 6), (7, 9, WITHOUT_REASONING), (8,
    9)], reasoning_may_go=True),
    # Law 4: intent.
    Break(4, "the newest user message is evicted", [(0, 0), (3, 3), (7, 9)]),
    Break(4, "the newest user message is masked", [(0, 5), (6, 8, PLACEHOLDER), (7, 9)]),
    Break(4, "the newest user message is bounded", [(0, 5), (6, 8, HEAD_TAIL), (7, 9)]),
    Break(4, "the newest user message is only in a summary", [(0, 3), "S0", (7, 9)], covers=((4,
    6),)),
    Break(4, "the leading message is evicted", [(1, 9)]),
    Break(4, "the leading message is masked", [(0, 1, PLACEHOLDER), (1, 9)]),
    Break(4, "a pinned message is evicted", [(0, 2), (4, 9)]),
    Break(4, "a pinned message is only in a summary", [(0, 1), "S0", (6, 9)], covers=((2, 5),)),
    Break(4, "a pinned message is masked", [(0, 2), (3, 5, PLACEHOLDER), (4, 9)]),
    # Law 5: budget.
    Break(5, "too much, and nothing says so", [(0, 9)], budget=300),
    Break(5, "too much by one token", [(0, 9)], budget=-1),
    Break(5, "over, with a step that could go", [(0, 0), (3, 3), (6, 9)], budget=10, over=True),
    Break(5, "over, with a summary that could go", [(0, 0), "S0", (3, 3), (6, 6), (9, 9)],
    budget=10, over=True, covers=((1, 2),)),
    # Law 6: tail.
    Break(6, "a step of the tail is evicted although it fits", [(0, 7), (9, 9)]),
    Break(6, "the oldest step of the tail is evicted although it fits", [(0, 6), (8, 9)]),
    Break(6, "a step of the tail is evicted although it just fits", [(0, 0), (3, 3), (6, 6), (8,
    9)], budget=-3),
    Break(6, "the newest step is evicted", [(0, 8)], rows=settled),
    Break(6, "a step of the tail goes before an older one", [(0, 0), (3, 3), (6, 7), (9, 9)],
    budget=-2),
    Break(6, "a step of the tail is masked", [(0, 6), (7, 10, PLACEHOLDER), (8, 9)]),
    Break(6, "the newest step is masked", [(0, 8), (9, 14, PLACEHOLDER)], rows=settled),
    # Law 7: honesty.
    Break(7, "a summary that the view has not", [(0, 3), "foreign", (6, 9)]),
    Break(7, "a form that was not declared", [(0, 3), (4, 6, STRIPPED_TAGS), (5, 9)]),
    Break(7, "forms of an engine that declared none", [(0, 3), (4, 6, PLACEHOLDER), (5, 9)],
    declared=Declared(3)),
    # Law 8: scope.
    Break(8, "stored rows without an agent", [(0, 9)], scope=Scope("tenant", "", "session")),
    Break(8, "stored rows without a session", [(0, 9)], scope=Scope("tenant", "agent", "")),
    Break(8, "stored rows without a tenant", [(0, 9)], scope=Scope("", "agent", "session")),
]  # fmt: skip


def judge(one: Trial, broke: Break) -> tuple[int | None, list[tuple[int, str]]]:
    """The law that the segments break, and all that the list as it is sent breaks."""
    case = case_of(one, broke)
    found = violation(case)
    known = replace(
        known_of(one, broke, case.budget),
        complete_scope=broke.scope.complete,
        reasoning_may_go=broke.reasoning_may_go,
    )
    return (found.law if found else None), broken(
        known, SentList(items(sent_slots(case.plan, case.view)), over=case.plan.over)
    )


def case_of(one: Trial, broke: Break) -> Case:
    """The plan as the laws are given it."""
    view = replace(one.view, scope=broke.scope)
    plan = Plan(tuple(segment(one, piece) for piece in broke.pieces), over=broke.over)
    tokens = plan_tokens(plan, view)
    # -1: one token too few. -2: exactly what the plan takes. -3, -4: room for step 7 as well, and
    # one token less than that.
    more = view.atom(7).tokens
    budget = {-1: tokens - 1, -2: tokens, -3: tokens + more, -4: tokens + more - 1}.get(
        broke.budget, broke.budget
    )
    return Case(plan, view, budget, tokens, broke.declared, broke.reasoning_may_go)


def known_of(one: Trial, broke: Break, budget: int):
    class Stand:
        declared = broke.declared

    return one.known(Stand(), budget)  # type: ignore[arg-type]


def set_up(broke: Break) -> Trial:
    one = trial_of(broke.rows())
    for first, last in broke.covers:
        one.compact(first, last, "what was said")
    return one


@pytest.mark.parametrize("broke", BREAKS, ids=lambda broke: f"law {broke.law}: {broke.how}")
def test_a_broken_law_is_noticed_by_the_law_and_by_its_oracle(broke: Break) -> None:
    by_segments, by_list = judge(set_up(broke), broke)
    assert by_segments == broke.law
    assert by_list, "the oracle noticed nothing"
    assert by_list[0][0] == broke.law, by_list


SOUND = [
    Break(0, "everything", [(0, 9)]),
    Break(0, "what no law keeps is evicted", [(0, 0), (3, 3), (6, 9)]),
    Break(0, "an old result is masked", [(0, 1), (2, 4, PLACEHOLDER), (3, 9)]),
    Break(0, "a message of the tail is bounded", [(0, 6), (7, 10, HEAD_TAIL), (8, 9)]),
    Break(0, "old reasoning is left out where that is accepted", [(0, 1), (2, 3,
    WITHOUT_REASONING), (3, 9)], reasoning_may_go=True),
    Break(0, "a summary in place of what it covers", [(0, 0), "S0", (3, 9)], covers=((1, 2),)),
    Break(0, "a pinned message beside its summary", [(0, 0), "S0", (3, 3), (6, 9)], covers=((1,
    5),)),
    Break(0, "over, with what no law lets go", [(0, 0), (3, 3), (6, 6), (9, 9)], budget=10,
    over=True),
    Break(0, "a tail that cannot fit gives up its old end", [(0, 0), (3, 3), (6, 6), (8, 9)],
    budget=-2),
    Break(0, "a step of the tail that just does not fit is given up", [(0, 0), (3, 3), (6, 6), (8,
    9)], budget=-4),
    Break(0, "legacy shows everything over budget", [(0, 9)], budget=10, over=True,
    declared=Declared(1, evicts=False)),
]  # fmt: skip


@pytest.mark.parametrize("sound", SOUND, ids=lambda sound: sound.how)
def test_what_no_law_forbids_is_let_pass(sound: Break) -> None:
    assert judge(set_up(sound), sound) == (None, [])


NOT_THERE: list[tuple[str, Callable[[View], list[Segment]]]] = [
    ("an empty range", lambda view: [keep(0, 3), keep(5, 4), keep(5, 9)]),
    ("a step that does not exist", lambda view: [keep(0, 10)]),
    ("a step before the first", lambda view: [keep(-1, 9)]),
]


@pytest.mark.parametrize(
    ("how", "segments"), NOT_THERE, ids=lambda value: value if isinstance(value, str) else ""
)
def test_law_1_refuses_ranges_that_name_nothing(
    how: str, segments: Callable[[View], list[Segment]]
) -> None:
    view = trial_of(history()).view
    found = violation(Case(Plan(tuple(segments(view))), view, PLENTY, 0, DECLARED))
    assert found is not None
    assert found.law == 1


def test_law_1_refuses_steps_that_were_not_read() -> None:
    view = trial_of(history()).view
    window = replace(
        view, atoms=view.atoms[5:], base=5, anchors={0: view.atoms[0], 3: view.atoms[3]}
    )
    sound = Plan((keep(0, 0), keep(3, 3), keep(6, 9)))
    assert violation(Case(sound, window, PLENTY, plan_tokens(sound, window), DECLARED)) is None
    for segments in (
        [keep(0, 0), keep(2, 3), keep(6, 9)],
        [keep(0, 3), keep(6, 9)],
        [keep(0, 0), keep(3, 9)],
    ):
        found = violation(Case(Plan(tuple(segments)), window, PLENTY, 0, DECLARED))
        assert found is not None
        assert (found.law, "were not read" in found.how) == (1, True)


def test_the_lowest_broken_law_is_named() -> None:
    one = trial_of(history())
    plan = Plan((keep(1, 2), keep(2, 3)))
    found = violation(Case(plan, one.view, 1, plan_tokens(plan, one.view), DECLARED))
    assert found is not None
    assert str(found).startswith("law 1 (pairs): ")


def test_tokens_of_a_plan_are_those_of_its_items() -> None:
    one = trial_of(history())
    one.compact(4, 5, "what was said")
    for segment in (
        keep(2, 8),
        Summarized(one.view.summaries[0]),
        reshaped(one.view, 7, 10, Form.HEAD_TAIL),
    ):
        plan = Plan((segment,))
        shown = sent_slots(plan, one.view)
        assert plan_tokens(plan, one.view) == sum(slot.tokens for slot in shown)
    assert count("[7] words") == 8
