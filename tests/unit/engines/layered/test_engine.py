"""What the layered engine shows, keeps and summarizes, by the facts of PyClaw's plugin where they
hold (docs/layered.md)."""

from __future__ import annotations

from typing import Any

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.compaction.summary_request import words_of
from contextengine_server.config.schema import OptionsError, parse
from contextengine_server.context.message import Form
from contextengine_server.context.plan import Reshaped
from contextengine_server.engines.contract import CompactionGoal, NothingToDo, Said
from contextengine_server.engines.layered import ENGINE, LayeredOptions
from contextengine_server.engines.layered.findings import findings
from contextengine_server.engines.layered.forms import RESULT_TOKENS
from contextengine_server.engines.layered.sizes import (
    LEAST_TOLD,
    facts_tokens,
    limit_of,
    told_tokens,
)
from contextengine_server.engines.registration import Surroundings
from contextengine_server.engines.teller import Retelling
from contextengine_server.testing.engine.real_sessions import REAL_SHAPER
from contextengine_server.testing.engine.trial import FLOOR, trial_of
from contextengine_server.testing.engine.views import sent_slots
from contextengine_server.wire.slots import item_of
from tests.properties.replays import coding
from tests.unit.engines.layered.sessions import (
    answer,
    call,
    compacted,
    engine,
    message,
    planned,
    session,
    shown,
)

DEFAULTS = LayeredOptions()
RULE = "You must always respond in Chinese."
STORY = "The harbour was quiet that morning, and nobody knew which ship would come first. " * 12


# Options (facts 9, 11, 29, 47).


def test_the_seeds_table() -> None:
    compaction, layers = DEFAULTS.compaction, DEFAULTS.layers
    assert (compaction.enabled, compaction.max_tokens) == (True, 128_000)
    assert (compaction.reserve_ratio, compaction.strategy) == (0.3, "dag")
    assert [(one.max_tokens, one.strategy) for _, one in layers] == [
        (2_000, "keep"),
        (3_000, "summarize"),
        (2_000, "extract_facts"),
        (0, "drop"),
    ]
    assert [name for name, _ in layers] == ["critical", "important", "contextual", "transient"]
    assert limit_of(128_000, DEFAULTS) == 89_600


@pytest.mark.parametrize(
    ("available", "reserve", "limit"),
    [(128_000, 0.25, 96_000), (128_000, 0.2, 102_400), (8_000, 0.2, 6_400), (200_000, 0.3, 89_600)],
)
def test_the_limit_is_the_ceiling_less_the_reserve(
    available: int, reserve: float, limit: int
) -> None:
    options = LayeredOptions(compaction={"reserve_ratio": reserve})
    assert limit_of(available, options) == limit


