"""The database of lossless-claw, read: messages as they were, summaries with what they cover."""

from __future__ import annotations

from pathlib import Path

import pytest

from contextengine.formats import from_pi
from contextengine.messages import text_of
from contextengine.types import ROLE_ASSISTANT, ROLE_TOOL
from contextengine_server.cli.imports.files import read_sessions
from contextengine_server.cli.output import CommandFailed
from tests.unit.cli.imports.hosts import LOSSLESS_CLAW, lossless_claw, written


def test_conversations_are_sessions_of_their_key_the_newest_last(tmp_path: Path) -> None:
    old, new = read_sessions(lossless_claw(tmp_path / "lcm.db"))
    assert [(one.session_id, one.session_key) for one in (old, new)] == [
        ("s-old", "main"),
        ("s-new", "main"),
    ]
    assert [text_of(message) for message in old.messages] == ["long ago"]
    assert [message.id for message in new.messages[:3]] == ["lcm:1", "e2", "e3"]
    assert new.messages[0].timestamp.ToJsonString() == "2026-11-01T10:00:00Z"


def test_blocks_are_what_the_parts_came_from(tmp_path: Path) -> None:
    _, new = read_sessions(lossless_claw(tmp_path / "lcm.db"))
    call, result = new.messages[8:]
    assert (call.role, result.role) == (ROLE_ASSISTANT, ROLE_TOOL)
    thought, called = call.parts
    assert (thought.reasoning.text, thought.reasoning.signature) == ("where?", b"sig")
    assert (called.tool_call.call_id, called.tool_call.name) == ("c1", "ls")
    assert called.tool_call.arguments_json == b'{"path":"."}'
    answer = result.parts[0].tool_result
    assert (answer.call_id, answer.is_error, text_of(result)) == ("c1", True, "a.txt")
    assert list(from_pi([call.native.json])[0].parts) == list(call.parts)


def test_summaries_stand_for_what_they_cover_leaves_first(tmp_path: Path) -> None:
    _, new = read_sessions(lossless_claw(tmp_path / "lcm.db"))
    assert [(one.id, one.first, one.count) for one in new.summaries] == [
        ("sum_1", 0, 2),
        ("sum_2", 2, 4),
        ("sum_b", 0, 4),
    ]
    assert new.left_out == {"summaries whose messages do not stand together": 1}


def test_parts_without_their_block_are_made_of_columns(tmp_path: Path) -> None:
    file = written(
        tmp_path / "lcm.db",
        LOSSLESS_CLAW,
        {
            "conversations": [{"conversation_id": 1, "session_id": None}],
            "messages": [
                {"message_id": 1, "conversation_id": 1, "seq": 1, "role": "assistant"},
                {"message_id": 2, "conversation_id": 1, "seq": 2, "role": "tool"},
                {"message_id": 3, "conversation_id": 1, "seq": 3, "role": "user", "content": "go"},
            ],
            "message_parts": [
                {"part_id": "a", "message_id": 1, "ordinal": 0, "part_type": "text",
                 "text_content": "I look."},
                {"part_id": "b", "message_id": 1, "ordinal": 1, "part_type": "tool",
                 "tool_call_id": "c", "tool_name": "ls", "tool_input": '{"a": 1}'},
                {"part_id": "c", "message_id": 2, "ordinal": 0, "part_type": "tool",
                 "tool_call_id": "c", "tool_name": "ls", "tool_output": "a.txt",
                 "metadata": "no JSON"},
            ],
        },
    )  # fmt: skip
    (session,) = read_sessions(file)
    assert session.session_id == "lcm-1"
    reply, result, request = session.messages
    assert [part.WhichOneof("kind") for part in reply.parts] == ["text", "tool_call"]
    assert reply.parts[1].tool_call.arguments_json == b'{"a":1}'
    assert (result.parts[0].tool_result.call_id, text_of(result)) == ("c", "a.txt")
    assert text_of(request) == "go"


def test_a_database_of_others_is_refused_by_name(tmp_path: Path) -> None:
    file = written(tmp_path / "o.db", "CREATE TABLE notes (id INTEGER);", {})
    with pytest.raises(CommandFailed, match="a database of none of lossless-claw, hermes"):
        list(read_sessions(file))
    with pytest.raises(CommandFailed, match="is a database of lossless-claw, and --format is pi"):
        list(read_sessions(lossless_claw(tmp_path / "lcm.db"), "pi"))
    torn = tmp_path / "torn.db"
    torn.write_bytes(b"SQLite format 3\x00" + b"\x07" * 4096)
    with pytest.raises(CommandFailed, match="cannot be read as a database"):
        list(read_sessions(torn))
