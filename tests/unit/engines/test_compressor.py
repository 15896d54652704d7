"""What a compaction of the compressor takes and leaves, and what is shown in short, by the facts of
Hermes's compressor where they hold (docs/compressor.md)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.compaction.compaction_pass import prepare
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.fold import apply, extend
from contextengine_server.context.lawful import snapshot_of
from contextengine_server.context.message import Form
from contextengine_server.context.plan import Summarized, segment_slots
from contextengine_server.engines.compressor import CompressorEngine, CompressorOptions
from contextengine_server.engines.compressor.findings import findings
from contextengine_server.engines.compressor.sizes import (
    threshold_of,
)
from contextengine_server.engines.compressor.tail import tails
from contextengine_server.engines.compressor.words import HANDOFF, HANDOFF_TOKENS
from contextengine_server.engines.contract import CompactionGoal, CompactionStep, NothingToDo
from contextengine_server.engines.registration import Surroundings
from contextengine_server.session.session import reader_of
from contextengine_server.testing.engine import views
from contextengine_server.testing.engine.real_sessions import REAL_SHAPER, count
from contextengine_server.testing.engine.trial import lawful
from contextengine_server.testing.oracle.pairs import ViewRow
from contextengine_server.tokens import TokenCounter
from contextengine_server.wire.slots import item_of

DEFAULTS = CompressorOptions()
LEGACY = CompressorOptions(tail_mode="legacy")


class Session:
    """A session that goes on."""

    def __init__(self, **options: Any) -> None:
        self.engine = CompressorEngine(CompressorOptions(**options))
        self.view, self.count, self.made = views.empty(), 0, 0

    def add(self, *messages: pb.Message) -> int:
        entries = []
        for message in messages:
            self.count += 1
            entries.append(views.entry_of(ViewRow(self.count, message, 100 * self.count), count))
        apply(self.view, extend(self.view, entries, REAL_SHAPER))
        return self.count

    def say(self, words: int = 5, role: pb.Role = pb.ROLE_USER) -> int:
        message = pb.Message(role=role)
        message.parts.add().text.text = f"said{self.count} " * words
        return self.add(message)

    def reply(self, words: int = 5) -> int:
        return self.say(words, pb.ROLE_ASSISTANT)

    def turns(self, number: int, words: int = 100) -> None:
        for _ in range(number):
            self.say(words)
            self.reply(words)

    def call(self, words: int = 100, path: str = "") -> int:
        """A file is read; the sequence of what it says."""
        id = f"c{self.count}"
        asked = pb.Message(role=pb.ROLE_ASSISTANT)
        part = asked.parts.add().tool_call
        part.call_id, part.name = id, "read_file" if path else "probe"
        part.arguments_json = b'{"path": "%s"}' % path.encode() if path else b"{}"
        answer = pb.Message(role=pb.ROLE_TOOL)
        result = answer.parts.add().tool_result
        result.call_id, result.name = id, part.name
        result.parts.add().text.text = f"line{0 if path else self.count} " * words
        return self.add(asked, answer)

    def step(self, budget: int, **goal: Any) -> CompactionStep | NothingToDo:
        goal = {"floor": 110, **goal}
        return self.engine.compaction(self.view, CompactionGoal(budget, **goal))

    def compact_step(self, budget: int, **goal: Any) -> CompactionStep:
        step = self.step(budget, **goal)
        assert isinstance(step, CompactionStep), step
        return step

    def compact(self, budget: int, **goal: Any) -> CompactionStep:
        step = self.compact_step(budget, **goal)
        self.made += 1
        below = [one for one in self.view.summaries if one.id in step.replaces]
        made, _ = views.summary(
            self.view, step.first, step.last, "word " * max(1, step.target_tokens - 100),
            created=100 * self.count + self.made, count=count, below=below, depth=step.depth,
            before=snapshot_of(self.view, self.engine.saved(self.view, ReferenceTokens(budget))),
        )  # fmt: skip
        self.view.place(made)
        return step

    def shown(self, budget: int) -> dict[int, Form]:
        """The messages shown and their forms, by sequence; 0: the summary."""
        plan = self.engine.plan(self.view, ReferenceTokens(budget))
        assert lawful(self.view, self.engine, plan, budget) is None
        slots = [slot for part in plan.segments for slot in segment_slots(part, self.view)]
        self.tokens = sum(slot.tokens for slot in slots)
        self.texts = {slot.sequence: text(slot.frame) for slot in slots}
        return {slot.sequence: slot.form for slot in slots}


def text(frame: bytes) -> str:
    parts = item_of(frame).message.parts
    return " ".join(
        [part.text.text for part in parts]
        + [one.text.text for part in parts for one in part.tool_result.parts]
    )


def test_a_session_goes_by_the_threshold_of_its_model() -> None:
    one = Session(model_thresholds={"gpt-5": 0.9, "there:small": 0.8})
    limits = {}
    for model, provider in (("gpt-5-mini", ""), ("small", "there"), ("small", "here")):
        one.view.reader = reader_of(model, provider)
        limits[model, provider] = one.engine.limit(one.view, ReferenceTokens(100_000))
    assert list(limits.values()) == [90_000, 80_000, 75_000]


def test_it_is_due_from_the_threshold_on() -> None:
    one = Session()
    one.turns(40, 100)
    total = one.view.total
    for budget, due in ((int(total / 0.85) + 5, False), (int(total / 0.85) - 5, True)):
        assert threshold_of(budget, DEFAULTS) == int(budget * 0.85)
        assert one.engine.due(one.view, ReferenceTokens(budget), None) is due
    measured = int(total / 0.85) + 100
    assert one.engine.due(one.view, ReferenceTokens(measured), ReferenceTokens(measured)) is True
    off = CompressorEngine(CompressorOptions(enabled=False))
    assert off.due(one.view, ReferenceTokens(total), ReferenceTokens(measured)) is False


def test_a_short_session_has_nothing_to_compact() -> None:
    one = Session()
    one.say(role=pb.ROLE_SYSTEM)
    for _ in range(7):
        one.say()
    assert isinstance(one.step(100_000, force=True), NothingToDo)


def test_head_and_tail_stay_and_the_summary_stands_between() -> None:
    one = Session()
    one.say(role=pb.ROLE_SYSTEM)
    one.turns(28, 70)
    step = one.compact(9_000)
    assert step.first == 4, "the leading message and the first three"
    shown = one.shown(9_000)
    assert list(shown)[:5] == [1, 2, 3, 4, 0]
    behind = [sequence for sequence in shown if sequence > 4]
    assert behind == list(range(step.last + 2, one.count + 1))
    assert len(behind) >= 8


@pytest.mark.parametrize(("first_n", "begins"), [(0, 0), (3, 3), (1, 1)])
def test_so_many_first_messages_are_the_head(first_n: int, begins: int) -> None:
    one = Session(protect_first_n=first_n)
    one.turns(28, 70)
    assert one.compact(9_000).first == begins


def test_the_head_is_summarized_by_the_second_compaction() -> None:
    one = Session()
    one.turns(40, 100)
    one.compact(9_000)
    one.turns(40, 100)
    assert one.compact(9_000).first == 0
    assert [s.first_step for s in one.view.summaries] == [0]


def test_the_summary_is_brought_up_to_date_with_what_came_since() -> None:
    one = Session(protect_first_n=0)
    one.turns(40, 100)
    first = one.compact(9_000)
    [before] = one.view.summaries
    one.turns(30, 100)
    step = one.step(9_000)
    assert isinstance(step, CompactionStep)
    assert (step.replaces, step.update, step.depth) == ((before.id,), True, 0)
    made = prepare(one.view, step)
    assert [source.id for source in made.sources] == [before.id]
    assert [entry.sequence for entry in made.entries] == list(range(first.last + 2, step.last + 2))
    assert (made.first_sequence, made.last_sequence) == (1, step.last + 1)
    assert made.gain == before.tokens + one.view.span(first.last + 1, step.last)


def test_only_what_came_since_must_be_in_memory_to_bring_it_up_to_date() -> None:
    one = Session(protect_first_n=0)
    one.turns(40, 100)
    one.compact(9_000)
    one.turns(30, 100)
    whole = prepare(one.view, one.compact_step(9_000))
    [summary] = one.view.summaries
    one.view.atoms, one.view.base = one.view.atoms[summary.last_step + 1 :], summary.last_step + 1
    part = prepare(one.view, one.compact_step(9_000))
    assert [e.sequence for e in part.entries] == [e.sequence for e in whole.entries]
    assert (part.span_start, part.span_end, part.gain) == (0, whole.span_end, whole.gain)


def test_the_newest_request_and_its_turn_stay_whole() -> None:
    one = Session(protect_first_n=0)
    one.turns(40, 100)
    asked = one.say(20)
    for _ in range(12):
        one.call(30)
    step = one.compact(9_000)
    assert step.last < one.view.user_step
    shown = one.shown(9_000)
    assert all(sequence in shown for sequence in range(asked, one.count + 1))


def test_so_many_of_the_users_newest_messages_stay() -> None:
    cuts = {}
    for number in (1, 12):
        one = Session(protect_first_n=0, min_tail_user_messages=number)
        one.turns(60, 70)
        for _ in range(15):
            one.say(10)
            for _ in range(5):
                one.call(50)
        cuts[number] = one.compact(20_000).last
        assert len([step for step in one.view.users if step > cuts[number]]) >= number
    assert cuts[12] < cuts[1]


def test_a_turn_that_is_over_is_not_parted() -> None:
    one = Session(protect_first_n=0)
    for _ in range(16):
        one.say(10)
        one.call(120)
        one.call(120)
        one.reply(10)
    assert one.view.atom(one.compact(9_000).last + 1).user


def test_a_turn_larger_than_the_budget_is_cut_and_the_request_stays() -> None:
    one = Session()
    asked = one.say(20)
    for _ in range(45):
        one.call(350)
    assert one.view.total > 30_000
    step = one.compact(16_000)
    assert step.last > one.view.user_step
    shown = one.shown(16_000)
    assert shown[asked] is Form.VERBATIM
    assert shown[one.count] is Form.VERBATIM
    assert one.tokens < 8_000


@given(st.integers(2_000, 60_000), st.integers(1, 20_000), st.integers(0, 2))
def test_what_stays_reaches_no_less_far_back_in_a_larger_budget(
    budget: int, more: int, kind: int
) -> None:
    small, large = (next(tails(KINDS[kind], size, DEFAULTS)) for size in (budget, budget + more))
    assert large <= small


def _kind(kind: int) -> Any:
    one = Session()
    for turn in range(60):
        one.say(10 + turn % 7 * 20)
        for _ in range((turn * kind) % 5):
            one.call(20 + turn % 5 * 100)
        one.reply(40)
    return one.view


KINDS = [_kind(kind) for kind in range(3)]


# Forms.


def test_the_older_of_two_like_reads_is_a_reference_once_a_summary_was_made() -> None:
    one = Session(protect_first_n=0, tail_mode="legacy", protect_last_n=0)
    one.turns(40, 100)
    one.say()
    older, newer = one.call(300, "/a"), one.call(300, "/a")
    one.call(10)
    one.reply()
    assert set(one.shown(100_000).values()) == {Form.VERBATIM}
    one.compact(10_000, force=True)
    shown = one.shown(10_000)
    assert (shown[older], shown[newer]) == (Form.PLACEHOLDER, Form.VERBATIM)
    assert str(newer) in one.texts[older]


def test_large_results_of_all_but_the_newest_rounds_are_shown_in_short() -> None:
    """A turn of thirty rounds stays, its results in short."""
    forms = {}
    for mode in ("lean", "legacy"):
        one = Session(protect_first_n=0, tail_mode=mode, target_ratio=0.4)
        one.turns(100, 100)
        asked = one.say()
        results = [one.call(250) for _ in range(10)]
        small = one.call(20)
        one.compact(32_000)
        shown = one.shown(32_000)
        assert shown[asked] is Form.VERBATIM
        assert shown[small] is Form.VERBATIM
        forms[mode] = [shown[each] for each in results]
    assert forms["legacy"] == [Form.VERBATIM] * 10
    assert forms["lean"] == [Form.PLACEHOLDER] * 5 + [Form.VERBATIM] * 5


def test_what_is_in_short_stays_so_over_the_next_compaction() -> None:
    one = Session(protect_first_n=0)
    one.turns(100, 100)
    one.say()
    results = [one.call(250) for _ in range(10)]
    one.compact(32_000)
    before = {s for s, form in one.shown(32_000).items() if form is Form.PLACEHOLDER}
    assert before & set(results)
    one.turns(14, 100)
    one.compact(32_000, force=True)
    after = one.shown(32_000)
    assert before & after.keys()
    assert all(after[s] is Form.PLACEHOLDER for s in before if s in after)


def test_large_results_go_early_where_that_was_asked_for() -> None:
    """At ticks, from the size on that was said, behind the newest messages; and for good."""
    one = Session(
        protect_first_n=0,
        tail_mode="legacy",
        protect_last_n=4,
        proactive_prune_tokens=6_000,
        proactive_prune_min_result_chars=2_000,
        proactive_prune_min_reclaim_tokens=1_500,
    )
    one.say()
    results, sizes = [], []
    for _ in range(14):
        results.append(one.call(600))
        small = one.call(20)
        forms = one.shown(100_000)
        short = [each for each in results if forms[each] is Form.PLACEHOLDER]
        assert forms[small] is Form.VERBATIM
        assert short == results[: len(short)]
        if short:
            assert one.view.total >= 6_000
            assert short[-1] <= one.count - 4
        sizes.append(len(short))
    assert sizes == sorted(sizes)
    assert 2 <= len(set(sizes)) < 14, "several at a time"
    one.turns(30, 60)
    one.compact(20_000, force=True)
    after = one.shown(20_000)
    assert not [each for each in results[: sizes[-1]] if after.get(each) is Form.VERBATIM]


def test_a_first_message_that_answers_nothing_is_no_newest_one() -> None:
    """Its step holds no message, even where the host's own summary ends with it."""
    one = Session(
        proactive_prune_tokens=1,
        proactive_prune_min_reclaim_tokens=1,
        proactive_prune_min_result_chars=200,
    )
    orphan = pb.Message(role=pb.ROLE_TOOL)
    orphan.parts.add().tool_result.call_id = "of nothing"
    one.add(orphan)
    made, _ = views.summary(one.view, 0, 0, "word " * 20, created=101, count=count)
    one.view.place(made)
    one.say()
    result = one.call(300)
    one.turns(20)
    one.call(300)
    assert one.shown(100_000)[result] is Form.PLACEHOLDER


