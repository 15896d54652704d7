"""What harnesses leave alone of a message, and what they do not."""

from __future__ import annotations

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.alignment import Token, alike
from contextengine_server.context.message import Gone, Replacement
from contextengine_server.wire.likeness import (
    KEPT,
    NOTE_OF,
    Likenesses,
    ListedMessage,
    as_note,
    likeness,
    readdressed,
    tokens_of,
)
from contextengine_server.wire.message import read, read_traits
from contextengine_server.wire.placeholders import replace_part
from tests.unit.commands.house import assistant, result, user


def tokens(*messages: pb.Message) -> list[Token]:
    return tokens_of([ListedMessage(m.id, read_traits(m), likeness(m)) for m in messages])


def call(arguments: bytes, call_id: str = "c1") -> pb.Message:
    part = pb.ToolCallPart(call_id=call_id, name="look", arguments_json=arguments)
    return pb.Message(role=pb.ROLE_ASSISTANT, parts=[pb.Part(tool_call=part)])


def test_text_is_what_it_is_but_for_the_space_around_it() -> None:
    one, same, other = tokens(user("hello"), user(" hello\n"), user("Hello"))
    assert alike(one, same)
    assert not alike(one, other)
    assert not alike(one, tokens(assistant("hello"))[0])


def test_arguments_are_what_they_are_however_they_are_written() -> None:
    one, same, other, broken = tokens(
        call(b'{"a": 1, "b": [2]}'), call(b'{"b":[2],"a":1}', "c9"), call(b'{"a":2}'), call(b"{a")
    )
    assert alike(one, same)
    assert not alike(one, other)
    assert not alike(one, broken)


def test_a_call_that_its_own_message_answers_is_another_than_one_that_waits() -> None:
    """A reply may have been stored before the provider's own tool had answered."""
    waits, answered, trimmed = call(b"{}"), call(b"{}"), call(b"{}")
    answered.parts.extend(result("c1", "found").parts)
    trimmed.parts.extend(result("c1", "fou").parts)
    assert not alike(*tokens(waits, answered))
    assert alike(*tokens(answered, trimmed))


def test_reasoning_details_labels_and_times_are_none_of_it() -> None:
    plain, rich = assistant("so"), assistant("so")
    rich.parts.add().reasoning.text = "because"
    rich.labels["k"] = "v"
    rich.timestamp.seconds = 1
    assert alike(*tokens(plain, rich))
    answer, detailed = result("c1", "found"), result("c1", "found")
    detailed.parts[0].tool_result.details_json = b"{}"
    assert alike(*tokens(answer, detailed))


@pytest.mark.parametrize("sequence", [0, 7])
@pytest.mark.parametrize("reader", ["", "ctx_expand"])
@pytest.mark.parametrize("why", [Gone.OLD_IMAGE, Gone.SEEN])
def test_a_picture_that_is_shown_as_a_marker_is_none_of_it(
    why: Gone, reader: str, sequence: int
) -> None:
    asked = user("what is it?")
    asked.parts.add().image.data = b"picture"
    shown = pb.Message.FromString(asked.SerializeToString())
    replace_part(shown.parts[1], Replacement(1, why, reader=reader), sequence)
    assert shown.parts[1].text.text
    assert alike(*tokens(asked, shown))
    other = user("what is it?")
    other.parts.add().text.text = shown.parts[1].text.text + " or so"
    assert not alike(*tokens(asked, other))


def test_a_result_is_known_by_its_call() -> None:
    """Of two calls with one id the newest open one; parallel calls by their number."""
    first, second = assistant("", "", "c1"), assistant("", "", "c1", "c2")
    whole = [first, user("x"), second, result("c2", "b"), result("c1", "a"), result("c1", "late")]
    found = tokens(*whole)
    assert [token.answers for token in found[3:]] == [((2, 1),), ((2, 0),), ((0, 0),)]
    assert [token.apart for token in found[3:]] == [False, False, True]
    assert all(token.aside for token in found[3:])
    assert tokens(result("c7", "orphan"))[0].answers == ()


def test_what_says_nothing_stands_aside() -> None:
    silent, spoken = pb.Message(role=pb.ROLE_ASSISTANT), user("u")
    assert [token.aside for token in tokens(silent, spoken)] == [True, False]


@pytest.mark.parametrize("kind", ["image", "file"])
def test_media_name_their_bytes(kind: str) -> None:
    def with_media(data: bytes) -> pb.Message:
        message = user("see")
        getattr(message.parts.add(), kind).data = data
        return message

    one, same, other, gone = tokens(
        with_media(b"1"), with_media(b"1"), with_media(b"2"), user("see")
    )
    assert alike(one, same)
    assert alike(one, gone)
    assert not alike(one, other)


def test_a_note_stands_for_another_message() -> None:
    original = read(user("what was said", "m1"), "live")
    note = as_note(original, b"key")
    message = pb.Message.FromString(note.body)
    assert (message.id, message.labels[NOTE_OF]) == ("m1", b"key".hex())
    assert "what was said" in message.parts[0].text.text
    assert likeness(message).note_of == b"key"
    assert tokens(message)[0].key == b""
    assert not note.traits.says


def test_a_result_under_another_id() -> None:
    before = read(result("c1", "found"), "live")
    before.tokens, before.counted_in = 7, "o200k_base"
    after = readdressed(before, {0: "kept"})
    assert after.traits.results == ((0, "kept"),)
    assert (after.tokens, after.counted_in) == (7, "o200k_base")
    assert after.hash != before.hash


def test_a_message_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Likenesses()
    one = read(user("a"), "live")
    first = known.of(one.hash, one.body)
    assert known.of(one.hash, b"not decoded again") is first
    for number in range(KEPT):
        known.of(b"%d" % number, one.body)
    assert known.of(one.hash, one.body) == first