@pytest.mark.parametrize(
    "wrong",
    [
        {"compaction": {"reserve_ratio": 0}},
        {"compaction": {"reserve_ratio": 1}},
        {"compaction": {"reserve_ratio": 1.5}},
        {"compaction": {"strategy": "graph"}},
        {"layers": {"vital": {"max_tokens": 5}}},
        {"layers": {"critical": {"strategy": "forget"}}},
        {"layers": {"critical": {"max_tokens": -1}}},
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionsError):
        parse(ENGINE.options, wrong)


# Layers.


def settled(rule: str = RULE) -> list[pb.Message]:
    """A session that is large enough: a rule among stories, thanks, a fact, calls."""
    return [
        message("system", "You help."),
        message("user", STORY),
        message("assistant", STORY),
        message("user", rule),
        message("assistant", "ok"),
        message("user", "Look at the file."),
        call("c1", "I look."),
        answer("c1", STORY * 3),
        message("user", "I prefer dark mode."),
        message("assistant", STORY),
        message("user", "And now?"),
    ]


def test_below_the_limit_nothing_changes() -> None:
    one, by = session(settled()), engine()
    assert not by.due(one.view, 128_000, None)
    facts = by.facts(one.view, 128_000)
    assert (facts["strategy"], facts["threshold_tokens"]) == ("dag", 89_600)
    assert facts["kept_tokens"] == one.view.atom(0).tokens, "what leads"
    goal = CompactionGoal(128_000, floor=FLOOR)
    assert by.compaction(one.view, goal) == NothingToDo("below threshold")
    assert shown(planned(one, by, 128_000))[0] == set(range(one.view.steps))


def test_above_the_limit_what_is_critical_stays_where_it_was_said() -> None:
    one, by = session(settled()), engine(max_tokens=1_000)
    assert by.due(one.view, 128_000, None)
    assert compacted(one, by, 128_000) == 2
    raw, told = shown(planned(one, by, 128_000))
    rule, newest = 3, one.view.steps - 1
    assert raw == {0, rule, newest}
    assert told == set(range(one.view.steps)) - raw
    assert [(s.first_step, s.last_step) for s in one.view.summaries] == [(1, 2), (4, newest - 1)]


def test_a_run_has_one_summary_that_is_brought_up_to_date() -> None:
    one, by = session(settled()), engine(max_tokens=1_000)
    compacted(one, by, 128_000)
    more = session([*settled(), *[message("assistant", STORY), message("user", "Go on.")]])
    one.add(more.rows[len(one.rows) :])
    goal = CompactionGoal(128_000, force=True, floor=FLOOR, said=words_of)
    step = by.compaction(one.view, goal)
    assert not isinstance(step, NothingToDo)
    assert (step.first, step.update) == (4, True)
    assert step.replaces == (one.view.summaries[-1].id,)


def test_the_newest_request_stands_between_what_was_before_it_and_what_was_done_for_it() -> None:
    work = [one for n in range(3) for one in (call(f"c{n}"), answer(f"c{n}", STORY * 2))]
    one = session([*settled(), *work, message("assistant", "Done.")])
    by, asked = engine(max_tokens=1_000), one.view.user_step
    compacted(one, by, 128_000)
    assert one.view.covering(asked) is None
    before, after = one.view.covering(asked - 1), one.view.covering(asked + 1)
    assert before is not None
    assert after is not None
    more = [message("user", "Thanks. And now the rest?"), message("assistant", STORY * 4)]
    one.add(session([*settled(), *work, message("assistant", "Done."), *more]).rows[-2:])
    compacted(one, by, 128_000, force=True)
    assert one.view.covering(asked) is not None, "it is not the newest any more"


def test_no_more_than_the_layers_may_take_together() -> None:
    """Over a session of many runs, whose summaries take all that they may."""
    rules = [f"Never use the word number {n}." for n in range(6)]
    messages = [message("user", STORY)]
    for rule in rules:
        messages += [message("user", rule)]
        for number in range(5):
            messages += [call(f"{rule}{number}"), answer(f"{rule}{number}", STORY * 4)]
    one, by = session([*messages, message("user", "Done?")]), engine(max_tokens=30_000)
    assert one.view.total > limit_of(30_000, by.options)
    compacted(one, by, 128_000)
    made = sum(summary.tokens for summary in one.view.summaries)
    assert len(one.view.summaries) == len(rules) + 1
    assert made <= told_tokens(by.options) + facts_tokens(by.options)
    assert one.view.view_tokens() <= limit_of(30_000, by.options)


def test_what_is_critical_wins_over_its_layers_budget() -> None:
    rules = [message("user", f"Rule {n}: you must never use the word {n}.") for n in range(40)]
    one = session([*rules, message("assistant", STORY), message("user", "Well?")])
    by = engine({"critical": {"max_tokens": 100}}, max_tokens=500)
    compacted(one, by, 128_000)
    raw, _ = shown(planned(one, by, 128_000))
    assert raw >= set(range(40))
    said = by.facts(one.view, 128_000)
    assert said["threshold_tokens"] == 350
    kept = sum(one.view.atom(step).tokens for step in range(40))
    assert (said["kept_tokens"], said["kept_over_layer_tokens"]) == (kept, kept - 100)


def test_what_has_no_room_is_summarized_whatever_it_is_worth() -> None:
    rules = [message("user", f"You must never use the word {n}. {STORY}") for n in range(12)]
    one = session([*rules, message("user", "Well?")])
    by = engine()
    budget = one.view.total // 3
    compacted(one, by, budget)
    raw, told = shown(planned(one, by, budget))
    assert raw | told == set(range(one.view.steps))
    assert told


def test_a_system_message_larger_than_the_budget_is_kept_and_said() -> None:
    """Fact 41; and there is no budget that its arithmetic fails at (fact 31)."""
    said = [message("user", "Hello."), message("assistant", "Hi."), message("user", "?")]
    one = session([message("system", STORY * 4), *said])
    plan = planned(one, engine(), 300)
    assert plan.over
    assert shown(plan)[0] == {0, one.view.user_step}
    assert engine().facts(one.view, 0)["threshold_tokens"] == 1


def test_a_layer_goes_by_its_strategy() -> None:
    by = engine().teller
    assert by is not None
    liking = Said("user", "I prefer dark mode.")
    told = by.told(liking)
    assert (told.read, [fact.line for fact in told.facts]) == (
        False,
        ["preference: I prefer dark mode"],
    )
    assert by.told(Said("user", "I prefer dark mode. Now look at the log.")).read, "not a fact only"
    assert by.told(Said("user", "Our staging server is slow.")).read, "no fact is found in it"
    assert not by.told(Said("assistant", "ok")).read
    assert by.told(Said("user", "Why?")) == Retelling()
    assert by.told(Said("user", RULE)).read, "it had no room, or would be kept"
    other = engine({"transient": {"strategy": "summarize"}, "contextual": {"strategy": "drop"}})
    assert other.teller is not None
    assert other.teller.told(Said("assistant", "ok")).read
    assert other.teller.told(liking) == Retelling(read=False)
    assert (other.teller.facts_tokens, other.summary_tokens) == (0, 3_000)
    kept = engine({"important": {"strategy": "keep"}})
    assert kept.summary_tokens == LEAST_TOLD, "of what says more than its facts"
    assert engine(strategy="linear").teller is None


# Strategies (facts 33, 35, 37), with different plans on the coding session.


def test_linear_keeps_the_leading_messages_and_one_summary() -> None:
    leading = [message("system", "One."), message("system", "Two.")]
    one = session([*leading, *settled()[1:], message("assistant", "Now."), message("user", STORY)])
    by = engine(strategy="linear")
    compacted(one, by, 128_000, force=True)
    slots = sent_slots(planned(one, by, 128_000), one.view)
    items = [item_of(slot.frame) for slot in slots]
    assert [item.message.parts[0].text.text for item in items[:2]] == ["One.", "Two."]
    [summary] = [item for item in items if item.HasField("summary")]
    assert summary.message.role == pb.ROLE_USER
    assert summary.message.parts[0].text.text.startswith("[Summary ")
    assert items[-1].message.parts[0].text.text == STORY, "however small the tail"


def test_the_strategies_differ_on_the_coding_session() -> None:
    plans = {}
    for strategy in ("dag", "linear", "hybrid"):
        one, by = trial_of(coding(), REAL_SHAPER), engine(strategy=strategy)
        assert by.due(one.view, 128_000, None)
        compacted(one, by, 128_000)
        plans[strategy] = shown(planned(one, by, 128_000))[0]
    tail = plans["linear"] - {one.view.user_step}
    assert len(tail) > 20, "the newest history"
    assert plans["dag"] - {max(plans["dag"])} != set(), "what was laid down"
    assert len(plans["dag"]) < len(plans["linear"]) < len(plans["hybrid"])
    assert plans["hybrid"] > plans["linear"]


# Messages in short (fact 39), and what it says of itself.


def test_a_long_result_is_cut_and_says_so() -> None:
    text = "line of a log\n" * 12_000
    one = session([message("user", "Look."), call("c1"), answer("c1", text), message("user", "?")])
    by = engine()
    plan = planned(one, by, 128_000)
    [cut] = [segment for segment in plan.segments if isinstance(segment, Reshaped)]
    [slot] = cut.slots.values()
    assert slot.form is Form.HEAD_TAIL
    assert RESULT_TOKENS * 0.9 < slot.tokens <= RESULT_TOKENS
    [part] = item_of(slot.frame).message.parts[0].tool_result.parts
    assert "characters" in part.text.text


def test_switched_off_it_compacts_only_by_force() -> None:
    one, by = session(settled()), engine(max_tokens=500, enabled=False)
    assert by.threshold == 0
    assert not by.due(one.view, 128_000, None)
    assert compacted(one, by, 128_000, force=True)


def test_its_checks_say_when_it_compacts() -> None:
    beside = Surroundings(80_000, {})
    [well] = findings(DEFAULTS, beside)
    assert "56,000 of 80,000" in well.found
    assert not well.advice
    tight = LayeredOptions(compaction={"max_tokens": 5_000})
    assert [one.advice != "" for one in findings(tight, beside)] == [False, True]
    off = LayeredOptions(compaction={"enabled": False})
    assert [one.setting for one in findings(off, beside)] == ["engine.layered.compaction.enabled"]
