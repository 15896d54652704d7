"""Turns, as a harness sees them; and what a replay counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from contextengine.formats import read_transcript
from contextengine.messages import assistant, system, tool_result, user
from contextengine.types import Item, Message, Origin, SummaryInfo
from contextengine_server.cli.harness import TranscriptTurn, turns_of, without_ids
from contextengine_server.cli.replay import shown_messages

DATA = Path(__file__).parents[2] / "data"


def test_a_turn_goes_from_a_user_message_to_the_next() -> None:
    messages = [
        system("policy"),
        user("one"),
        assistant("calling"),
        tool_result("c", "result"),
        assistant("done"),
        user("two"),
        user("two again"),
        assistant("answer"),
    ]
    assert turns_of(messages) == [
        TranscriptTurn(0, 5, (2, 4)),
        TranscriptTurn(5, 6, (6,)),
        TranscriptTurn(6, 8, (7,)),
    ]


@pytest.mark.parametrize(
    ("messages", "turns"),
    [
        ([], []),
        ([system("policy")], [TranscriptTurn(0, 1, (1,))]),
        ([assistant("hello"), user("hi"), assistant("yes")], [TranscriptTurn(0, 3, (2,))]),
    ],
)
def test_odd_beginnings(messages: list[Message], turns: list[TranscriptTurn]) -> None:
    assert turns_of(messages) == turns


@pytest.mark.parametrize("name", ["airline_transcripts.jsonl", "coding_session.pi.jsonl"])
def test_turns_cover_every_message_of_the_real_transcripts_once(name: str) -> None:
    for transcript in read_transcript(DATA / name):
        turns = turns_of(transcript.messages)
        assert [turn.first for turn in turns[1:]] == [turn.last for turn in turns[:-1]]
        assert (turns[0].first, turns[-1].last) == (0, len(transcript.messages))
        for turn in turns:
            assert turn.calls
            assert all(turn.first <= known <= turn.last for known in turn.calls)


def test_ids_are_taken_off_copies() -> None:
    message = user("hello", id="m-1")
    assert [copy.id for copy in without_ids([message])] == [""]
    assert message.id == "m-1"


def test_a_message_in_two_items_is_shown_once() -> None:
    shown = [Item(origin=Origin(sequence=n)) for n in (3, 4, 4)]
    summary = Item(origin=Origin(summary_id="s"), summary=SummaryInfo(message_count=2))
    assert shown_messages([summary, *shown]) == 2
