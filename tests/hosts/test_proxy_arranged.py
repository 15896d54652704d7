"""How the proxy arranges what it sends: in an order, and in messages, that each API takes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from contextengine.formats import from_anthropic, from_openai
from contextengine_proxy.dialects.anthropic import DIALECT as ANTHROPIC
from contextengine_proxy.dialects.chat import DIALECT as CHAT
from contextengine_proxy.dialects.dialect import OPENER, Entry
from tests.hosts.providers import Json


def test_anthropics_list_begins_with_the_user_and_alternates_around_what_is_ours() -> None:
    """And a `system` message, as Claude Code sends them, stands behind the user's and before the
    model's, or last: the API refuses any other, and its neighbours may be left out."""

    def entry(role: str, words: str, ours: bool) -> Entry:
        [message] = from_anthropic([{"role": role, "content": words}])
        return Entry(message.native.json.decode(), ours, message)

    lists = [
        [entry("assistant", "a", False), entry("user", "b", False)],
        [entry("user", "sum", True), entry("user", "b", False), entry("assistant", "c", False)],
        [entry("user", "a", False), entry("user", "b", False)],
        [entry("user", "sum", True), entry("system", "a", False), entry("user", "b", False)],
        [entry("user", "sum", True), entry("user", "a", False), entry("user", "b", True)],
        [entry("system", "a", False), entry("assistant", "b", False)],
        [entry("user", "a", False), entry("system", "b", False), entry("assistant", "c", False)],
        [entry("assistant", "a", False), entry("system", "b", False), entry("user", "c", False)],
        [entry("user", "a", False), entry("system", "b", False)],
    ]
    arranged = [[json.loads(one) for one in ANTHROPIC.arranged(one)] for one in lists]
    assert [[one["role"] for one in each] for each in arranged] == [
        ["user", "assistant", "user"],
        ["user", "assistant"],
        ["user", "user"],
        ["user"],
        ["user"],
        ["user", "assistant"],
        ["user", "system", "assistant"],
        ["user", "assistant", "user"],
        ["user", "system"],
    ]
    assert [block["text"] for block in arranged[1][0]["content"]] == ["sum", "b"]
    assert [block["text"] for block in arranged[3][0]["content"]] == ["sum", "a", "b"]
    assert [block["text"] for block in arranged[4][0]["content"]] == ["sum", "a", "b"]
    assert arranged[5][0] == {"role": "user", "content": "a"}


def test_a_list_of_chat_completions_alternates_around_what_is_ours() -> None:
    """Templates of many models refuse two messages of the user side by side, or the model first."""

    def entry(role: str, words: str | list[Json], ours: bool, **more: object) -> Entry:
        element = {"role": role, "content": words, **more}
        [message] = from_openai([element])
        return Entry(json.dumps(element), ours, message)

    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    result = entry("tool", "found", False, tool_call_id="c1")
    lists = [
        [entry("assistant", "a", False), entry("user", "b", False)],
        [entry("user", "sum", True), entry("user", "b", False), result],
        [entry("user", "a", False), entry("user", "b", False)],
        [entry("user", "sum", True), entry("system", "a", False), entry("user", "b", False)],
        [entry("user", "sum", True), entry("user", "a", False), entry("user", "b", True)],
        [entry("user", "sum", True), entry("user", [picture], False)],
        [result, entry("user", "note", True), entry("assistant", "a", True)],
        [entry("user", "sum", True), entry("user", "a", False), entry("user", "b", False)],
        [entry("user", "sum", True), entry("user", "a", False, name="Ann")],
        [replace(entry("assistant", "hello", False), opens=True), entry("user", "a", False)],
    ]
    arranged = [[json.loads(one) for one in CHAT.arranged(one)] for one in lists]
    assert [[one["role"] for one in each] for each in arranged] == [
        ["user", "assistant", "user"],
        ["user", "tool"],
        ["user", "user"],
        ["user", "system", "user"],
        ["user"],
        ["user"],
        ["tool", "user", "assistant"],
        ["user", "user"],
        ["user", "user"],
        ["assistant", "user"],
    ]
    assert arranged[1][0] == {"role": "user", "content": "sum\n\nb"}
    assert arranged[4][0]["content"] == "sum\n\na\n\nb"
    assert arranged[5][0]["content"] == [{"type": "text", "text": "sum"}, picture]


def test_what_a_system_message_of_anthropics_sets_stays_where_its_words_are_the_users() -> None:
    """As Claude Code says how much effort it wants, with words or without: the API takes that in no
    message of the user's, and no list that has the model first behind it."""

    def entry(role: str, words: str, **more: Any) -> Entry:
        said = {"role": role, "content": words or [], **more}
        [message] = from_anthropic([said])
        return Entry(message.native.json.decode(), False, message)

    effort = {"output_config": {"effort": "low"}}
    alone, model = entry("system", "", **effort), entry("assistant", "a")
    sets = {"role": "system", "content": [], **effort}
    opener = {"role": "user", "content": OPENER}
    for before, sent in (
        ([alone, model], [opener, sets]),
        ([entry("system", "b", **effort), model], [{"role": "user", "content": "b"}, sets]),
        ([entry("user", "u"), entry("system", "b"), alone, model], None),
    ):
        arranged = [json.loads(one) for one in ANTHROPIC.arranged(before)]
        whole = [json.loads(one.json) for one in before]
        assert arranged == (whole if sent is None else [*sent, whole[-1]])
