"""Reading a message once: what identifies it, what the laws must know of it, what is counted, what
is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.errors import InvalidField
from contextengine_server.testing.engine.random_sessions import (
    RandomSession,
    call,
    reasoning,
    result,
    sessions,
    text,
)
from contextengine_server.testing.oracle.pairs import carries, only_reasoning, outside, pinned
from contextengine_server.wire.message import content_hash, read, read_traits

MESSAGE = pb.Message(
    id="m1", role=pb.ROLE_ASSISTANT, name="someone", stop_reason="stop", provider="p", model="m",
    api="a",
    idempotency_key="k", parts=[reasoning(0, 10, "thought"), text(10, "words"), call("x"),
    result("y", 10, "found")],
)  # fmt: skip

Change = Callable[[pb.Message], object]

IGNORED: dict[str, Change] = {
    "time": lambda m: setattr(m.timestamp, "seconds", 5),
    "usage": lambda m: setattr(m.usage, "output_tokens", 5),
    "labels": lambda m: m.labels.update({"pinned": "true", "topic": "x"}),
    "native": lambda m: setattr(m.native, "json", b"{}"),
    "id": lambda m: setattr(m, "id", "m2"),
    "stop reason": lambda m: setattr(m, "stop_reason", "length"),
    "idempotency key": lambda m: setattr(m, "idempotency_key", "other"),
    "heartbeat": lambda m: setattr(m, "is_heartbeat", True),
    "provider": lambda m: setattr(m, "provider", "other"),
    "model": lambda m: setattr(m, "model", "other"),
    "api": lambda m: setattr(m, "api", "other"),
}
CONTENT: dict[str, Change] = {
    "role": lambda m: setattr(m, "role", pb.ROLE_USER),
    "unknown role": lambda m: setattr(m, "role", 77),
    "custom role": lambda m: setattr(m, "custom_role", "narrator"),
    "name": lambda m: setattr(m, "name", "another"),
    "one part less": lambda m: m.parts.pop(),
    "one part more": lambda m: m.parts.append(text(10, "words")),
    "an empty part more": lambda m: m.parts.append(pb.Part()),
    "order": lambda m: m.parts.insert(0, m.parts.pop()),
    "text": lambda m: setattr(m.parts[1].text, "text", "[10] wordS"),
    "signature": lambda m: setattr(m.parts[0].reasoning, "signature", b"other"),
    "redacted data": lambda m: setattr(m.parts[0].reasoning, "redacted_data", b"sealed"),
    "thought signature": lambda m: setattr(m.parts[1], "thought_signature", b"other"),
    "provider metadata": lambda m: setattr(m.parts[1], "provider_metadata_json", b"{}"),
    "arguments": lambda m: setattr(m.parts[2].tool_call, "arguments_json", b"[]"),
    "call id": lambda m: setattr(m.parts[2].tool_call, "call_id", "z"),
    "error": lambda m: setattr(m.parts[3].tool_result, "is_error", True),
    "details": lambda m: setattr(m.parts[3].tool_result, "details_json", b"{}"),
    "nested part": lambda m: setattr(m.parts[3].tool_result.parts[0].text, "text", "[10] lost"),
    "an unknown kind": lambda m: m.parts[1].MergeFromString(b"\xa2\x38\x03new"),
}


def changed(change: Change) -> pb.Message:
    copy = pb.Message()
    copy.CopyFrom(MESSAGE)
    change(copy)
    assert copy.SerializeToString(deterministic=True) != MESSAGE.SerializeToString(
        deterministic=True
    )
    return copy


@pytest.mark.parametrize("name", IGNORED)
def test_what_does_not_identify_a_message(name: str) -> None:
    assert content_hash(changed(IGNORED[name])) == content_hash(MESSAGE)


@pytest.mark.parametrize("name", CONTENT)
def test_what_identifies_a_message(name: str) -> None:
    assert content_hash(changed(CONTENT[name])) != content_hash(MESSAGE)


def test_no_name_can_be_taken_for_another_pair_of_names() -> None:
    pairs = [("a\x1fb", "c"), ("a", "b\x1fc"), ("a", "bc"), ("ab", "c"), ("", "abc"), ("abc", "")]
    hashes = {
        content_hash(pb.Message(role=pb.ROLE_CUSTOM, custom_role=role, name=name))
        for role, name in pairs
    }
    assert len(hashes) == len(pairs)


@given(sessions(max_events=15))
def test_traits_are_what_the_message_says(session: RandomSession) -> None:
    for row in session.rows:
        message, traits = row.message, read_traits(row.message)
        calls, results = outside(message)
        assert list(traits.calls) == calls
        assert list(traits.results) == [
            (part, message.parts[part].tool_result.call_id) for part in results
        ]
        assert (traits.role, traits.part_count, traits.pinned) == (
            message.role,
            len(message.parts),
            pinned(message),
        )
        assert traits.says == (message.role == pb.ROLE_USER and not carries(message))
        assert traits.instructs == (message.role in (pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER))
        assert (traits.only_reasoning and traits.role == pb.ROLE_ASSISTANT) == only_reasoning(
            message
        )
        assert traits.sealed == any(
            p.reasoning.signature or p.reasoning.redacted_data for p in message.parts
        )
        incoming = read(message, "message")
        assert pb.Message.FromString(incoming.body) == message
        assert incoming.body == message.SerializeToString(deterministic=True)
        assert incoming.time_ms == (
            message.timestamp.ToMilliseconds() if message.HasField("timestamp") else None
        )


@pytest.mark.parametrize(
    ("value", "expected"),
    [("true", True), ("", True), ("no", True), ("false", False), (None, False)],
)
def test_any_value_of_the_label_pins_but_false(value: str | None, expected: bool) -> None:
    message = pb.Message(role=pb.ROLE_USER, labels={} if value is None else {"pinned": value})
    assert read_traits(message).pinned == expected


def test_what_the_service_made_is_known_by_its_id() -> None:
    assert read(pb.Message(id="ce:summary:s1", role=pb.ROLE_USER), "m").own
    assert not read(pb.Message(id="m1", role=pb.ROLE_USER), "m").own


def test_what_is_counted() -> None:
    message = pb.Message(
        role=pb.ROLE_ASSISTANT, name="someone",
        parts=[
            text(1, "words"), reasoning(0, 2, "thought"), call("x", "there"), result("y", 3,
            "found"),
            pb.Part(opaque=pb.OpaquePart(json=b'{"a": 1}')), pb.Part(image=pb.ImagePart(width=512,
            height=512)),
            pb.Part(file=pb.FilePart(size_bytes=4_000)), pb.Part.FromString(b"\xa2\x38\x03new"),
        ],
    )  # fmt: skip
    incoming = read(message, "message")
    assert incoming.texts == [
        "[1] words", "[2] thought", "look", '{"at": "there"}', "[3] found", '{"a": 1}', "someone",
    ]  # fmt: skip
    plain = read(pb.Message(role=pb.ROLE_ASSISTANT), "message")
    assert incoming.fixed_tokens > plain.fixed_tokens > 0
    assert plain.texts == []


def test_arguments_that_are_no_text_are_counted_all_the_same() -> None:
    part = pb.Part(tool_call=pb.ToolCallPart(call_id="x", name="look", arguments_json=b"\xff\xfe"))
    assert read(pb.Message(role=pb.ROLE_ASSISTANT, parts=[part]), "m").texts == ["look", "��"]


def message(**fields: object) -> pb.Message:
    return pb.Message(**{"role": pb.ROLE_USER, **fields})  # type: ignore[arg-type]


REFUSED = [
    (pb.Message(), "m[3].role"),
    (message(role=pb.ROLE_CUSTOM), "m[3].custom_role"),
    (message(id="x" * 257), "m[3].id"),
    (message(id="é" * 129), "m[3].id"),
    (message(name="x" * 257), "m[3].name"),
    (message(custom_role="x" * 257), "m[3].custom_role"),
    (message(idempotency_key="x" * 257), "m[3].idempotency_key"),
    (message(native=pb.Native(format="x" * 65)), "m[3].native.format"),
    (message(parts=[pb.Part()] * 10_001), "m[3].parts"),
    (message(timestamp={"seconds": 253_402_300_800}), "m[3].timestamp"),
    (message(timestamp={"nanos": -1}), "m[3].timestamp"),
    (
        message(parts=[text(1, "a"), pb.Part(tool_call=pb.ToolCallPart(name="look"))]),
        "m[3].parts[1].tool_call.call_id",
    ),
    (
        message(parts=[pb.Part(tool_call=pb.ToolCallPart(call_id="x"))]),
        "m[3].parts[0].tool_call.name",
    ),
    (
        message(parts=[pb.Part(tool_result=pb.ToolResultPart())]),
        "m[3].parts[0].tool_result.call_id",
    ),
]


@pytest.mark.parametrize(("refused", "field"), REFUSED, ids=[field for _, field in REFUSED])
def test_what_is_refused_is_named(refused: pb.Message, field: str) -> None:
    with pytest.raises(InvalidField) as error:
        read(refused, "m[3]")
    assert field in str(error.value)


LET_THROUGH = [
    message(),
    message(role=77),
    message(id="x" * 256, name="x" * 256),
    message(parts=[pb.Part()] * 10_000),
    message(timestamp={"seconds": -62_135_596_800}),
    message(parts=[text(0, "\x00 \U0010ffff")]),
]


@pytest.mark.parametrize("let_through", LET_THROUGH, ids=range(len(LET_THROUGH)))
def test_what_is_unusual_is_no_error(let_through: pb.Message) -> None:
    assert pb.Message.FromString(read(let_through, "m").body) == let_through
