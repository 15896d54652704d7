"""Builders of messages."""

from __future__ import annotations

from datetime import UTC, datetime

from contextengine import assistant, system, text_of, tool_call, tool_result, user
from contextengine.messages import compact_json, parts_of
from contextengine.types import (
    ROLE_ASSISTANT,
    ROLE_SYSTEM,
    ROLE_TOOL,
    ROLE_USER,
    ImagePart,
    Part,
    ReasoningPart,
    TextPart,
    Usage,
)

PICTURE = Part(image=ImagePart(uri="https://example.org/a.png"))


def test_a_user_speaks() -> None:
    when = datetime(2025, 11, 20, tzinfo=UTC)
    message = user(
        ["look: ", PICTURE], id="m", name="ann", labels={"pinned": "true"}, timestamp=when
    )
    assert (message.id, message.role, message.name, message.labels["pinned"]) == (
        "m",
        ROLE_USER,
        "ann",
        "true",
    )
    assert list(message.parts) == [Part(text=TextPart(text="look: ")), PICTURE]
    assert message.timestamp.ToDatetime(UTC) == when


def test_ids_are_new_unless_given() -> None:
    assert user("a").id != user("a").id
    assert system("a", id="").id == ""
    assert system("a").role == ROLE_SYSTEM


def test_a_model_reasons_speaks_and_calls() -> None:
    message = assistant(
        "I look",
        reasoning=ReasoningPart(text="hm", signature=b"s"),
        tool_calls=[
            tool_call("c1", "find", '{"b" : 1}'),
            tool_call("c2", "find", {"q": "é", "n": 2**70}),
        ],
        usage=Usage(output_tokens=0),
        stop_reason="toolUse",
        provider="p",
        model="m",
        api="x",
    )
    assert message.role == ROLE_ASSISTANT
    assert [part.WhichOneof("kind") for part in message.parts] == [
        "reasoning",
        "text",
        "tool_call",
        "tool_call",
    ]
    assert message.parts[2].tool_call.arguments_json == b'{"b" : 1}', "as the model wrote it"
    assert (
        message.parts[3].tool_call.arguments_json == '{"q":"é","n":1180591620717411303424}'.encode()
    )
    assert message.usage.HasField("output_tokens")
    assert not message.usage.HasField("input_tokens")
    assert (message.stop_reason, message.provider, message.model, message.api) == (
        "toolUse",
        "p",
        "m",
        "x",
    )
    assert not assistant("a").HasField("usage")


def test_a_tool_answers() -> None:
    message = tool_result("c1", "no such file", name="read", is_error=True)
    (part,) = message.parts
    assert message.role == ROLE_TOOL
    assert (part.tool_result.call_id, part.tool_result.name, part.tool_result.is_error) == (
        "c1",
        "read",
        True,
    )
    assert text_of(message) == "no such file"


def test_text_is_all_that_is_said() -> None:
    message = assistant(["one", PICTURE, "two"], reasoning=ReasoningPart(text="hidden"))
    assert text_of(message) == "one\ntwo"
    assert parts_of(["a", ["b"][0]]) == [*parts_of("a"), *parts_of("b")]


def test_lone_surrogates_are_escaped_in_json() -> None:
    assert compact_json(["é"]) == '["é"]'.encode()
    assert compact_json(["\ud800"]) == b'["\\ud800"]'
