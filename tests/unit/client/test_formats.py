"""Conversions lose nothing: typed parts say what the original said, and `native` is the original,
byte for byte."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from contextengine.formats import FormatError, from_anthropic, from_openai, from_pi, to_openai
from contextengine.types import (
    ROLE_ASSISTANT,
    ROLE_CUSTOM,
    ROLE_SYSTEM,
    ROLE_TOOL,
    ROLE_USER,
    Message,
    ToolResultPart,
    Usage,
)

PNG = b"\x89PNG\r\n"
PNG64 = base64.b64encode(PNG).decode()


def bare(messages: list[Message]) -> list[Message]:
    """The messages without their originals."""
    copies = []
    for message in messages:
        copies.append(Message())
        copies[-1].CopyFrom(message)
        copies[-1].ClearField("native")
    return copies


OPENAI: list[dict[str, Any]] = [
    {"role": "system", "content": "be brief"},
    {"role": "developer", "content": "no jokes"},
    {"role": "user", "content": "hi", "name": "ann"},
    {"role": "user", "content": ""},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
            {
                "type": "image_url",
                "image_url": {"url": f"data:image/png;base64,{PNG64}", "detail": "low"},
            },
            {"type": "image_url", "image_url": {"url": "https://example.org/b.png"}},
            {"type": "file", "file": {"file_id": "file-1"}},
            {
                "type": "file",
                "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PNG64}"},
            },
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        ],
    },
    {
        "role": "user",
        "content": [{"type": "text", "text": "only", "cache_control": {"type": "ephemeral"}}],
    },
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "f", "arguments": '{"a" :  1}'},
                "index": 0,
            },
            {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "not json"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "name": "f", "content": "42"},
    {
        "role": "tool",
        "tool_call_id": "c2",
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    },
    {"role": "assistant", "content": "done"},
    {"role": "assistant", "content": None, "refusal": "I will not"},
]


def test_openai_round_trip() -> None:
    messages = from_openai(OPENAI)
    assert to_openai(messages) == OPENAI
    assert to_openai(bare(messages)) == OPENAI, "the parts alone say it all"


def test_openai_parts() -> None:
    messages = from_openai(OPENAI)
    assert [message.role for message in messages[6:8]] == [ROLE_ASSISTANT, ROLE_TOOL]
    assert messages[2].name == "ann"
    image = messages[4].parts[1].image
    assert (image.data, image.mime_type, image.detail) == (PNG, "image/png", "low")
    assert messages[4].parts[4].file.name == "a.pdf"
    assert messages[4].parts[5].opaque.type == "input_audio"
    assert messages[6].parts[0].tool_call.arguments_json == b'{"a" :  1}'
    assert messages[6].parts[1].tool_call.arguments_json == b"not json"
    assert messages[7].parts[0].tool_result == ToolResultPart(
        call_id="c1", name="f", parts=messages[7].parts[0].tool_result.parts
    )


def test_the_very_bytes_are_kept() -> None:
    raw = (
        '{ "role":"user",  "content": "caf\\u00e9 \\ud83d\\ude00 é", "x": 1.0e2, "big":'
        " 123456789012345678901 }"
    )
    (message,) = from_openai([raw])
    assert message.native.json == raw.encode()
    assert (message.native.format, message.parts[0].text.text) == ("openai.chat", "café 😀 é")
    assert from_openai([raw.encode()]) == [message]
    assert to_openai([message]) == [json.loads(raw)]
    assert (
        from_openai([{"role": "user", "content": "é"}])[0].native.json
        == '{"role":"user","content":"é"}'.encode()
    )


def test_lone_surrogates_stay_in_the_original_alone() -> None:
    raw = b'{"role":"user","content":"a\\ud800b"}'
    (message,) = from_openai([raw])
    assert message.parts[0].text.text == "a\ufffdb"
    assert message.native.json == raw


def test_results_of_other_formats_become_a_message_each() -> None:
    blocks = [
        {"type": "tool_result", "tool_use_id": "t1", "content": "one"},
        {"type": "tool_result", "tool_use_id": "t2"},
        {"type": "text", "text": "and now?"},
    ]
    assert to_openai(from_anthropic([{"role": "user", "content": blocks}])) == [
        {"role": "tool", "tool_call_id": "t1", "content": "one"},
        {"role": "tool", "tool_call_id": "t2", "content": ""},
        {"role": "user", "content": "and now?"},
    ]


def test_anthropic_parts() -> None:
    usage = {
        "input_tokens": 3,
        "output_tokens": 5,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 9,
        "cache_creation": {"ephemeral_1h_input_tokens": 4, "ephemeral_5m_input_tokens": 5},
    }
    reply = {
        "id": "msg_1",
        "role": "assistant",
        "model": "claude",
        "stop_reason": "tool_use",
        "usage": usage,
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig=="},
            {"type": "redacted_thinking", "data": "enc=="},
            {"type": "text", "text": "I look", "citations": None},
            {"type": "tool_use", "id": "t1", "name": "find", "input": {"q": "é", "n": 1.5}},
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        ],
    }
    picture = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PNG64},
    }
    result = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": [picture]}
    mixed = {
        "type": "document",
        "title": "d",
        "source": {"type": "url", "url": "https://example.org/d.pdf"},
    }
    system, first, second, third = from_anthropic(
        [
            reply,
            {"role": "user", "content": [result]},
            {"role": "user", "content": [result, mixed]},
        ],
        system=[{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
    )
    assert (system.role, system.parts[0].text.text) == (ROLE_SYSTEM, "be brief")
    assert json.loads(system.parts[0].provider_metadata_json) == {
        "cache_control": {"type": "ephemeral"}
    }

    assert (first.role, first.id, first.model, first.stop_reason) == (
        ROLE_ASSISTANT,
        "msg_1",
        "claude",
        "tool_use",
    )
    assert first.api == "anthropic-messages"
    assert first.usage == Usage(
        input_tokens=3,
        output_tokens=5,
        cache_read_tokens=0,
        cache_write_tokens=9,
        cache_write_1h_tokens=4,
    )
    thinking, redacted, text, call, search = first.parts
    assert (thinking.reasoning.text, thinking.reasoning.signature) == ("hm", b"sig==")
    assert redacted.reasoning.redacted_data == b"enc=="
    assert text.text.text == "I look"
    assert call.tool_call.arguments_json == '{"q":"é","n":1.5}'.encode()
    assert search.opaque.type == "server_tool_use"
    assert (
        first.native.json == json.dumps(reply, separators=(",", ":"), ensure_ascii=False).encode()
    )

    assert second.role == ROLE_TOOL
    assert second.parts[0].tool_result.is_error
    assert second.parts[0].tool_result.parts[0].image.data == PNG
    assert third.role == ROLE_USER, "a user's words make it the user's"
    assert [part.WhichOneof("kind") for part in third.parts] == ["tool_result", "file"]


def test_an_anthropic_system_keeps_its_bytes() -> None:
    raw = b'[ {"type": "text", "text": "be\\u0020brief"} ]'
    (system,) = from_anthropic([], system=raw)
    assert (system.native.json, system.parts[0].text.text) == (raw, "be brief")
    assert from_anthropic([], system="be brief")[0].parts == system.parts


def test_pi_parts() -> None:
    usage = {
        "input": 3,
        "output": 0,
        "cacheRead": 7,
        "cacheWrite": 2,
        "totalTokens": 12,
        "cost": {"total": 0.009189},
    }
    entries: list[dict[str, Any]] = [
        {"type": "session", "id": "s"},
        {
            "type": "message",
            "id": "e1",
            "timestamp": "2025-11-20T23:33:01.550Z",
            "message": {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
                    {
                        "type": "toolCall",
                        "id": "t",
                        "name": "f",
                        "arguments": {"a": [1]},
                        "partialJson": "{",
                    },
                    {
                        "type": "toolCall",
                        "id": "u",
                        "name": "f",
                        "arguments": '{"a" : 1',
                        "thoughtSignature": "g",
                    },
                ],
                "provider": "anthropic",
                "model": "claude",
                "api": "anthropic-messages",
                "stopReason": "aborted",
                "usage": usage,
                "timestamp": 1763681581545,
            },
        },
        {
            "type": "message",
            "timestamp": "2025-11-20T23:33:01.550Z",
            "message": {
                "role": "toolResult",
                "toolCallId": "t",
                "toolName": "f",
                "isError": True,
                "details": {"diff": "-"},
                "content": [{"type": "image", "data": PNG64, "mimeType": "image/png"}],
            },
        },
        {"type": "message", "message": {"role": "bashExecution", "content": "ls"}},
    ]
    first, second, third = from_pi(entries)
    assert first.id == "e1"
    assert (first.provider, first.model, first.api, first.stop_reason) == (
        "anthropic",
        "claude",
        "anthropic-messages",
        "aborted",
    )
    assert first.usage == Usage(
        input_tokens=3,
        output_tokens=0,
        cache_read_tokens=7,
        cache_write_tokens=2,
        total_tokens=12,
        cost_micro_usd=9189,
    )
    assert first.timestamp.ToMilliseconds() == 1763681581545
    reasoning, call, broken = first.parts
    assert reasoning.reasoning.signature == b"sig"
    assert (call.tool_call.arguments_json, call.provider_metadata_json) == (
        b'{"a":[1]}',
        b'{"partialJson":"{"}',
    )
    assert (broken.tool_call.arguments_json, broken.thought_signature) == (b'{"a" : 1', b"g")
    assert second.role == ROLE_TOOL
    assert second.timestamp.ToJsonString() == "2025-11-20T23:33:01.550Z"
    result = second.parts[0].tool_result
    assert (result.call_id, result.name, result.is_error, result.details_json) == (
        "t",
        "f",
        True,
        b'{"diff":"-"}',
    )
    assert result.parts[0].image.data == PNG
    assert (third.role, third.custom_role) == (ROLE_CUSTOM, "bashExecution")
    assert not third.HasField("timestamp")


@pytest.mark.parametrize(
    ("convert", "source", "said"),
    [
        (from_openai, {"content": "a"}, "role is missing: a string is needed"),
        (from_openai, {"role": "asistant"}, "role is 'asistant': one of user, assistant, tool"),
        (from_openai, {"role": "user", "content": 7}, "content is 7: a string or a list"),
        (from_openai, {"role": "user", "content": ["a"]}, "content is ['a']: a list of objects"),
        (from_openai, {"role": "user", "content": [{"text": "a"}]}, "content[0].type is missing"),
        (from_openai, {"role": "tool", "content": "a"}, "tool_call_id is missing"),
        (
            from_openai,
            {"role": "assistant", "tool_calls": [{"id": "c"}]},
            "tool_calls[0].function is missing",
        ),
        (
            from_openai,
            {"role": "assistant", "tool_calls": [{"id": "", "function": {"name": "f"}}]},
            "tool_calls[0].id is ''",
        ),
        (from_openai, b'{"role": "user"', "not JSON"),
        (from_openai, b'{"role": "\xff"}', "not UTF-8 at byte 10"),
        (from_openai, b"[1]", "an object is needed"),
        (from_openai, b"[" * 100_000, "nested too deeply"),
        (from_openai, b"1" * 5000, "not readable"),
        (
            from_anthropic,
            {"role": "tool", "content": "a"},
            "role is 'tool': user, assistant or system",
        ),
        (from_anthropic, {"role": "user"}, "content is missing"),
        (
            from_anthropic,
            {
                "role": "user",
                "content": [{"type": "image", "source": {"type": "base64", "data": "%"}}],
            },
            "content[0].source.data is '%': base64",
        ),
        (
            from_anthropic,
            {"role": "assistant", "content": "", "usage": {"input_tokens": 1.5}},
            "usage.input_tokens is 1.5",
        ),
        (
            from_anthropic,
            {"role": "assistant", "content": "", "usage": {"input_tokens": 2**64}},
            "at most 64 bits",
        ),
        (from_pi, {"id": "s"}, "type is missing"),
        (from_pi, {"type": "message"}, "message is missing"),
        (
            from_pi,
            {"type": "message", "message": {"role": "user", "timestamp": "noon"}},
            "message.timestamp is 'noon'",
        ),
        (
            from_pi,
            {"type": "message", "message": {"role": "toolResult"}},
            "message.toolCallId is missing",
        ),
        (
            from_pi,
            {
                "type": "message",
                "message": {"role": "assistant", "usage": {"cost": {"total": float("inf")}}},
            },
            "message.usage.cost.total is inf",
        ),
    ],
)
def test_what_is_wrong_is_said(convert: Any, source: Any, said: str) -> None:
    with pytest.raises(FormatError) as caught:
        convert([source])
    assert said in str(caught.value)
