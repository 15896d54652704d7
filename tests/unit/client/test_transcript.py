"""Files of conversations: the real ones whole and byte for byte, bad ones with file, line and
reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contextengine.formats import ModelUpdate, TranscriptError, read_transcript, to_openai
from contextengine.types import ROLE_SYSTEM, ROLE_TOOL, ROLE_USER, Message, Role

DATA = Path(__file__).parents[2] / "data"
AIRLINE = DATA / "airline_transcripts.jsonl"
CODING = DATA / "coding_session.pi.jsonl"


def test_every_airline_session_round_trips() -> None:
    sessions = list(read_transcript(AIRLINE))
    lines = AIRLINE.read_bytes().splitlines()
    assert len(sessions) == len(lines) == 120
    for session, line in zip(sessions, lines, strict=True):
        source = json.loads(line)
        assert session.session_id == source["session_id"]
        assert to_openai(session.messages) == source["messages"]
        natives = [message.native.json for message in session.messages]
        # The file separates elements by ", ": joined like that, the originals are the line itself.
        assert line.endswith(b'"messages": [' + b", ".join(natives) + b"]}")
        for message in session.messages:
            message.ClearField("native")
        assert to_openai(session.messages) == source["messages"], "the parts alone say it all"


def test_the_coding_session_keeps_every_line() -> None:
    (session,) = read_transcript(CODING)
    lines = CODING.read_bytes().splitlines()
    entries = [json.loads(line) for line in lines]
    assert session.session_id == "d703a1a9-1b7b-4fb1-b512-c9738b1fe617"
    assert (session.model, session.provider) == ("claude-sonnet-4-5", "anthropic")
    assert session.updates == (ModelUpdate(2, "claude-sonnet-4-5", "anthropic"),)
    kept = [line for line, entry in zip(lines, entries, strict=True) if entry["type"] == "message"]
    assert [message.native.json for message in session.messages] == kept
    assert len(kept) == 914


def test_the_coding_session_is_typed_in_full() -> None:
    (session,) = read_transcript(CODING)
    sources = [json.loads(message.native.json)["message"] for message in session.messages]
    for message, source in zip(session.messages, sources, strict=True):
        assert told(message) == source


def told(message: Message) -> dict[str, Any]:
    """A Pi message, written from the typed form alone."""
    roles = {"ROLE_TOOL": "toolResult"}
    name = Role.Name(message.role)
    written: dict[str, Any] = {"role": roles.get(name, name.removeprefix("ROLE_").lower())}
    parts = message.parts
    if message.role == ROLE_TOOL:
        result = message.parts[0].tool_result
        written |= {
            "toolCallId": result.call_id,
            "toolName": result.name,
            "isError": result.is_error,
        }
        if result.details_json:
            written["details"] = json.loads(result.details_json)
        parts = result.parts
    written["content"] = [told_part(part) for part in parts]
    if message.HasField("usage"):
        usage = message.usage
        source = json.loads(message.native.json)["message"]
        # Single costs are not billed apart; their sum is.
        assert usage.cost_micro_usd == round(source["usage"]["cost"]["total"] * 1e6)
        written["usage"] = {
            "input": usage.input_tokens,
            "output": usage.output_tokens,
            "cacheRead": usage.cache_read_tokens,
            "cacheWrite": usage.cache_write_tokens,
            "cost": source["usage"]["cost"],
        }
        written |= {"api": message.api, "provider": message.provider, "model": message.model}
        written["stopReason"] = message.stop_reason
        if "errorMessage" in source:
            written["errorMessage"] = source["errorMessage"]
    return {**written, "timestamp": message.timestamp.ToMilliseconds()}


def told_part(part: Any) -> dict[str, Any]:
    more = json.loads(part.provider_metadata_json or b"{}")
    match part.WhichOneof("kind"):
        case "text":
            return {"type": "text", "text": part.text.text, **more}
        case "reasoning":
            signature = part.reasoning.signature.decode()
            return {
                "type": "thinking",
                "thinking": part.reasoning.text,
                "thinkingSignature": signature,
                **more,
            }
    call = part.tool_call
    return {
        "type": "toolCall",
        "id": call.call_id,
        "name": call.name,
        "arguments": json.loads(call.arguments_json),
        **more,
    }


def write(directory: Path, name: str, text: str | bytes) -> Path:
    path = directory / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_message_a_line_is_one_session(tmp_path: Path) -> None:
    first, second = '{"role": "user",  "content": "é"}', '{"role":"assistant","content":"hi"}'
    path = write(tmp_path, "talk.jsonl", f"{first}\r\n\n{second}")
    (session,) = read_transcript(path)
    assert session.session_id == "talk"
    assert [message.native.json for message in session.messages] == [
        first.encode(),
        second.encode(),
    ]


REQUEST = """{
  "model": "claude",
  "messages": [
    {"role": "user", "content": "caf\\u00e9"},
    {"role": "assistant",
     "content": [{"type": "text", "text": "yes"}]}
  ],
  "system": [{"type": "text", "text": "be brief"}]
}
"""


@pytest.mark.parametrize("name", ["case.json", "case.txt"])
def test_an_anthropic_request(name: str, tmp_path: Path) -> None:
    (session,) = read_transcript(write(tmp_path, name, REQUEST))
    assert (session.session_id, session.model) == ("case", "claude")
    system, question, answer = session.messages
    assert (system.role, system.native.json) == (
        ROLE_SYSTEM,
        b'[{"type": "text", "text": "be brief"}]',
    )
    assert (question.role, question.parts[0].text.text) == (ROLE_USER, "café")
    assert question.native.json == b'{"role": "user", "content": "caf\\u00e9"}'
    assert (
        answer.native.json
        == b'{"role": "assistant",\n     "content": [{"type": "text", "text": "yes"}]}'
    )


@pytest.mark.parametrize(
    "text", ['[{"role":"user","content":"a"}]', '[\n{"role":"user","content":"a"}\n]\n', "[ ]"]
)
def test_a_list_of_anthropic_messages(text: str, tmp_path: Path) -> None:
    (session,) = read_transcript(write(tmp_path, "list.json", text))
    assert len(session.messages) == text.count("role")


@pytest.mark.parametrize(
    ("name", "text", "line", "said"),
    [
        ("a.jsonl", "", 1, "the file is empty"),
        ("a.jsonl", "\n \n", 1, "the file is empty"),
        ("a.jsonl", '\n{"role": "user"', 2, "not JSON"),
        ("a.jsonl", '{"role":"user","content":"a"}\n\n{"role":', 3, "not JSON"),
        ("a.jsonl", '{"role":"user","content":"a"}\n[]', 2, "an object is needed"),
        ("a.jsonl", b'{"role":"user","content":"a"}\n{"role":"\xff"}', 2, "not UTF-8"),
        ("a.jsonl", '{"role":"user","content":"a"}\n{"role":"tool"}', 2, "tool_call_id is missing"),
        (
            "a.jsonl",
            '{"session_id":"s","messages":[]}\n{"session_id":"t"}',
            2,
            "messages is missing",
        ),
        (
            "a.jsonl",
            '{"session_id":"s","messages":[]}\n{"messages":[]}',
            2,
            "session_id is missing",
        ),
        (
            "a.jsonl",
            '{"session_id":"s","messages":[{"role":"user","content":"a"},{"role":"user","content":7}]}',
            1,
            "messages[1]: content is 7",
        ),
        ("a.jsonl", '{"session_id":"s","messages":[7]}', 1, "messages[0]: an object is needed"),
        (
            "a.jsonl",
            '{"type":"session"}\n{"type":"message","message":{"role":""}}',
            2,
            "message.role is ''",
        ),
        ("a.jsonl", '{"name":"x"}', 1, "no known format"),
        ("a.jsonl", "7", 1, "no known format"),
        ("a.json", '{\n"messages": [\n{"role": "user"}\n]}', 3, "messages[0]: content is missing"),
        ("a.json", '{\n"messages": 7}', 1, "messages is 7"),
        ("a.json", '{\n"messages": [\n,]}', 3, "not JSON"),
        ("a.json", b'{\n"messages": "\xff"}', 1, "not UTF-8"),
    ],
)
def test_a_bad_file_is_named_with_its_line(
    name: str, text: str | bytes, line: int, said: str, tmp_path: Path
) -> None:
    path = write(tmp_path, name, text)
    with pytest.raises(TranscriptError) as caught:
        list(read_transcript(path))
    assert (caught.value.path, caught.value.line) == (path, line)
    assert said in caught.value.what
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_sessions_before_a_bad_line_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '{"session_id":"s","messages":[]}\n{')
    sessions = read_transcript(path)
    assert next(sessions).session_id == "s"
    with pytest.raises(TranscriptError):
        next(sessions)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_transcript(tmp_path / "none.jsonl")
