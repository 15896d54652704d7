"""The suite of targets finds what is wrong: each defect fails the test that is there for it."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from contextengine_server.projection import anthropic, openai_chat
from contextengine_server.projection.call_ids import PLAIN, CallIdFormat
from contextengine_server.projection.model import Loss, ToolCall, ToolResult, text_of
from contextengine_server.projection.projection import Projection
from contextengine_server.projection.provider import ProviderRenderer, ProviderTask, Rendered
from contextengine_server.projection.target import Target
from contextengine_server.projection.task import Task
from contextengine_server.testing.target import TargetSuite

CHAT, CLAUDE = openai_chat.TARGET, anthropic.TARGET
NINE = CallIdFormat(re.compile(r"[a-zA-Z0-9]{9}"), prefix="", digits=9)
PAIRS = "test_a_list_cut_anywhere_is_mended"
TEXTS = "test_all_that_was_said_is_shown_and_nothing_of_it_becomes_an_instruction"
IDS = "test_ids_that_the_provider_does_not_take_are_replaced_on_both_sides"


def renders(target: Target, render: Callable[[ProviderTask], Rendered]) -> Target:
    return replace(target, renderer=ProviderRenderer(render))


def answers(target: Target, change: Callable[[Task, Projection], Projection]) -> Target:
    return replace(target, renderer=lambda own, task: change(task, target.renderer(own, task)))


def unpaired(task: ProviderTask) -> Rendered:
    """Messages as they come, calls without results and results without calls included."""
    made: list[dict[str, Any]] = []
    for item in task.items:
        for part in item.parts:
            if isinstance(part, ToolResult):
                made.append({"role": "tool", "tool_call_id": part.id, "content": "x"})
            elif isinstance(part, ToolCall):
                function = {"name": part.name, "arguments": part.arguments}
                called = {"id": part.id, "type": "function", "function": function}
                made.append({"role": "assistant", "tool_calls": [called]})
            else:
                made.append({"role": "user", "content": "x"})
    return Rendered(json.dumps(made).encode())


def one_sided(task: Task, made: Projection) -> Projection:
    """Results that carry another id than their calls."""
    messages = json.loads(made.messages_json)
    for message in messages:
        if message["role"] == "tool":
            message["tool_call_id"] += "x"
    return replace(made, messages_json=json.dumps(messages).encode())


def first_of_all(text: Callable[[Task], str]) -> Callable[[Task, Projection], Projection]:
    """A message before all others."""

    def change(task: Task, made: Projection) -> Projection:
        messages = json.loads(made.messages_json)
        messages.insert(0, {"role": "user", "content": text(task)})
        return replace(made, messages_json=json.dumps(messages).encode())

    return change


def stale(task: ProviderTask) -> Rendered:
    """What was made of a list that began with the same item, though it went on otherwise."""
    cache = task.items[0].cache if task.items else None
    if cache is None:
        return openai_chat.render(task)
    if "stale" not in cache.kept:
        cache.keep("stale", openai_chat.render(task))
    made: Rendered = cache.kept["stale"]
    return made


def without_newest(task: ProviderTask) -> Rendered:
    return openai_chat.render(replace(task, items=task.items[:-1]))


def as_instructions(task: Task, made: Projection) -> Projection:
    """All that was said, where instructions stand."""
    return replace(made, instructions="\n".join(text_of(item.parts) for item in task.items))


counter = itertools.count()
silent = replace(CHAT, validator=lambda body, model: [])


@pytest.mark.parametrize(
    ("target", "test"),
    [
        (renders(CHAT, unpaired), PAIRS),
        (renders(CHAT, unpaired), "test_random_contexts_keep_the_rules"),
        (answers(CHAT, one_sided), "test_real_sessions_keep_the_rules"),
        (answers(silent, one_sided), "test_calls_and_results_carry_the_same_id"),
        (renders(CHAT, lambda task: Rendered(b"[]")), "test_calls_and_results_carry_the_same_id"),
        (
            renders(
                replace(CHAT, call_ids=NINE),
                lambda task: openai_chat.render(replace(task, call_ids=PLAIN)),
            ),
            IDS,
        ),
        (silent, "test_the_validator_sees_what_is_wrong_with_pairs"),
        (renders(CHAT, without_newest), TEXTS),
        (answers(CHAT, as_instructions), TEXTS),
        (
            answers(CHAT, first_of_all(lambda task: "word9prompt" if task.prompt else "")),
            "test_this_turns_prompt_is_shown_once",
        ),
        (
            answers(CHAT, first_of_all(lambda task: str(next(counter)))),
            "test_equal_tasks_give_equal_bytes",
        ),
        (renders(CHAT, stale), "test_what_is_kept_of_items_is_what_would_be_made_anew"),
        (
            answers(CHAT, first_of_all(lambda task: f"{len(task.items)} messages")),
            "test_a_longer_list_begins_as_the_shorter_did",
        ),
        (
            renders(CLAUDE, lambda task: anthropic.render(replace(task, breakpoints=None))),
            "test_breakpoints_are_at_most_those_asked_for",
        ),
        (replace(CLAUDE, cache_mark=""), "test_breakpoints_are_at_most_those_asked_for"),
        (replace(CHAT, cache_mark="cache_control"), "test_breakpoints_are_at_most_those_asked_for"),
        (replace(CHAT, alternates=True), "test_random_contexts_keep_the_rules"),
        (
            answers(CHAT, lambda task, made: replace(made, losses=[Loss(99, "much", "X")])),
            "test_losses_say_where_and_what",
        ),
        (
            answers(CHAT, lambda task, made: replace(made, losses=[Loss(0, " ", "X")])),
            "test_losses_say_where_and_what",
        ),
        (
            answers(CLAUDE, lambda task, made: replace(made, warnings=[])),
            "test_an_empty_list_is_warned_of",
        ),
    ],
)
def test_a_defect_fails_the_test_that_is_there_for_it(target: Target, test: str) -> None:
    suite = type("Suite", (TargetSuite,), {"target": target})()
    sound = type("Suite", (TargetSuite,), {"target": CHAT})()
    getattr(sound, test)()
    with pytest.raises(AssertionError):
        getattr(suite, test)()


def test_every_test_of_the_suite_has_a_defect_that_fails_it() -> None:
    mark = test_a_defect_fails_the_test_that_is_there_for_it.pytestmark[0]  # type: ignore[attr-defined]
    found = {test for _, test in mark.args[1]}
    assert found == {name for name in dir(TargetSuite) if name.startswith("test_")}