@pytest.mark.parametrize(("mode", "cap"), [("lean", 1), ("lean", 15_000), ("legacy", 1)])
def test_long_answers_are_cut_from_a_compaction_on(mode: str, cap: int) -> None:
    """Those that stood before the newest step then, where the mode is lean, for good; what the user
    says is not cut for it."""
    one = Session(protect_first_n=0, tail_mode=mode, tail_assistant_max_chars=cap, target_ratio=0.1)
    one.turns(100, 100)
    asked, answer = one.say(2_000), one.reply(2_000)
    newest = one.reply(2_000)
    assert one.shown(100_000)[answer] is Form.VERBATIM
    one.compact(100_000, force=True)
    later, last = one.reply(2_000), one.say()
    shown = one.shown(100_000)
    assert [shown[each] for each in (asked, newest, later, last)] == [Form.VERBATIM] * 4
    assert shown[answer] is (Form.HEAD_TAIL if mode == "lean" else Form.VERBATIM)
    if mode == "lean":
        assert max(12_000, cap) * 0.9 < len(one.texts[answer]) < max(12_000, cap) * 1.1


def test_nothing_is_in_short_where_everything_is_protected() -> None:
    one = Session()
    one.say()
    one.call(5_000)
    one.reply()
    assert isinstance(one.step(100_000, force=True), NothingToDo)
    assert set(one.shown(100_000).values()) == {Form.VERBATIM}


