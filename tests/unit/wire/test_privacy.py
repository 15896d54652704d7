"""Private reasoning reaches nobody but the model that wrote it: not a summarizer, not a note, not
the search index, not a text for another model."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.api.projection_items import list_items
from contextengine_server.compaction.summary_request import source_message
from contextengine_server.projection.projection import Projection
from contextengine_server.projection.targets import OWN
from contextengine_server.projection.task import Task
from contextengine_server.recall.texts import text_of
from contextengine_server.testing.engine.views import SHAPER, entry_of
from contextengine_server.testing.oracle.pairs import ViewRow
from contextengine_server.wire.privacy import reasoning_ranges, reasons, said, without_reasoning
from contextengine_server.wire.slots import item_of

SECRET = "CANARY"
"""Stands in every private text of these tests, and in no other."""

TAGS = ("think", "thinking", "thought", "reasoning", "antThinking", "THINK")


@dataclass(frozen=True)
class Piece:
    """A part of a message, and the words that it says openly."""

    part: pb.Part
    words: str = ""


def _text(text: str) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=text))


words = st.sampled_from(["alpha", "beta", "gamma 42", "a < b", "delta\n", "ünïcode"])
secrets = st.sampled_from(
    [SECRET, f"{SECRET} why\nnot", f"first {SECRET}. <b> second {SECRET}", f"\n{SECRET}\n"]
)
tags = st.sampled_from(TAGS)


@st.composite
def tagged(draw: st.DrawFn) -> Piece:
    before, after, tag = draw(words), draw(words), draw(tags)
    more = draw(st.sampled_from(["", " ", ' kind="x"']))
    hidden = draw(secrets)
    if draw(st.booleans()):
        hidden += f"<{tag}>{draw(secrets)}</{tag}>"
    return Piece(_text(f"{before}<{tag}{more}>{hidden}</{tag}>{after}"), f"{before}{after}")


spoken = words.map(lambda text: Piece(_text(text), text))
whole = st.builds(
    lambda text, signature, data: Piece(
        pb.Part(reasoning=pb.ReasoningPart(text=text, signature=signature, redacted_data=data))
    ),
    secrets,
    st.sampled_from([b"", b"sig"]),
    st.sampled_from([b"", SECRET.encode()]),
)
opaque = st.builds(
    lambda text, kind, named, form: Piece(
        pb.Part(
            opaque=pb.OpaquePart(
                format=form,
                type=kind if named else "",
                json=(
                    b'{"type":"%s","summary":"%s"}'
                    % (kind.encode(), text.replace("\n", " ").replace('"', "").encode())
                ),
            )
        )
    ),
    secrets,
    st.sampled_from(["reasoning", "thinking", "redacted_thinking"]),
    st.booleans(),
    st.sampled_from(["openai.responses", "vendor", ""]),
)


@st.composite
def assistants(draw: st.DrawFn) -> tuple[pb.Message, list[str]]:
    pieces = draw(st.lists(st.one_of(tagged(), spoken, whole, opaque), max_size=6))
    message = pb.Message(
        role=draw(st.sampled_from([pb.ROLE_ASSISTANT, pb.ROLE_CUSTOM])),
        custom_role="critic",
        parts=[piece.part for piece in pieces],
        provider="deepseek",
        model="r1",
    )
    if message.role == pb.ROLE_ASSISTANT:
        message.custom_role = ""
    return message, [word for piece in pieces for word in piece.words.split()]


@st.composite
def answered(draw: st.DrawFn) -> list[pb.Message]:
    """A model's message, a call, and a result that holds another model's reasoning."""
    first, _ = draw(assistants())
    calling = pb.Message(role=pb.ROLE_ASSISTANT, provider="deepseek", model="r1")
    calling.parts.append(draw(whole).part)
    calling.parts.add().tool_call.CopyFrom(
        pb.ToolCallPart(call_id="c1", name="ask", arguments_json=b"{}")
    )
    result = pb.Message(role=pb.ROLE_TOOL)
    result.parts.add().tool_result.CopyFrom(
        pb.ToolResultPart(call_id="c1", name="ask", parts=[draw(whole).part, _text("forty-two")])
    )
    return [pb.Message(role=pb.ROLE_USER, parts=[_text("go")]), first, calling, result]


def shown_by(projection: Projection) -> str:
    parts = (
        projection.instructions, projection.prompt, projection.messages_json.decode(),
        projection.system_json.decode(), projection.turn_input_json.decode(),
        *(one.decode() for one in projection.inject_items_json),
    )  # fmt: skip
    return "\n".join(parts)


@given(assistants())
def test_no_summarizer_reads_reasoning_and_every_word_that_was_said(
    drawn: tuple[pb.Message, list[str]],
) -> None:
    message, expected = drawn
    before = message.SerializeToString(deterministic=True)
    source = source_message(entry_of(ViewRow(1, message, 1)))
    for text in (source.text, text_of(message)):
        assert SECRET not in text
        assert [word for word in text.split() if word in expected] == expected
    assert message.SerializeToString(deterministic=True) == before
    assert reasons(message) == (SECRET.encode() in before)


@given(answered())
def test_a_late_note_says_nothing_of_reasoning(messages: list[pb.Message]) -> None:
    note = item_of(SHAPER.note(entry_of(ViewRow(9, messages[-1], 9)), (0,)).frame)
    assert SECRET not in note.message.parts[0].text.text
    assert "forty-two" in note.message.parts[0].text.text


@pytest.mark.parametrize("target", OWN, ids=lambda target: target.name)
@given(messages=answered())
def test_no_projection_for_another_model_shows_reasoning(
    target: object, messages: list[pb.Message]
) -> None:
    chosen = next(one for one in OWN if one is target)
    for renderer in chosen.renderer_names:
        task = Task(items=list_items(messages), renderer=renderer, provider="other", model="else")
        assert SECRET not in shown_by(chosen.project(task))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>why</think>\n\nanswer", "\n\nanswer"),
        ("why\n</think>\n\nanswer", "\n\nanswer"),
        ("done\n<think>cut off", "done\n"),
        ("set the `<think>` tag yourself", "set the `<think>` tag yourself"),
        ("end it with `</think>` please", "end it with `</think>` please"),
        ("<think>a <think> b</think> answer", " answer"),
        ("<think>a</thought> b</think>c", "c"),
        ("<thinking>a</thinking>b<think>c</think>d", "bd"),
        ("<thinkpad>x</thinkpad>", "<thinkpad>x</thinkpad>"),
        ("", ""),
    ],
)
def test_what_is_left_of_a_text(text: str, left: str) -> None:
    assert without_reasoning([text]) == [left]


@given(st.text(st.sampled_from("a<>/ \nthinkTHOUGHT"), max_size=60), st.integers(0, 60))
def test_a_text_in_two_parts_is_read_as_one(text: str, at: int) -> None:
    assert "".join(without_reasoning([text[:at], text[at:]])) == without_reasoning([text])[0]
    ranges = reasoning_ranges(text)
    assert ranges == sorted(ranges)
    assert all(a[1] <= b[0] for a, b in pairwise(ranges))


@pytest.mark.parametrize("role", [pb.ROLE_USER, pb.ROLE_TOOL, pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER])
def test_what_others_say_of_the_tags_stays(role: pb.Role) -> None:
    message = pb.Message(role=role, parts=[_text("<think>is a tag</think>")])
    assert [part.text.text for part in said(message)] == ["<think>is a tag</think>"]
    assert not reasons(message)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("x<think>" * 60_000, "x<think>" * 60_000),
        ("x</think>y" * 60_000, "x</think>y" * 60_000),
        ("x<think>a</think>" * 60_000, "x" * 60_000),
        ("x<think>" * 60_000 + "</think>y", "xy"),
        ("x<think><thought>" * 60_000, "x<think><thought>" * 60_000),
        ("x" + " " * 200_000 + "<think>y", "x" + " " * 200_000 + "<think>y"),
    ],
    ids=["open", "closed", "pairs", "nested", "two names", "spaces"],
)
@pytest.mark.timeout(30)
def test_tags_all_over_a_long_line_are_read_once(text: str, left: str) -> None:
    """Read again for every tag, each of these would take minutes."""
    assert "".join(without_reasoning([text])) == left
