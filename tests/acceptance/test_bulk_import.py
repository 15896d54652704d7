"""Many sessions are imported at once: one that is damaged, refused or half written stops no
other, and what became of each is said."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode

from contextengine import ContextEngineError
from contextengine_server.cli.imports import command
from contextengine_server.cli.imports.session import store
from tests.acceptance.shell import CODING, Shell
from tests.unit.cli.imports.hosts import LOSSLESS_CLAW, written


def chat(file: Path, session: str, words: str) -> None:
    line = {"session_id": session, "messages": [{"role": "user", "content": words}]}
    file.write_text(json.dumps(line) + "\n", encoding="utf-8")


def conversations(file: Path) -> Path:
    """Three conversations of lossless-claw, of a message and a summary each."""
    numbers = (1, 2, 3)
    said = [
        {"message_id": n, "conversation_id": n, "seq": 1, "role": "user", "content": f"hello {n}"}
        for n in numbers
    ]
    told = [
        {"summary_id": f"s{n}", "conversation_id": n, "depth": 0, "content": "hi"} for n in numbers
    ]
    return written(
        file,
        LOSSLESS_CLAW,
        {
            "conversations": [{"conversation_id": n, "session_id": f"talk-{n}"} for n in numbers],
            "messages": said,
            "summaries": told,
            "summary_messages": [{"summary_id": f"s{n}", "message_id": n} for n in numbers],
        },
    )


def names(shell: Shell, agent: str) -> set[str]:
    listed = shell.run("sessions", "list", "--agent", agent, "--json").json()
    return {row["session_id"] for row in listed}


def test_a_session_that_is_refused_stops_no_other(shell: Shell) -> None:
    folder = shell.directory / "refused"
    folder.mkdir()
    for name, session in (("a", "same"), ("b", "same"), ("c", "other")):
        chat(folder / f"{name}.jsonl", session, f"hello from {name}")
    for stored in (2, 0):  # and the same command again gets as far
        done = shell.run("import", folder, "--agent", "refused", status=1)
        assert f"2 sessions of agent 'refused': {stored} messages stored" in done.text
        assert f"{folder / 'b.jsonl'}: session 'same': SESSION_EXISTS: " in done.err
        assert "1 file of 3 could not be imported" in done.err
    assert names(shell, "refused") == {"same", "other"}
    told = shell.run("import", folder, "--agent", "refused", "--json", status=1).json()
    assert [one["session_id"] for one in told["sessions"]] == ["same", "other"]
    assert len(told["failures"]) == 1


@pytest.mark.parametrize(
    ("change", "whole"),
    [
        ("UPDATE messages SET content = x'00ff' WHERE message_id = 2", False),
        ("UPDATE messages SET content = CAST(x'61ff62' AS TEXT) WHERE message_id = 2", True),
        ("UPDATE summaries SET content = NULL WHERE conversation_id = 2", True),
        ("UPDATE summaries SET content = x'ff' WHERE conversation_id = 2", True),
    ],
    ids=["bytes", "no UTF-8", "no summary", "a summary of bytes"],
)
def test_a_conversation_that_is_damaged_hides_none(shell: Shell, change: str, whole: bool) -> None:
    agent = f"claw-{abs(hash(change))}"
    file = conversations(shell.directory / f"{agent}.db")
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(change)
    done = shell.run("import", file, "--agent", agent, status=0 if whole else 1)
    assert names(shell, agent) == {"talk-1", "talk-3", *(["talk-2"] if whole else [])}
    assert ("session talk-2" in done.err) is not whole
    assert f"{3 if whole else 2} sessions of agent" in done.text


@pytest.mark.parametrize("tail", [b'{"type": "message", "mess', b"\x00" * 100])
def test_the_last_line_may_be_half_written(shell: Shell, tail: bytes) -> None:
    agent = f"torn-{len(tail)}"
    lines = CODING.read_bytes().splitlines(keepends=True)
    file = shell.directory / f"{agent}.jsonl"
    file.write_bytes(b"".join(lines[:50]) + tail)
    first = shell.run("import", file, "--agent", agent)
    assert "left out: 1 unfinished last line" in first.text
    file.write_bytes(b"".join(lines[:60]))
    again = shell.run("import", file, "--agent", agent, "--json").json()["sessions"][0]
    assert again["stored"] > 0
    assert again["known"] > 0
    assert "unfinished last line" not in again["left_out"]


def test_what_was_done_is_said_where_the_service_goes_away(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shell.here:
        pytest.skip("the command is a process of its own")
    folder, tried = shell.directory / "away", list[str]()
    folder.mkdir()
    for name in "abc":
        chat(folder / f"{name}.jsonl", name, "hello")

    async def leaving(client: Any, agent: str, transcript: Any, advance: Any) -> Any:
        tried.append(transcript.session_id)
        if len(tried) == 2:
            raise ContextEngineError("gone", code=StatusCode.UNAVAILABLE)
        return await store(client, agent, transcript, advance)

    monkeypatch.setattr(command, "store", leaving)
    done = shell.run("import", folder, "--agent", "away", status=1)
    assert "1 session of agent 'away': 1 messages stored" in done.text
    assert "gone" in done.err
    assert tried == ["a", "b"], "nothing more is tried"
