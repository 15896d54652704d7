"""What the compressor shows in short, and what it says of its summary, by the facts of Hermes's
compressor where they hold (docs/compressor.md)."""

from __future__ import annotations

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.compaction.compaction_pass import prepare
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.message import Form
from contextengine_server.context.plan import Summarized
from contextengine_server.engines.compressor import CompressorOptions
from contextengine_server.engines.compressor.findings import findings
from contextengine_server.engines.compressor.words import HANDOFF, HANDOFF_TOKENS
from contextengine_server.engines.contract import NothingToDo
from contextengine_server.engines.registration import Surroundings
from contextengine_server.testing.engine import views
from contextengine_server.testing.engine.real_sessions import count
from contextengine_server.tokens import TokenCounter

from .sessions import Session


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


def test_of_results_that_say_the_same_the_newest_tells_all() -> None:
    """Whatever tools said it; not what is short, not beside a picture, and nothing before a
    commit."""
    one = Session(protect_first_n=0, tail_mode="legacy", protect_last_n=0)
    one.turns(40, 100)
    one.say()
    long, short = "the same state as before, " * 60, "the same state " * 8
    first, second = one.call(says=long), one.call(says=long, path="/state")
    beside = one.call(says=long, image=True)
    little = [one.call(says=short) for _ in range(2)]
    newest = one.call(says=long)
    one.call(10)
    one.reply()
    assert set(one.shown(100_000).values()) == {Form.VERBATIM}
    one.compact(10_000, force=True)
    shown = one.shown(10_000)
    assert [shown[each] for each in (first, second)] == [Form.PLACEHOLDER] * 2
    assert all(str(newest) in one.texts[each] for each in (first, second))
    assert {shown[each] for each in (beside, *little, newest)} == {Form.VERBATIM}
    later = one.call(says=long)
    one.reply()
    assert one.shown(10_000)[newest] is Form.VERBATIM, "until the next commit"
    one.turns(20, 100)
    one.compact(10_000, force=True)
    after = one.shown(10_000)
    assert {after.get(each) for each in (first, second, newest)} <= {Form.PLACEHOLDER, None}
    assert after.get(later) in (Form.VERBATIM, None)


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
