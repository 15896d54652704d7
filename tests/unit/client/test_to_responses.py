"""Messages as the input items of OpenAI Responses: what came from there comes back as it was, and
what came from elsewhere says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contextengine import types as t
from contextengine.formats import from_openai, from_responses, read_transcript, to_responses
from contextengine.messages import assistant, text_of, tool_call, tool_result, user

DATA = Path(__file__).parents[2] / "data"

ITEMS: list[dict[str, Any]] = [
    {"type": "message", "role": "developer", "content": "be brief"},
    {"role": "user", "content": [{"type": "input_text", "text": "look"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"},
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "look",
        "arguments": '{"at": 1}',
        "status": "completed",
    },
    {"type": "function_call_output", "call_id": "c1", "output": "found"},
    {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** Begin"},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": "done"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "content": [{"type": "output_text", "text": "Here.", "annotations": []}],
    },
]


def bare(messages: list[t.Message]) -> list[t.Message]:
    """The same, as messages that came from nowhere in particular."""
    copies = []
    for message in messages:
        copy = t.Message()
        copy.CopyFrom(message)
        copy.ClearField("native")
        copies.append(copy)
    return copies


def said(messages: list[t.Message]) -> list[tuple[Any, ...]]:
    """What a model is told: texts by role, calls with their arguments, results by their calls."""
    found: list[tuple[Any, ...]] = []
    for message in messages:
        for part in message.parts:
            match part.WhichOneof("kind"):
                case "text" if part.text.text:
                    found.append(("text", message.role, part.text.text))
                case "tool_call":
                    call = part.tool_call
                    arguments = json.loads(call.arguments_json or b"{}")
                    found.append(("call", call.call_id, call.name, arguments))
                case "tool_result":
                    result = part.tool_result
                    found.append(("result", result.call_id, text_of(t.Message(parts=[part]))))
    return found


def test_what_came_from_responses_comes_back_as_it_was() -> None:
    assert to_responses(from_responses(ITEMS)) == ITEMS


def test_without_its_original_a_message_says_the_same() -> None:
    messages = bare(from_responses(ITEMS))
    again = to_responses(messages)
    assert bare(from_responses(again)) == messages
    assert [item["type"] for item in again] == [item.get("type", "message") for item in ITEMS]


@pytest.mark.parametrize("name", ["airline_transcripts.jsonl", "coding_session.pi.jsonl"])
def test_real_sessions_lose_nothing_that_a_model_is_told(name: str) -> None:
    for session in read_transcript(DATA / name):
        messages = bare(session.messages)
        assert said(from_responses(to_responses(messages))) == said(messages)


def test_what_others_thought_is_left_out() -> None:
    thought = t.ReasoningPart(text="hm", signature=b"of another provider")
    items = to_responses([assistant("done", reasoning=thought)])
    assert items == [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "done"}],
        }
    ]


def test_a_call_and_its_result_are_items_of_their_own() -> None:
    items = to_responses(
        [user("go"), assistant(tool_calls=[tool_call("c1", "look")]), tool_result("c1", "found")]
    )
    assert items[1:] == [
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "found"},
    ]


def test_pictures_and_files_keep_where_they_are() -> None:
    chat = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "https://a/b.png", "detail": "low"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
                {"type": "file", "file": {"file_id": "file-1"}},
            ],
        }
    ]
    (item,) = to_responses(bare(from_openai(chat)))
    assert item["content"] == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": "https://a/b.png", "detail": "low"},
        {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
        {"type": "input_file", "file_id": "file-1"},
    ]
