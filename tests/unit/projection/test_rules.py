"""A valid request of each form, broken in each way that a rule forbids: that rule finds it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from contextengine_server.projection import anthropic, gemini, openai_chat, openai_responses
from contextengine_server.projection.codex import validator as codex
from contextengine_server.projection.rules import RuleFinding
from contextengine_server.projection.targets import Targets
from tests.unit.projection.breaks import (
    ANTHROPIC,
    BREAKS,
    CHAT,
    CONTENT,
    GEMINI,
    IN,
    RESPONSES,
    USER,
    Body,
    C,
    M,
    drop,
    put,
)

CASES = [
    pytest.param(name, rule, change, id=f"{rule}-{index}")
    for name, (_, _, breaks) in BREAKS.items()
    for index, (rule, change) in enumerate(breaks)
]


@pytest.mark.parametrize("name", BREAKS)
def test_the_valid_request_is_valid(name):
    body, validate, _ = BREAKS[name]
    assert [finding for finding in validate(body) if not finding.advice] == []


@pytest.mark.parametrize(("name", "rule", "change"), CASES)
def test_a_broken_request_is_found_by_the_rule_that_it_breaks(name, rule, change):
    body, validate, _ = BREAKS[name]
    broken = copy.deepcopy(body)
    change(broken)
    assert rule in {finding.rule for finding in validate(broken)}


def test_every_rule_is_broken_somewhere():
    """A12 and the prefixes of the others need an earlier request: below."""
    functions = {
        "chat": openai_chat.validator, "responses": openai_responses.validator,
        "anthropic": anthropic.validator,
        "gemini": gemini.validator, "codex": codex,
    }  # fmt: skip
    for name, module in functions.items():
        letter = BREAKS[name][2][0][0][0].lower()
        rules = {
            each.partition("_")[0].upper()
            for each in vars(module)
            if each[0] == letter and each[1:2].isdecimal()
        }
        assert rules - {"A12"} <= {rule for rule, _ in BREAKS[name][2]}, name
        assert all(getattr(module, each.lower()).__doc__ for each in rules)


def test_what_is_only_advice_is_said_to_be():
    prefill = {"messages": [USER, {"role": "assistant", "content": "I"}]}
    assert [(finding.rule, finding.advice) for finding in anthropic.validate(prefill)] == [
        ("A2", True)
    ]
    broken = copy.deepcopy(CHAT)
    broken[M][2]["tool_calls"][0]["function"]["arguments"] = "{"
    assert [(finding.rule, finding.advice) for finding in openai_chat.validate(broken)] == [
        ("C8", True)
    ]


PREFIXES: list[tuple[Callable[..., list[RuleFinding]], str, str, Body]] = [
    (openai_responses.validate, "R14", IN, RESPONSES),
    (anthropic.validate, "A12", M, ANTHROPIC),
    (gemini.validate, "G10", C, GEMINI),
]


@pytest.mark.parametrize(("validate", "rule", "key", "body"), PREFIXES)
def test_a_prefix_that_changed_is_found(validate, rule, key, body):
    def found(later: list[Any]) -> bool:
        return rule in {
            finding.rule for finding in validate({**body, key: later}, earlier=body[key])
        }

    entries = body[key]
    assert not found([*entries, entries[0]])
    assert found(entries[1:])
    assert found([{**entries[0], "role": "developer"}, *entries[1:]])


def test_marks_and_what_is_appended_to_the_last_turn_change_no_prefix():
    marked = copy.deepcopy(ANTHROPIC)
    del marked[M][2][CONTENT][3]["cache_control"]
    marked[M][2][CONTENT].append({"type": "text", "text": "more"})
    assert anthropic.validate(marked, earlier=ANTHROPIC[M]) == []


def test_a_request_that_goes_on_from_a_response_may_answer_its_calls():
    body = {"previous_response_id": "resp_1", "input": [RESPONSES[IN][4]]}
    assert openai_responses.validate(body) == []
    assert openai_responses.validate({"input": "text alone"}) == []


@pytest.mark.parametrize(
    "body",
    [
        *[None, 1, "text", [1], {}, {"messages": 1}, {"input": [None]}, {"contents": [[]]}],
        {"messages": [], "input": [], "contents": [], "items": []},
    ],
)
@pytest.mark.parametrize("name", BREAKS)
def test_whatever_is_judged_is_answered(name, body):
    BREAKS[name][1](body)


def every_place(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    for key, inner in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield from every_place(inner, (*at, key))


@pytest.mark.parametrize("odd", [None, 1, "x", [], {}, [None], [[]], {"a": 1}], ids=str)
@pytest.mark.parametrize("name", BREAKS)
def test_a_file_with_an_odd_value_anywhere_is_judged(name, odd):
    """What is checked may come from anywhere: no value in it, and no member that it lacks, is more
    than a finding."""
    body, validate, _ = BREAKS[name]
    for *way, last in (place for place in every_place(body) if place):
        for change in (put(*way, last, value=odd), drop(*way, last)):
            broken = copy.deepcopy(body)
            change(broken)
            validate(broken)


def test_an_empty_list_and_an_object_of_something_else_are_found():
    for target, body, rule in (
        ("openai-chat", {"messages": []}, "C1"),
        ("anthropic", {"system": "s", "messages": []}, "A2"),
        ("gemini", {"contents": []}, "G3"),
        ("codex", {"messages": []}, "X6"),
    ):
        assert [found.rule for found in judge(target, body)] == [rule]
    assert judge("codex", {}) == []


def judge(name: str, body: Any) -> list[RuleFinding]:
    target = Targets().named(name)
    assert target is not None
    return target.validator(body, "")
