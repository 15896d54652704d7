"""Session files of Pi and OpenClaw: the branch that goes on, summaries, and what is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine.formats import (
    HostSummary,
    Transcript,
    TranscriptError,
    from_pi,
    read_transcript,
    to_pi,
)
from contextengine.messages import text_of
from contextengine.types import ROLE_ASSISTANT, ROLE_CUSTOM
from tests.unit.client.pi_files import entry, said, written

A, B = said("a", None, "question"), said("b", "a", "reply", "assistant")


def read(tmp_path: Path, *entries: dict[str, Any]) -> Transcript:
    (session,) = read_transcript(written(tmp_path / "s.jsonl", *entries))
    return session


def test_the_branch_that_ends_with_the_last_entry_is_the_conversation(tmp_path: Path) -> None:
    session = read(
        tmp_path,
        A,
        B,
        said("c", "b", "ABANDONED question"),
        said("d", "c", "ABANDONED answer", "assistant"),
        said("e", "b", "edited question"),
        said("f", "e", "answer", "assistant"),
    )
    assert session.session_id == "pi-1"
    assert [message.id for message in session.messages] == ["a", "b", "e", "f"]
    assert session.left_out == {"entries of branches that were left": 2}
    assert session.abandoned == {"c", "d"}


def test_entries_that_a_model_sees_are_what_they_are(tmp_path: Path) -> None:
    bash = {"role": "bashExecution", "command": "ls", "output": "a.txt", "excludeFromContext": True}
    entries = (
        A,
        entry("branch_summary", "b", "a", fromId="x", summary="the other way failed"),
        entry("custom_message", "c", "b", customType="plan", content="step 1", display=True),
        {"type": "message", "id": "d", "parentId": "c", "message": bash},
        entry("custom", "e", "d", customType="state", data={"n": 1}),
        entry("label", "f", "e", targetId="a", label="here"),
        entry("thinking_level_change", "g", "f", thinkingLevel="high"),
        entry("of_the_future", "h", "g"),
    )
    session = read(tmp_path, *entries)
    _, branch, custom, shell = session.messages
    assert [(m.role, m.custom_role, text_of(m)) for m in (branch, custom, shell)] == [
        (ROLE_CUSTOM, "branchSummary", "the other way failed"),
        (ROLE_CUSTOM, "custom", "step 1"),
        (ROLE_CUSTOM, "bashExecution", "$ ls\na.txt"),
    ]
    assert dict(custom.labels) == {"custom_type": "plan"}
    assert dict(shell.labels) == {"excluded": "true"}
    assert json.loads(branch.native.json) == entries[1]
    assert session.left_out == {
        "states of extensions": 1,
        "labels": 1,
        "changes of the thinking level": 1,
        "entries of type of_the_future": 1,
    }
    assert [message.id for message in from_pi(entries)] == ["a", "b", "c", "d"]


def test_what_openclaw_keeps_for_people_alone_is_shown_to_no_model(tmp_path: Path) -> None:
    command = said("b", "a", "/status")
    command["message"]["excludeFromContext"] = True
    mirror = said("c", "b", "hello", "assistant")
    mirror["message"] |= {"provider": "openclaw", "model": "delivery-mirror"}
    said_by_model = said("d", "c", "hello", "assistant")
    messages = read(tmp_path, A, command, mirror, said_by_model).messages
    assert [(one.role, one.custom_role, dict(one.labels)) for one in messages[1:]] == [
        (ROLE_CUSTOM, "user", {"excluded": "true"}),
        (ROLE_CUSTOM, "assistant", {"excluded": "true"}),
        (ROLE_ASSISTANT, "", {}),
    ]
    assert to_pi(messages)[1:3] == [command["message"], mirror["message"]]


def test_compactions_are_summaries_of_what_stands_before_what_they_keep(tmp_path: Path) -> None:
    session = read(
        tmp_path,
        A,
        B,
        said("c", "b", "two"),
        entry("compaction", "k", "c", summary="they met", firstKeptEntryId="c", tokensBefore=9),
        said("d", "k", "three"),
        entry("compaction", "l", "d", summary="all of it", firstKeptEntryId="elsewhere"),
        said("e", "l", "four"),
    )
    assert session.summaries == (HostSummary("k", 2, "they met"), HostSummary("l", 4, "all of it"))
    assert [message.id for message in session.messages] == ["a", "b", "c", "d", "e"]
    assert session.left_out == {}


def test_a_file_of_the_first_version_is_one_branch(tmp_path: Path) -> None:
    entries = [said("", None, text) for text in ("one", "two", "three")]
    for one in entries:
        del one["id"], one["parentId"]
    compaction = {"type": "compaction", "summary": "one", "firstKeptEntryIndex": 2}
    session = read(tmp_path, *entries[:2], compaction, entries[2])
    assert [text_of(message) for message in session.messages] == ["one", "two", "three"]
    assert session.summaries == (HostSummary("", 1, "one"),)


@pytest.mark.parametrize(
    "wrong",
    [
        entry("compaction", "c", "b", firstKeptEntryId="a"),
        {"type": "message", "id": "c", "parentId": "b", "message": {"role": "toolResult"}},
    ],
)
def test_a_bad_entry_is_named_by_its_line(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(TranscriptError) as caught:
        read(tmp_path, A, B, wrong)
    assert caught.value.line == 4


def test_entries_in_a_circle_end(tmp_path: Path) -> None:
    session = read(tmp_path, said("a", "b", "one"), said("b", "a", "two"))
    assert [message.id for message in session.messages] == ["a", "b"]


@given(parents=st.lists(st.integers(min_value=-1, max_value=20), min_size=1, max_size=20))
def test_every_message_is_in_the_conversation_or_left_out(
    tmp_path_factory: pytest.TempPathFactory, parents: list[int]
) -> None:
    entries = [
        said(f"e{at}", f"e{parent % at}" if at and parent >= 0 else None, f"text {at}")
        for at, parent in enumerate(parents)
    ]
    session = read(tmp_path_factory.mktemp("tree"), *entries)
    path, at = [], len(entries) - 1
    while True:
        path.append(f"e{at}")
        parent = entries[at]["parentId"]
        if parent is None:
            break
        at = int(parent[1:])
    assert [message.id for message in session.messages] == path[::-1]
    assert session.abandoned == {one["id"] for one in entries} - set(path)
    assert sum(session.left_out.values()) == len(entries) - len(path)