# Around it.


def test_the_handoff_is_said_while_the_summary_is_shown() -> None:
    one = Session()
    assert one.engine.addition([]) == ""
    one.turns(40, 100)
    one.compact(9_000)
    plan = one.engine.plan(one.view, ReferenceTokens(9_000))
    assert [type(part) for part in plan.segments].count(Summarized) == 1
    assert one.engine.addition(plan.summaries) == HANDOFF
    for encoding in ("o200k_base", "cl100k_base"):
        assert TokenCounter(encoding).count_text(HANDOFF) <= HANDOFF_TOKENS


def test_a_summary_is_never_larger_than_what_it_stands_for() -> None:
    one = Session(protect_first_n=0)
    one.turns(12, 60)
    step = one.compact_step(2_000)
    assert step.target_tokens < prepare(one.view, step).gain


def test_doctor_says_when_it_compacts_and_what_changes_nothing() -> None:
    beside = Surroundings(81_408, {})
    [well] = findings(CompressorOptions(), beside)
    assert "64,000 of 81,408" in well.found
    assert not well.advice
    off, no_use = findings(CompressorOptions(enabled=False, max_attempts=5), beside)
    assert off.setting == "engine.compressor.enabled"
    assert no_use.setting == "engine.compressor.maxAttempts"
    assert no_use.advice
