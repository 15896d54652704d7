"""What a compaction of the compressor takes and leaves, by the facts of Hermes's compressor where
they hold (docs/compressor.md)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.compaction.compaction_pass import prepare
from contextengine_server.context.budget import ReferenceTokens
from contextengine_server.context.message import Form
from contextengine_server.engines.compressor import CompressorEngine, CompressorOptions
from contextengine_server.engines.compressor.sizes import (
    threshold_of,
)
from contextengine_server.engines.compressor.tail import tails
from contextengine_server.engines.contract import CompactionStep, NothingToDo
from contextengine_server.session.session import reader_of

from .sessions import Session

DEFAULTS = CompressorOptions()


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
