"""What an engine left out of a list of messages, and what it wrote there."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from contextengine_server.engines.rewrite import (
    Change,
    ChatMessage,
    Place,
    read_changes,
    wrong_with,
)


def says(role: str, text: str, **more: Any) -> ChatMessage:
    return {"role": role, "content": text, **more}


def calls(*ids: str) -> ChatMessage:
    made = [
        {"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in ids
    ]
    return says("assistant", "", tool_calls=made)


def result(id: str, text: str = "found") -> ChatMessage:
    return says("tool", text, tool_call_id=id)


GIVEN = [
    says("system", "be brief and correct"),  # step 0, fixed
    says("user", "what is in the first file?"),  # 1
    calls("a", "b"),  # 2
    result("a", "one"),
    result("b", "two"),
    says("assistant", "ok"),  # 3
    says("user", "ok"),  # 4
    says("assistant", "ok"),  # 5
    says("user", "what is in the last file?"),  # 6, fixed
]
PLACES = [Place(step, step, fixed=step in (0, 6)) for step in (0, 1, 2, 2, 2, 3, 4, 5, 6)]


def read(*answer: ChatMessage) -> list[Change]:
    return read_changes(GIVEN, PLACES, answer)


NOTE = says("assistant", "a note")


@pytest.mark.parametrize("again", [lambda list_: list_, copy.deepcopy], ids=["same", "copies"])
def test_the_list_as_it_was_is_no_change(again: Any) -> None:
    assert read(*again(GIVEN)) == []


def test_a_stretch_and_the_note_in_its_place() -> None:
    assert read(*GIVEN[:2], NOTE, *GIVEN[6:]) == [Change(2, 3, text="a note")]


def test_a_stretch_with_nothing_in_its_place() -> None:
    assert read(GIVEN[0], *GIVEN[5:]) == [Change(1, 2)]


def test_stretches_have_a_note_each() -> None:
    middle = GIVEN[5]
    other = says("user", "another note")
    given = [says("assistant", f"reply number {n}") for n in range(7)]
    places = [Place(n, n) for n in range(7)]
    answer = [given[0], NOTE, given[3], other, given[6]]
    assert read_changes(given, places, answer) == [
        Change(1, 2, text="a note"),
        Change(4, 5, text="another note"),
    ]
    assert middle in GIVEN


def test_a_step_of_which_anything_stayed_stays_whole() -> None:
    """A call does not part from its results, whichever of them an engine left out."""
    for left in ([2], [3], [4], [3, 4]):
        assert read(*(one for index, one in enumerate(GIVEN) if index not in left)) == []


def test_what_a_law_keeps_is_no_change() -> None:
    assert read(*GIVEN[1:-1]) == []
    assert read() == [Change(1, 5)]


def test_a_text_that_is_there_twice_is_found_where_it_stands() -> None:
    """The last reply stays, and not the first of the same words."""
    assert read(GIVEN[0], NOTE, *copy.deepcopy(GIVEN[7:])) == [Change(1, 4, text="a note")]


def test_other_words_of_a_result_and_of_a_call_are_let_be() -> None:
    shorter = [
        *copy.deepcopy(GIVEN[:3]), result("a", "[cleared]"), result("b", "[cleared]"), *GIVEN[5:]
    ]  # fmt: skip
    assert read(*shorter) == []


def test_other_words_of_every_message_are_no_notes() -> None:
    """An engine that writes into the messages that it was given leaves none out."""
    assert read(*[{**message, "content": "GONE"} for message in copy.deepcopy(GIVEN)]) == []


@pytest.mark.parametrize(
    "merged",
    [
        "{}\n\nSUMMARY of before",
        "SUMMARY of before\n\n{}",
        "SUMMARY\n{}\nof before",
    ],
)
def test_a_note_that_quotes_the_message_beside_it(merged: str) -> None:
    """Some engines write their summary into the first message that stays."""
    asked = "what is in the middle file?"
    given = [says("user", f"question {n}, and why?") for n in range(3)] + [says("user", asked)]
    places = [Place(n, n) for n in range(4)]
    answer = [given[0], says("user", merged.format(asked))]
    [change] = read_changes(given, places, answer)
    assert (change.first, change.last) == (1, 2)
    assert change.text.split() == ["SUMMARY", "of", "before"]


def test_a_note_in_a_message_that_calls_tools() -> None:
    """Such a message says nothing itself, as a rule."""
    longer = GIVEN[2] | {"content": "SUMMARY of before"}
    assert read(GIVEN[0], longer, *GIVEN[3:]) == [Change(1, 1, text="SUMMARY of before")]


def test_what_is_added_to_what_a_law_keeps_is_no_note() -> None:
    longer = says("system", "be brief and correct\n\n[Earlier turns were compacted.]")
    assert read(longer, *GIVEN[5:]) == [Change(1, 2)]


def test_a_summary_that_was_left_out_is_replaced_by_the_newer() -> None:
    given = [says("user", "the summary of before"), *GIVEN[5:]]
    places = [Place(0, 2, "s1"), *PLACES[5:]]
    assert read_changes(given, places, [NOTE, *GIVEN[8:]]) == [Change(0, 5, ("s1",), "a note")]
    assert read_changes(given, places, [given[0], NOTE, *GIVEN[8:]]) == [
        Change(3, 5, text="a note")
    ]
    assert read_changes(given, places, GIVEN[5:]) == [], "a summary does not go for nothing"


def test_whatever_is_answered_the_changes_are_of_the_list() -> None:
    """In order, apart from each other, within it, and over nothing that a law keeps."""
    chance = random.Random(7)
    pool = [*GIVEN, NOTE, says("user", "ok"), says("tool", "x", tool_call_id="zzz"), calls("a")]
    for _ in range(2_000):
        answer = [copy.deepcopy(chance.choice(pool)) for _ in range(chance.randrange(12))]
        changes = read(*answer)
        reached = 0
        for change in changes:
            assert reached < change.first <= change.last < 6
            reached = change.last
        assert read(*answer) == changes


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (None, "answered a NoneType and no list of messages"),
        ((NOTE,), "answered a tuple and no list of messages"),
        ([NOTE, 3], "answered a list whose item 1 is a int"),
        ([{"role": "robot", "content": ""}], "item 0 has no role of a message"),
        ([{"role": ["user"], "content": ""}], "item 0 has no role of a message"),
        (
            [{"role": "tool", "content": "", "tool_call_id": ["a"]}],
            "a tool_call_id that is no text",
        ),
        ([{"role": "user", "content": 3}], "item 0 has a content that is neither text nor list"),
        ([{"role": "user", "content": [{"type": "text", "text": "x"}]}], ""),
        ([{"role": "assistant", "tool_calls": []}], ""),
        ([], ""),
    ],
)
def test_what_is_no_list_of_messages_is_said(answer: Any, wrong: str) -> None:
    assert wrong in wrong_with(answer)
    assert bool(wrong) == bool(wrong_with(answer))
