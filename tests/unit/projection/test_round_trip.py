"""From each format and back: the same where the format allows it, and what is lost where not
(docs/projection.md lists it)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from contextengine.formats import from_anthropic, from_gemini, from_openai, from_responses
from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.projection.provider import Rendered
from tests.unit.projection.histories import MODELS, PNG, judged, listed, rendered
from tests.unit.projection.making import read

PROVIDERS = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "gemini": "google",
}
DATA = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
AIRLINE = Path("tests/data/airline_transcripts.jsonl")


def back(target: str, messages: Iterable[pb.Message]) -> Rendered:
    """What the target gets of messages that its own model made."""
    items = read(messages, provider=PROVIDERS[target], model=MODELS[target])
    return rendered(target, items, **({"breakpoints": 0} if target == "anthropic" else {}))


CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "s"},
    {"role": "developer", "content": "d"},
    {
        "role": "user",
        "name": "ann",
        "content": [
            {"type": "text", "text": "look"},
            {
                "type": "image_url",
                "image_url": {"url": f"data:image/png;base64,{DATA}", "detail": "low"},
            },
            {"type": "image_url", "image_url": {"url": "https://x/p.png"}},
            {
                "type": "file",
                "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
            },
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
        ],
    },
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
            {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "no json"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "1"},
    {
        "role": "tool",
        "tool_call_id": "c2",
        "content": [{"type": "text", "text": "1"}, {"type": "text", "text": "2"}],
    },
    {"role": "assistant", "content": "a"},
    {"role": "assistant", "content": None, "refusal": "no"},
    {"role": "user", "content": ""},
]


def test_openai_chat_and_back():
    made = back("openai-chat", from_openai(CHAT))
    expected = json.loads(json.dumps(CHAT))
    expected[5]["content"] = "12"  # two texts of a tool become one
    assert listed(made) == expected
    assert made.losses == []
    assert judged("openai-chat", listed(made)) == []


RESPONSES: list[dict[str, Any]] = [
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "d"}]},
    {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "look"},
            {"type": "input_image", "detail": "low", "image_url": f"data:image/png;base64,{DATA}"},
            {"type": "input_image", "detail": "auto", "file_id": "file-1"},
            {"type": "input_file", "filename": "a.pdf",
            "file_data": "data:application/pdf;base64,JVBERg=="},
            {"type": "input_file", "file_url": "https://x/a.pdf"},
        ],
    },
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "t"}],
    "encrypted_content": "e"},
    {"type": "message", "role": "assistant", "content": "a"},
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "namespace": "n"},
    {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "x"},
    {"type": "function_call_output", "call_id": "c1", "output": "1"},
    {
        "type": "custom_tool_call_output",
        "call_id": "c2",
        "output": [{"type": "input_text", "text": "1"}, {"type": "input_image", "detail": "auto",
        "image_url": "https://x/p"}],
    },
    {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "t"},
    {"type": "summary_text", "text": "u"}]},
    {"type": "function_call", "call_id": "c3", "name": "f", "arguments": "{"},
    {"type": "function_call_output", "call_id": "c3", "output": "3"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    {"type": "message", "role": "assistant", "content": "b"},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "u"}]},
]  # fmt: skip


def test_openai_responses_and_back():
    made = back("openai-responses", from_responses(RESPONSES))
    assert listed(made) == RESPONSES
    assert made.losses == []
    assert judged("openai-responses", listed(made)) == []


def test_openai_responses_loses_ids_of_items_and_how_a_text_was_written():
    given: list[dict[str, Any]] = [
        {"role": "user", "content": "short"},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "a"}],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [{"type": "input_text", "text": "1"}],
        },
    ]
    assert listed(back("openai-responses", from_responses(given))) == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "short"}]},
        {"type": "message", "role": "assistant", "content": "a"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
    ]


ANTHROPIC: list[dict[str, Any]] = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "look"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png",
            "data": DATA}},
            {"type": "image", "source": {"type": "url", "url": "https://x/p.png"}},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf",
            "data": "JVBERg=="}, "title": "a"},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain",
            "data": "x"}},
        ],
    },
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "t", "signature": "s"},
            {"type": "redacted_thinking", "data": "d"},
            {"type": "text", "text": "a"},
            {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": [1, None]}},
            {"type": "tool_use", "id": "c2", "name": "g", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "1", "is_error": True},
            {
                "type": "tool_result",
                "tool_use_id": "c2",
                "content": [
                    {"type": "text", "text": "2"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                    "data": DATA}},
                ],
            },
            {"type": "text", "text": "and now?"},
        ],
    },
    {"role": "assistant", "content": "b"},
    {"role": "user", "content": "u"},
]  # fmt: skip


def test_anthropic_and_back():
    system = [{"type": "text", "text": "s"}]
    made = back("anthropic", from_anthropic(ANTHROPIC, system))
    assert (listed(made), json.loads(made.system_json)) == (ANTHROPIC, system)
    assert made.losses == []
    assert judged("anthropic", {"system": system, "messages": listed(made)}) == []


def test_anthropic_loses_empty_texts_and_messages_side_by_side():
    given = [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": " "}]},
        {"role": "user", "content": [{"type": "text", "text": "b"}]},
    ]
    made = back("anthropic", from_anthropic(given))
    assert listed(made) == [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    ]
    assert [loss.rule for loss in made.losses] == ["A13"]


GEMINI: list[dict[str, Any]] = [
    {
        "role": "user",
        "parts": [
            {"text": "look"},
            {"inlineData": {"mimeType": "image/png", "data": DATA}},
            {"fileData": {"mimeType": "application/pdf", "fileUri": "https://x/a.pdf"}},
        ],
    },
    {
        "role": "model",
        "parts": [
            {"text": "t", "thought": True},
            {"text": "a", "thoughtSignature": "AQI="},
            {
                "functionCall": {"id": "c1", "name": "f", "args": {"aB": 1}},
                "thoughtSignature": "AwQ=",
            },
            {"functionCall": {"id": "c2", "name": "f", "args": {}}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"id": "c1", "name": "f", "response": {"output": "1"}}},
            {"functionResponse": {"id": "c2", "name": "f", "response": {"error": "no"}}},
        ],
    },
    {
        "role": "model",
        "parts": [
            {
                "functionCall": {"name": "g", "args": {}},
                "thoughtSignature": "skip_thought_signature_validator",
            }
        ],
    },
    {
        "role": "user",
        "parts": [{"functionResponse": {"name": "g", "response": {"output": '{"a": 1}', "n": 2}}}],
    },
    {"role": "model", "parts": [{"text": "b"}]},
    {"role": "user", "parts": [{"text": "u"}]},
]


def test_gemini_and_back():
    system = {"parts": [{"text": "s"}, {"text": "t"}]}
    made = back("gemini", from_gemini(GEMINI, system))
    assert (listed(made), json.loads(made.system_json)) == (GEMINI, system)
    assert made.losses == []
    assert judged("gemini", {"contents": listed(made)}) == []


def test_gemini_reads_both_spellings():
    snake: list[dict[str, Any]] = [
        {
            "role": "model",
            "parts": [
                {"function_call": {"name": "f", "args": {"aB": 1}}, "thought_signature": "AQI="}
            ],
        },
        {"parts": [{"function_response": {"name": "f", "response": {"output": "x"}}}]},
    ]
    messages = from_gemini(snake)
    assert messages[0].parts[0].thought_signature == b"\x01\x02"
    assert messages[0].parts[0].tool_call.arguments_json == b'{"aB":1}'
    assert (
        messages[1].parts[0].tool_result.call_id
        == messages[0].parts[0].tool_call.call_id
        == "gemini-0191fef61c56"
    )
    assert messages[0].role == pb.ROLE_ASSISTANT
    assert messages[1].role == pb.ROLE_TOOL


def test_gemini_names_calls_by_what_they_say():
    """So that a list whose beginning was cut names them as the whole one did; two that say the same
    in one message are two."""
    call = {"functionCall": {"name": "f", "args": {"n": 1}}}
    answer = {"functionResponse": {"name": "f", "response": {"output": "x"}}}
    turn: list[dict[str, Any]] = [
        {"role": "model", "parts": [call, call]},
        {"parts": [answer, answer]},
    ]
    whole, cut = from_gemini([{"parts": [{"text": "go"}]}, *turn]), from_gemini(turn)
    assert [message.parts for message in whole[1:]] == [message.parts for message in cut]
    names = [part.tool_call.call_id for part in cut[0].parts]
    assert [part.tool_result.call_id for part in cut[1].parts] == names
    assert len(set(names)) == 2


def test_media_are_read_as_they_are():
    assert from_gemini(GEMINI)[0].parts[1].image.data == PNG
    assert from_responses(RESPONSES)[1].parts[1].image.data == PNG


@pytest.mark.parametrize("limit", [12])
def test_real_sessions_come_back_as_they_were(limit):
    """The customer-service sessions are OpenAI's own form. Where a session uses a call's id again,
    the later call gets another."""
    with AIRLINE.open(encoding="utf-8") as lines:
        for _, line in zip(range(limit), lines, strict=False):
            given = json.loads(line)["messages"]
            made = listed(back("openai-chat", from_openai(given)))
            renamed = {
                call["id"]
                for message in made
                for call in message.get("tool_calls") or ()
                if call["id"][:2] == "c_"
            }
            if not renamed:
                assert made == [plain(message) for message in given]


def plain(message: dict[str, Any]) -> dict[str, Any]:
    """A message as it was sent, without what is null or empty."""
    return {key: value for key, value in message.items() if value is not None or key == "content"}
