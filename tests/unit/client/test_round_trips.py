"""Through each format and back: what came from a format comes back as it was, and what came from
elsewhere says the same, but for what the format has no place for."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine import formats as f
from contextengine import types as t
from contextengine.formats import FormatError
from contextengine.messages import assistant, text_of, tool_call, tool_result, user

DATA = Path(__file__).parents[2] / "data"
Json = Any
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Format:
    """Both ways, and what there is no place for."""

    name: str
    read: Callable[[Any], list[t.Message]]
    write: Callable[[list[t.Message]], Any]
    lacks: frozenset[str] = NOTHING


def _anthropic(request: Json) -> list[t.Message]:
    return f.from_anthropic(request["messages"], request.get("system"))


def _gemini(request: Json) -> list[t.Message]:
    return f.from_gemini(request["contents"], request.get("systemInstruction"))


FORMATS = [
    Format("chat", f.from_openai, f.to_openai, frozenset({"errors", "reasoning", "details"})),
    Format(
        "responses", f.from_responses, f.to_responses, frozenset({"errors", "reasoning", "details"})
    ),
    Format("anthropic", _anthropic, f.to_anthropic, frozenset({"details", "empty"})),
    Format("gemini", _gemini, f.to_gemini, frozenset({"reasoning", "details", "empty"})),
    Format("pi", f.from_pi, f.to_pi, frozenset({"system"})),
    Format("pi session", f.from_pi, f.to_pi_entries, frozenset({"system"})),
    Format("ai-sdk", f.from_ai_sdk, f.to_ai_sdk, frozenset({"details"})),
    Format("langchain", f.from_langchain, f.to_langchain),
    Format("pydantic-ai", f.from_pydantic_ai, f.to_pydantic_ai, frozenset({"details"})),
]
NEW = [one for one in FORMATS if one.name in ("pi", "ai-sdk", "langchain", "pydantic-ai")]
"""Formats that hosts hold their lists in."""


def bare(messages: Iterable[t.Message]) -> list[t.Message]:
    """The same, as messages that came from nowhere in particular."""
    copies = []
    for message in messages:
        copy = t.Message()
        copy.CopyFrom(message)
        copy.ClearField("native")
        copies.append(copy)
    return copies


def said(messages: Iterable[t.Message], lacks: frozenset[str] = frozenset()) -> list[Any]:
    """What the messages say, part by part, without what a format lacks."""
    found: list[Any] = []
    for message in messages:
        role = message.role
        if role in (t.ROLE_SYSTEM, t.ROLE_DEVELOPER) and "system" in lacks:
            role = t.ROLE_USER
        for part in message.parts:
            found += _said(part, role, lacks)
    return found


def _said(part: t.Part, role: t.Role, lacks: frozenset[str]) -> list[Any]:
    match part.WhichOneof("kind"):
        case "text":
            return [("text", role, part.text.text)] if part.text.text else []
        case "reasoning" if "reasoning" not in lacks:
            thought = part.reasoning
            return [("reasoning", thought.text, thought.signature, thought.redacted_data)]
        case "tool_call":
            call = part.tool_call
            return [("call", call.call_id, call.name, json.loads(call.arguments_json or b"{}"))]
        case "tool_result":
            result = part.tool_result
            found: list[Any] = ["result", result.call_id]
            found.append(_answered(result))
            if "errors" not in lacks:
                found.append(result.is_error)
            if "details" not in lacks:
                found.append(json.loads(result.details_json or b"null"))
            return [tuple(found)]
        case "image":
            return [("image", part.image.data, part.image.uri, part.image.mime_type)]
        case "file":
            return [("file", part.file.data, part.file.uri, part.file.mime_type, part.file.name)]
    return []


def _answered(result: t.ToolResultPart) -> list[Any]:
    """What a result says. Texts in a row are one, as a model reads them."""
    found: list[Any] = []
    for part in result.parts:
        if not part.HasField("text"):
            found += _said(part, t.ROLE_TOOL, NOTHING)
        elif found and isinstance(found[-1], str):
            found[-1] += "\n" + part.text.text
        elif part.text.text:
            found.append(part.text.text)
    return found


SESSIONS = [
    session.messages
    for name in ("airline_transcripts.jsonl", "coding_session.pi.jsonl")
    for session in f.read_transcript(DATA / name)
]


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_real_sessions_say_the_same_through_every_format(form: Format) -> None:
    for session in SESSIONS:
        messages = bare(session)
        assert said(form.read(form.write(messages)), form.lacks) == said(messages, form.lacks)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_what_a_host_holds_of_real_sessions_comes_back_as_it_was(form: Format) -> None:
    for session in SESSIONS:
        held = form.write(bare(session))
        assert form.write(form.read(held)) == held


def test_a_session_of_pi_comes_back_entry_by_entry() -> None:
    lines = (DATA / "coding_session.pi.jsonl").read_bytes().splitlines()
    spoken = [entry for entry in map(json.loads, lines) if entry["type"] == "message"]
    messages = f.from_pi(spoken)
    assert f.to_pi_entries(messages) == spoken
    assert f.to_pi(messages) == [entry["message"] for entry in spoken]
    # Usage, model, times and reasons to stop survive without the originals, too.
    again = f.from_pi(f.to_pi(bare(messages)))
    for before, after in zip(bare(messages), bare(again), strict=True):
        assert after.timestamp == before.timestamp
        assert (after.model, after.stop_reason) == (before.model, before.stop_reason)
        assert after.usage.output_tokens == before.usage.output_tokens
        assert after.usage.cost_micro_usd == before.usage.cost_micro_usd


WORDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=12
)
IDS = st.text("abc123_", min_size=1, max_size=8)
TEXTS = st.builds(lambda text: t.Part(text=t.TextPart(text=text)), WORDS)
IMAGES = st.one_of(
    st.builds(
        lambda data: t.Part(image=t.ImagePart(data=data, mime_type="image/png")),
        st.binary(min_size=1, max_size=9),
    ),
)
JSONS = st.dictionaries(IDS, st.one_of(st.integers(-99, 99), WORDS, st.booleans(), st.none()))
THOUGHTS = st.builds(
    lambda text, signature: t.ReasoningPart(text=text, signature=signature.encode()), WORDS, IDS
)
USERS = st.builds(user, st.lists(st.one_of(TEXTS, IMAGES), min_size=1, max_size=3))
REPLIES = st.builds(
    assistant,
    st.lists(TEXTS, max_size=2),
    tool_calls=st.lists(st.builds(tool_call, IDS, IDS, JSONS), max_size=3),
    reasoning=st.one_of(st.none(), THOUGHTS),
)
RESULTS = st.one_of(
    st.builds(
        tool_result, IDS, st.lists(TEXTS, min_size=1, max_size=1), name=IDS, is_error=st.booleans()
    ),
    st.builds(
        tool_result, IDS, st.lists(st.one_of(TEXTS, IMAGES), min_size=1, max_size=3), name=IDS
    ),
)


@pytest.mark.parametrize("form", NEW, ids=lambda form: form.name)
@given(messages=st.lists(st.one_of(USERS, REPLIES, RESULTS), max_size=6))
def test_whatever_is_said_survives(form: Format, messages: list[t.Message]) -> None:
    held = form.write(messages)
    json.dumps(held)
    assert said(form.read(held), form.lacks) == said(messages, form.lacks)
    assert form.write(form.read(held)) == held


@pytest.mark.parametrize("form", NEW, ids=lambda form: form.name)
def test_the_very_bytes_are_kept(form: Format) -> None:
    (written,) = form.write([assistant("é")])
    raw = json.dumps(written, indent=3).encode()
    (message,) = form.read([raw])
    assert message.native.json == raw


def test_a_request_of_pydantic_ai_is_told_apart_by_role_and_put_together_again() -> None:
    request = {
        "kind": "request",
        "instructions": "look well",
        "parts": [
            {"part_kind": "system-prompt", "content": "be brief"},
            {"part_kind": "tool-return", "tool_name": "f", "tool_call_id": "c", "content": "ok"},
            {"part_kind": "user-prompt", "content": "and then?"},
        ],
    }
    messages = f.from_pydantic_ai([request])
    assert [one.role for one in messages] == [t.ROLE_SYSTEM, t.ROLE_TOOL, t.ROLE_USER]
    assert f.to_pydantic_ai(messages) == [request]
    # Where the beginning is summarized by now, what is left is a request of its own.
    assert f.to_pydantic_ai(messages[2:]) == [{**request, "parts": request["parts"][2:]}]
    # Two requests that follow each other stay two.
    assert f.to_pydantic_ai([*messages, *messages]) == [request, request]


def test_a_call_whose_arguments_are_no_json_stays_one() -> None:
    reply = assistant(tool_calls=[tool_call("c1", "f", "{oops")])
    (row,) = f.to_langchain([reply])
    assert row["data"]["tool_calls"] == []
    assert row["data"]["invalid_tool_calls"][0]["args"] == "{oops"
    for form in NEW[1:]:
        (again,) = form.read(form.write([reply]))
        assert again.parts[0].tool_call.arguments_json == b"{oops"


def test_calls_of_langchain_stand_where_its_content_says() -> None:
    content = [
        {"type": "text", "text": "one"},
        {"type": "tool_use", "id": "c2", "name": "f", "input": {}},
        {"type": "text", "text": "two"},
    ]
    calls: Json = [
        {"id": one, "name": "f", "args": {}, "type": "tool_call"} for one in ("c1", "c2")
    ]
    (message,) = f.from_langchain([{"type": "ai", "content": content, "tool_calls": calls}])
    kinds = [part.tool_call.call_id or part.text.text for part in message.parts]
    assert kinds == ["one", "c2", "two", "c1"]


def test_what_is_cut_off_is_no_json_any_more() -> None:
    """A result that was JSON and is shown head and tail."""
    sdk = [
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "c",
                    "toolName": "f",
                    "output": {"type": "json", "value": {"a": 1}},
                }
            ],
        }
    ]
    (message,) = bare(f.from_ai_sdk(sdk))
    assert f.to_ai_sdk([message]) == sdk
    message.parts[0].tool_result.parts[0].text.text = '{"a": [cut]'
    assert f.to_ai_sdk([message])[0]["content"][0]["output"] == {
        "type": "text",
        "value": '{"a": [cut]',
    }


@pytest.mark.parametrize(
    ("read", "given", "place"),
    [
        (f.from_ai_sdk, {"role": "user"}, "content is missing"),
        (f.from_ai_sdk, {"role": "model", "content": "x"}, "role"),
        (
            f.from_ai_sdk,
            {"role": "user", "content": [{"type": "file", "data": "é", "mediaType": "a/b"}]},
            "content[0].data",
        ),
        (
            f.from_ai_sdk,
            {"role": "tool", "content": [{"type": "tool-result"}]},
            "content[0].output",
        ),
        (f.from_langchain, {"data": {"content": "x"}}, "data.type"),
        (f.from_langchain, {"type": "human", "data": {"content": 7}}, "data.content"),
        (f.from_langchain, {"type": "human", "content": [7]}, "content"),
        (f.from_langchain, {"type": "tool", "content": "x"}, "tool_call_id"),
        (f.from_pydantic_ai, {"kind": "other"}, "kind"),
        (
            f.from_pydantic_ai,
            {"kind": "request", "parts": [{"content": "x"}]},
            "parts[0].part_kind",
        ),
        (
            f.from_pydantic_ai,
            {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": [7]}]},
            "parts[0].content",
        ),
        (f.from_pi, {"role": "user", "content": 7}, "content"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(read: Any, given: Json, place: str) -> None:
    with pytest.raises(FormatError, match=place.replace("[", r"\[").replace(".", r"\.")):
        read([given])


def test_base64_of_either_alphabet_is_read() -> None:
    data = bytes(range(256))
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        part = {"kind": "binary", "data": encode(data).decode(), "media_type": "image/png"}
        request = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": [part]}]}
        (message,) = f.from_pydantic_ai([request])
        assert message.parts[0].image.data == data


def test_messages_that_an_agent_of_pi_holds_are_read_without_an_entry() -> None:
    (message,) = f.from_pi([{"role": "user", "content": "hi", "timestamp": 1_000}])
    assert (text_of(message), message.id, message.timestamp.seconds) == ("hi", "", 1)
    (reply,) = f.to_pi([assistant("done")])
    assert reply["stopReason"] == "stop"
    assert reply["usage"]["cost"]["total"] == 0
    (calling,) = f.to_pi([assistant(tool_calls=[tool_call("c", "f")])])
    assert calling["stopReason"] == "toolUse"
