"""What the proxy is made of, without a network: events out of bytes, names of messages, bodies with
something else in them, windows, the command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine import Assembly
from contextengine import name_by_content as name
from contextengine.formats import from_anthropic, from_openai, from_responses
from contextengine.types import AssembleResponse, Item
from contextengine_proxy.command import main
from contextengine_proxy.conversation import opening, session_of
from contextengine_proxy.copy import ReplyCopy
from contextengine_proxy.dialects import DIALECTS, dialect_of
from contextengine_proxy.dialects.anthropic import DIALECT as ANTHROPIC
from contextengine_proxy.dialects.chat import DIALECT as CHAT
from contextengine_proxy.document import Document, Unreadable
from contextengine_proxy.reading import Reader
from contextengine_proxy.sse import Events
from contextengine_proxy.windows import Windows
from contextengine_proxy.writing import Writer
from tests.hosts.providers import Json

LINES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=9)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@given(st.lists(st.lists(LINES, min_size=1, max_size=3), max_size=5), ENDS, st.data())
def test_events_are_the_same_wherever_their_bytes_are_parted(
    events: list[list[str]], end: str, data: st.DataObject
) -> None:
    text = f": a comment{end}{end}"
    for lines in events:
        text += f"event: named{end}" + "".join(f"data: {line}{end}" for line in lines) + end
    raw = (text + end).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    reader, found = Events(), []
    for start, stop in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        found += list(reader.take(raw[start:stop]))
    found += list(reader.take(b"\n\n"))
    assert found == ["\n".join(lines).encode() for lines in events]


def talk(*said: str) -> list[Any]:
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": words} for at, words in enumerate(said)]


def names(messages: list[Any]) -> list[str]:
    return name(from_openai(messages))


def test_names_are_equal_as_far_as_conversations_are() -> None:
    one = names(talk("a", "b", "c", "d"))
    other = names(talk("a", "b", "x", "d"))
    assert one[:2] == other[:2]
    assert not set(one[2:]) & set(other)
    assert len(set(names(talk("yes", "yes", "yes", "yes")))) == 4


CALL = {"id": "c1", "function": {"name": "f", "arguments": '{"a": 1, "b": [2]}'}}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"content": "well"}, {"content": [{"type": "text", "text": "well\n"}], "refusal": None}),
        ({"content": None, "tool_calls": [CALL]}, {"tool_calls": [{**CALL, "id": "other"}]}),
        (
            {"tool_calls": [CALL]},
            {"tool_calls": [{**CALL, "function": {"name": "f", "arguments": '{"b":[2],"a":1}'}}]},
        ),
        ({"content": "x", "reasoning_content": "hm"}, {"content": "x", "annotations": []}),
    ],
)
def test_what_hosts_rewrite_changes_no_name(one: Any, other: Any) -> None:
    written = [names([{"role": "assistant", **message}]) for message in (one, other)]
    assert written[0] == written[1]


@pytest.mark.parametrize(
    "other",
    [
        {"role": "user", "content": "well"},
        {"role": "assistant", "content": "wel"},
        {"role": "assistant", "content": "well", "tool_calls": [CALL]},
        {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "u"}}]},
    ],
)
def test_what_is_said_changes_the_name(other: Any) -> None:
    assert names([{"role": "assistant", "content": "well"}]) != names([other])


def test_a_cache_mark_changes_no_name() -> None:
    text = {"type": "text", "text": "well"}
    marked = {**text, "cache_control": {"type": "ephemeral"}}
    one, other = (
        name(from_anthropic([{"role": "user", "content": [block]}])) for block in (text, marked)
    )
    assert one == other


def test_a_conversation_is_known_from_the_models_first_reply_on() -> None:
    assert opening(from_openai(talk("a"))) is None
    assert opening(from_openai(talk("a", "b", "c", "d"))) == 2
    assert session_of("id", ("key",)) != session_of("id", ("another",))


def test_what_only_a_provider_can_read_tells_no_conversation_from_another() -> None:
    compacted = {"type": "compaction", "encrypted_content": "c2VjcmV0"}
    asked = {"role": "user", "content": "Go on."}
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    said = {"role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    assert opening(from_responses([compacted, asked])) is None
    assert opening(from_responses([compacted, asked, search])) is None
    assert opening(from_responses([compacted, asked, search, said])) == 4


BODY = b'{ "model" : "m",\n "messages":[ {"role":"user","content":"\\ud800 a"} , {} ], "n": 1.50}'


def test_a_body_changes_where_it_is_changed_alone() -> None:
    document = Document(BODY, "messages")
    assert document.changed(None, {}) == BODY
    assert document.changed(document.originals, {"system": "S"}) == (
        b'{"system":"S", "model" : "m",\n "messages":[{"role":"user","content":"\\ud800 a"},{}],'
        b' "n": 1.50}'
    )
    assert document.changed([], {"model": "other"}) == (
        b'{ "model" : "other",\n "messages":[], "n": 1.50}'
    )
    assert document.raw("n", "none", "model") == '1.50\n"m"'


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"messages": "x"}', b'{"messages": [1]}'])
def test_what_is_no_request_is_unreadable(body: bytes) -> None:
    with pytest.raises(Unreadable):
        Document(body, "messages")


def test_an_order_is_none_of_the_messages_whatever_is_known_of_them() -> None:
    def orders(message: Mapping[str, Any]) -> bool:
        return message.get("type") == "order"

    said, order = ['{"role":"user"}', '{"n": 1}'], '{"type":"order"}'
    whole = Document(f'{{"input":[{",".join([*said, order])}]}}'.encode(), "input", orders=orders)
    assert (whole.originals, whole.order) == (said, [order])
    listed = whole.conversation()
    assert listed.text == ",".join(said)
    more = f'{{"input":[{",".join([*said, "{}", order])}]}}'.encode()
    again = Document(more, "input", known=lambda _: listed, orders=orders)
    assert (again.alike, again.originals, again.order) == (2, [*said, "{}"], [order])
    again = Document(whole.body, "input", known=lambda _: listed, orders=orders)
    assert (again.alike, again.originals, again.order) == (2, said, [order])
    assert again.conversation() == listed
    alone = Document(f'{{"input":[{order}]}}'.encode(), "input", orders=orders)
    assert (alone.originals, alone.order, alone.conversation().text) == ([], [order], "")


@pytest.mark.parametrize("gap", [",", ", ", " ,\n  "])
@pytest.mark.parametrize("led", [0, 2])
def test_a_conversation_that_goes_on_is_read_as_one_that_is_read_for_the_first_time(
    gap: str, led: int
) -> None:
    def body(talk: list[Json], gap: str = gap) -> bytes:
        instructions = [{"role": "system", "content": f"Be {at}."} for at in range(led)]
        rows = gap.join(json.dumps(one) for one in instructions + talk)
        return f'{{"model": "m", "messages": [{rows}], "n": 1}}'.encode()

    whole: list[Json] = []
    for turn in range(4):
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        whole += [
            {"role": "user", "content": f"Question {turn} \u00e9 }}{{"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": "found"},
            {"role": "assistant", "content": f"Answer {turn}"},
        ]
    edited = [*whole[:6], {"role": "user", "content": "Another"}, *whole[7:]]
    asked = [whole[:3], whole[:9], whole, edited, whole[:5], edited[:8], whole[:1], whole]
    bodies = [body(talk) for talk in asked]
    bodies += [body(whole, gap=" , "), body([*whole, *edited]), body([whole[0], whole[0]])]
    reader, dialect = Reader(), dialect_of("/v1/chat/completions")
    assert dialect is not None
    for one in bodies:
        again, first = reader.read(dialect, one, "talk"), Reader().read(dialect, one, "talk")
        assert again.ids == first.ids
        assert again.messages == first.messages
        assert again.leading == first.leading == led
        assert again.document.originals == first.document.originals
        assert again.document.changed(again.document.originals, {"n": 2}) == (
            first.document.changed(first.document.originals, {"n": 2})
        )
    for broken in (body(whole)[:-20], body(whole).replace(b"}], ", b"} {}], "), b"{}"):
        with pytest.raises(Unreadable):
            reader.read(dialect, broken, "talk")


@given(st.data())
def test_what_is_written_step_by_step_is_what_is_written_at_once(data: st.DataObject) -> None:
    dialect = dialect_of("/v1/chat/completions")
    assert dialect is not None
    reader, writer, said = Reader(), Writer(), talk(*(f"words {at}" for at in range(12)))
    shown: tuple[Item, ...] = ()
    for _ in range(data.draw(st.integers(1, 5))):
        length = data.draw(st.integers(1, len(said)))
        if data.draw(st.booleans()):
            at = data.draw(st.integers(0, length - 1))
            said[at] = {**said[at], "content": data.draw(st.sampled_from(["x", "y", "words 0"]))}
        body = json.dumps({"model": "m", "messages": said[:length]}).encode()
        request = reader.read(dialect, body, "talk")
        first = data.draw(st.sampled_from([0, 0, 0, 2]))
        items = tuple(Item(message=one) for one in request.messages[first:])
        for item in items:
            if data.draw(st.integers(0, 5)) == 0:
                item.message.native.Clear()
                item.message.parts[0].text.text = "less"
        same = next(
            (at for at, pair in enumerate(zip(shown, items, strict=False)) if pair[0] != pair[1]),
            min(len(shown), len(items)),
        )
        shown = (*shown[:same], *items[same:])
        addition = data.draw(st.sampled_from(["", "", "Notes."]))
        assembly = Assembly(shown, AssembleResponse(system_prompt_addition=addition))
        written = writer.written(request, assembly)
        assert written == Writer().written(request, assembly)
        whole = [item.message.id for item in shown if item.message.native.format] == request.ids
        assert (written == body) == (whole and not addition)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], ["Notes."]),
        (["Be brief."], ["Be brief.\n\nNotes."]),
        (["Be brief.", [{"type": "text", "text": "\u00e9"}]], ["Be brief.", ["\u00e9", "Notes."]]),
    ],
)
def test_what_is_added_to_instructions_makes_no_message_beside_them(
    before: list[Any], after: list[Any]
) -> None:
    """Templates of models take one message of instructions, at the beginning."""
    leading = [{"role": "developer", "content": one, "name": "n"} for one in before]
    body = json.dumps({"messages": [*leading, *talk("a", "b")]}).encode()
    request = Reader().read(CHAT, body, "talk")
    assembly = Assembly(
        tuple(Item(message=one) for one in request.messages),
        AssembleResponse(system_prompt_addition="Notes."),
    )
    sent = json.loads(Writer().written(request, assembly))["messages"]
    assert sent[len(after) :] == talk("a", "b")
    for row, first, words in zip(sent, leading or [{"role": "system"}], after, strict=False):
        given = row["content"]
        assert words == (given if isinstance(given, str) else [one["text"] for one in given])
        assert {**row, "content": ""} == {**first, "content": ""}


def test_what_the_client_comes_to_hold_is_written_as_it_has_it() -> None:
    dialect = dialect_of("/v1/chat/completions")
    assert dialect is not None
    said, reader, writer = talk("a", "b"), Reader(), Writer()
    short, long = (
        reader.read(dialect, json.dumps({"messages": said[:end]}).encode(), "talk")
        for end in (1, 2)
    )
    items = tuple(Item(message=one) for one in long.messages)
    items[1].message.name = "of the service"
    before, after = (
        writer.written(one, Assembly(items, AssembleResponse())) for one in (short, long)
    )
    assert before != after == long.document.body


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.path)
@pytest.mark.parametrize(
    "reply", [b"", b"{}", b"[]", b"null", b'{"choices": [{}]}', b'{"type": "message"}', b"\xff"]
)
def test_a_reply_that_is_none_is_not_recorded_and_stops_nothing(dialect: Any, reply: bytes) -> None:
    for kind, raw in (
        ("application/json", reply),
        ("text/event-stream", b"data: " + reply + b"\n\n"),
    ):
        copy = ReplyCopy(dialect, kind, "")
        copy.take(raw)
        assert copy.reply() is None
    packed = ReplyCopy(dialect, "application/json", "zstd")
    packed.take(reply)
    assert packed.reply() is None


def test_of_several_choices_none_is_recorded() -> None:
    choices = [{"message": {"role": "assistant", "content": word}} for word in "ab"]
    assert CHAT.whole({"choices": choices}) is None


def test_dialects_are_known_by_the_end_of_the_path() -> None:
    assert dialect_of("/openai/v1/chat/completions/") is CHAT
    assert dialect_of("/v1/messages") is ANTHROPIC
    assert dialect_of("/v1/messages/count_tokens") is None


def test_windows_are_those_of_the_first_pattern_that_fits() -> None:
    windows = Windows.of(["gpt-5*=400000", "128000"])
    assert [windows.window(model) for model in ("gpt-5-mini", "x")] == [400_000, 128_000]
    assert Windows().window("x") is None
    for wrong in ("x", "x=", "x=-1", "0"):
        with pytest.raises(ValueError, match="is needed"):
            Windows.of([wrong])


@pytest.mark.parametrize(
    "words", [["--window", "many"], ["--openai", "localhost"], ["--port", "x"]]
)
def test_a_wrong_word_is_said_and_nothing_is_served(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert words[1] in capsys.readouterr().err


def test_help_teaches_what_to_set(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    printed = capsys.readouterr().out
    for word in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "X-ContextEngine-Session", "--window"):
        assert word in printed
