"""The session store of Hermes, read: each message once, whatever compactions wrote again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from contextengine.formats import Transcript, TranscriptError
from contextengine.messages import text_of
from contextengine.types import ROLE_TOOL
from contextengine_server.cli.imports.files import read_sessions
from tests.unit.cli.imports.hosts import HERMES, written

ARCHIVED = {"active": 0, "compacted": 1}
CALLS = '[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]'
ONE = {"role": "user", "content": "one"}
CALLED = {"role": "assistant", "content": "", "tool_calls": CALLS, "reasoning_content": "where?"}
RESULT = {"role": "tool", "content": "a.txt", "tool_call_id": "c1", "tool_name": "ls"}
FIRST = {"role": "assistant", "content": "first"}
TWO = {"role": "user", "content": "two"}
SECOND = {"role": "assistant", "content": "second"}
THREE = {"role": "user", "content": '\x00json:[{"type":"text","text":"three"}]'}


def summary(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": f"[CONTEXT COMPACTION — REFERENCE ONLY] {text}"}


def read(
    tmp_path: Path, rows: Iterable[dict[str, Any]], sessions: Iterable[dict[str, Any]] = ()
) -> list[Transcript]:
    numbered = [
        {"id": number, "session_id": "s", "timestamp": 1795466528.5, **row}
        for number, row in enumerate(rows, 1)
    ]
    one = {"id": "s", "session_key": "main", "model": "m", "started_at": 1.0}
    file = tmp_path / "state.db"
    file.unlink(missing_ok=True)
    written(file, HERMES, {"sessions": list(sessions) or [one], "messages": numbered})
    return list(read_sessions(file))


def test_rows_are_messages_of_a_chat(tmp_path: Path) -> None:
    (session,) = read(tmp_path, [ONE, CALLED, RESULT, FIRST, THREE])
    assert (session.session_id, session.session_key, session.model) == ("s", "main", "m")
    texts = [text_of(message) for message in session.messages]
    assert texts == ["one", "", "a.txt", "first", "three"]
    assert [message.id for message in session.messages[:2]] == ["hermes:1", "hermes:2"]
    assert session.messages[0].timestamp.ToJsonString() == "2026-11-23T20:42:08.500Z"
    call = [part.tool_call for part in session.messages[1].parts if part.HasField("tool_call")]
    assert [one.call_id for one in call] == ["c1"]
    assert b'"reasoning_content":"where?"' in session.messages[1].native.json
    assert session.messages[2].role == ROLE_TOOL


def test_a_compaction_in_place_leaves_each_message_once_and_its_summary(tmp_path: Path) -> None:
    rows = [
        *({**row, **ARCHIVED} for row in (ONE, CALLED, RESULT, FIRST, TWO, SECOND)),
        *({**row, **ARCHIVED} for row in (ONE, summary("they looked"), TWO, SECOND)),
        {**THREE, **ARCHIVED},
        *(ONE, summary("they looked twice"), THREE),
        {"role": "assistant", "content": "third"},
    ]
    (session,) = read(tmp_path, rows)
    texts = [text_of(message) for message in session.messages]
    assert texts == ["one", "", "a.txt", "first", "two", "second", "three", "third"]
    assert [(one.first, one.count) for one in session.summaries] == [(0, 4), (0, 6)]
    assert session.summaries[1].text.endswith("they looked twice")
    assert session.left_out == {"copies that its compactions made": 5}


def test_what_the_user_took_back_stays_behind(tmp_path: Path) -> None:
    (session,) = read(tmp_path, [ONE, {**FIRST, "active": 0}, TWO, SECOND])
    assert [text_of(message) for message in session.messages] == ["one", "two", "second"]
    assert session.left_out == {"messages that the user took back": 1}


def test_words_that_are_said_twice_are_there_twice(tmp_path: Path) -> None:
    (session,) = read(tmp_path, [ONE, FIRST, ONE, FIRST, ONE])
    assert len(session.messages) == 5
    assert session.left_out == {}


def test_sessions_that_a_compaction_parted_are_one(tmp_path: Path) -> None:
    sessions = [
        {"id": "a", "started_at": 1.0, "end_reason": "compression"},
        {"id": "b", "started_at": 2.0, "parent_session_id": "a"},
        {"id": "c", "started_at": 3.0, "parent_session_id": "b"},
    ]
    rows = [
        *({**row, "session_id": "a"} for row in (ONE, FIRST, TWO, SECOND)),
        *({**row, "session_id": "b"} for row in (summary("one"), TWO, SECOND, THREE)),
        {**ONE, "session_id": "c"},
    ]
    parted, child = read(tmp_path, rows, sessions)
    assert parted.session_id == "b"
    assert [text_of(one) for one in parted.messages] == ["one", "first", "two", "second", "three"]
    assert [(one.first, one.count) for one in parted.summaries] == [(0, 2)]
    # A child that no compaction made is a conversation of its own.
    assert (child.session_id, [text_of(one) for one in child.messages]) == ("c", ["one"])


def test_what_is_wrong_is_said_with_the_row(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="message 2: role"):
        read(tmp_path, [ONE, {"role": "ghost", "content": "boo"}])
    with pytest.raises(TranscriptError, match="message 1: "):
        read(tmp_path, [{"role": "assistant", "content": "", "tool_calls": "[{"}])
