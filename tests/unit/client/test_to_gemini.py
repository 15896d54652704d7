"""Messages as Gemini's contents: what came from there comes back as it was, and what came from
elsewhere says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contextengine import types as t
from contextengine.formats import from_gemini, read_transcript, to_gemini
from contextengine.messages import assistant, tool_call, tool_result, user
from tests.unit.client.test_to_responses import bare, said

DATA = Path(__file__).parents[2] / "data"
SYSTEM: dict[str, Any] = {"parts": [{"text": "be brief"}]}
CONTENTS: list[dict[str, Any]] = [
    {
        "role": "user",
        "parts": [{"text": "look"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}],
    },
    {
        "role": "model",
        "parts": [
            {"functionCall": {"name": "look", "args": {"atPlace": 1}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"id": "c2", "name": "look", "args": {}}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "look", "response": {"output": "found"}}},
            {"functionResponse": {"id": "c2", "name": "look", "response": {"aB": [1, 2]}}},
        ],
    },
    {"role": "model", "parts": [{"text": "Here."}]},
]


def test_what_came_from_gemini_comes_back_as_it_was() -> None:
    assert to_gemini(from_gemini(CONTENTS, SYSTEM)) == {
        "systemInstruction": SYSTEM,
        "contents": CONTENTS,
    }


def test_without_its_original_a_message_says_the_same() -> None:
    written = to_gemini(bare(from_gemini(CONTENTS, SYSTEM)))
    assert written == {"systemInstruction": SYSTEM, "contents": CONTENTS}


def test_real_sessions_lose_nothing_that_a_model_is_told() -> None:
    for name in ("airline_transcripts.jsonl", "coding_session.pi.jsonl"):
        for session in read_transcript(DATA / name):
            messages = [one for one in bare(session.messages) if one.role != t.ROLE_SYSTEM]
            again = from_gemini(json.loads(json.dumps(to_gemini(messages)["contents"])))
            assert said(again) == said(messages)


def test_a_result_without_a_name_gets_that_of_its_call() -> None:
    call = assistant(tool_calls=[tool_call("c1", "look", "no json")])
    contents = to_gemini([user("go"), call, tool_result("c1", "gone", is_error=True)])["contents"]
    assert contents[1]["parts"] == [
        {"functionCall": {"id": "c1", "name": "look", "args": {"arguments": "no json"}}}
    ]
    assert contents[2]["parts"] == [
        {"functionResponse": {"id": "c1", "name": "look", "response": {"error": "gone"}}}
    ]


@pytest.mark.parametrize("shown", ['{"rows": [1, [... 900 of 950 characters are left out]', "[1]"])
def test_a_result_that_was_an_object_and_is_shown_in_part_is_an_output(shown: str) -> None:
    """The service shortens texts; what is left of an object's is none."""
    answered = {"name": "look", "response": {"rows": [1, 2]}}
    call = {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]}
    contents = [call, {"role": "user", "parts": [{"functionResponse": answered}]}]
    messages = bare(from_gemini(contents))
    assert to_gemini(messages)["contents"] == contents
    messages[1].parts[0].tool_result.parts[0].text.text = shown
    told = to_gemini(messages)["contents"][1]["parts"][0]["functionResponse"]
    assert told == {"name": "look", "response": {"output": shown}}
