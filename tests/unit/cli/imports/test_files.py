"""Reading files for import and replay: an export is read back, and a file must be of the format
that is asked for."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToJson

from contextengine.formats import TranscriptError
from contextengine.messages import assistant, tool_call, user
from contextengine.types import ExportResponse, Message, SessionInfo
from contextengine_server.cli.imports.files import read_sessions, session_files
from contextengine_server.cli.output import CommandFailed
from tests.unit.cli.imports.hosts import lossless_claw

AIRLINE = Path(__file__).parents[3] / "data" / "airline_transcripts.jsonl"


def exported(path: Path, messages: list[Message], retired: tuple[int, ...] = ()) -> Path:
    rows = [ExportResponse(session=SessionInfo(session_id="s-1", model="m", provider="p"))]
    for sequence, message in enumerate(messages, 1):
        row = ExportResponse.ExportedMessage(
            sequence=sequence, message=message, retired_revision=9 if sequence in retired else 0
        )
        rows.append(ExportResponse(message=row))
    rows.append(ExportResponse(summary=ExportResponse.ExportedSummary(text="a summary")))
    lines = [MessageToJson(row, preserving_proto_field_name=True, indent=None) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_an_export_is_read_back_byte_for_byte(tmp_path: Path) -> None:
    messages = [
        user("häl\u0000lo", id="a"),
        assistant("", tool_calls=[tool_call("c", "look", b"\xff not json")]),
    ]
    messages[1].role = 99  # type: ignore[assignment]
    [found] = read_sessions(exported(tmp_path / "export.jsonl", messages))
    assert (found.session_id, found.model, found.provider) == ("s-1", "m", "p")
    assert [m.SerializeToString() for m in found.messages] == [
        m.SerializeToString() for m in messages
    ]


def test_rows_that_left_the_view_stay_behind(tmp_path: Path) -> None:
    [found] = read_sessions(exported(tmp_path / "e.jsonl", [user("a"), user("b")], retired=(1,)))
    assert [m.parts[0].text.text for m in found.messages] == ["b"]


def test_an_export_that_lost_lines_is_refused(tmp_path: Path) -> None:
    file = exported(tmp_path / "e.jsonl", [user("a"), user("b")])
    end = ExportResponse.End(message_count=2, summary_count=1, messages_sha256=sha256().digest())
    file.write_text(file.read_text() + MessageToJson(ExportResponse(end=end), indent=None))
    [found] = read_sessions(file)
    assert len(found.messages) == 2
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], *lines[2:]]))
    with pytest.raises(TranscriptError, match="has 1 messages and 1 summaries"):
        list(read_sessions(file))


def test_a_bad_line_of_an_export_is_named(tmp_path: Path) -> None:
    file = exported(tmp_path / "e.jsonl", [user("a")])
    lines = file.read_text().splitlines()
    lines[1] = lines[1].replace('"message"', '"massage"', 1)
    file.write_text("\n".join(lines))
    with pytest.raises(TranscriptError, match=r":2:.*massage"):
        list(read_sessions(file))


@pytest.mark.parametrize("format", ["pi", "anthropic", "jsonl"])
def test_a_file_of_another_format_than_asked_for_is_refused(format: str) -> None:
    with pytest.raises(CommandFailed, match=f"--format is {format}"):
        next(read_sessions(AIRLINE, format))


def test_the_format_that_it_is_in_is_taken(tmp_path: Path) -> None:
    assert next(read_sessions(AIRLINE, "openai")).session_id == "airline-000"
    assert next(read_sessions(exported(tmp_path / "e", [user("a")]), "jsonl")).session_id == "s-1"
    document = tmp_path / "chat.json"
    document.write_text(json.dumps({"messages": [{"role": "user", "content": "hello"}]}))
    assert next(read_sessions(document, "anthropic")).session_id == "chat"


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="cannot be read"):
        list(read_sessions(tmp_path / "none.jsonl"))


def test_a_folder_gives_the_files_that_are_read_and_counts_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "2026"
    folder.mkdir(parents=True)
    (folder / "b.jsonl").write_text('{"role": "user", "content": "hi"}\n', encoding="utf-8")
    (folder / "a.json").write_text('[{"role": "user", "content": "hi"}]', encoding="utf-8")
    lossless_claw(folder / "lcm.db")
    (folder / "package.json").write_text('{"name": "x"}', encoding="utf-8")
    (folder / "other.db").write_bytes(b"not a database")
    (folder / "notes.md").write_text("# Notes", encoding="utf-8")
    named = tmp_path / "named.txt"
    files, passed_over = session_files([tmp_path / "sessions", named])
    assert [file.name for file in files] == ["a.json", "b.jsonl", "lcm.db", "named.txt"]
    assert [(one.file.name, one.why.partition(":")[0]) for one in passed_over] == [
        ("other.db", "not JSON"),
        ("package.json", "no known format"),
    ]


def test_json_that_has_some_type_is_no_session(tmp_path: Path) -> None:
    for name, text in (("package.json", '{"type": "commonjs"}'), ("list.jsonl", '{"type": []}')):
        (tmp_path / name).write_text(text + "\n")
    files, passed_over = session_files([tmp_path])
    assert (files, len(passed_over)) == ([], 2)
    assert all("no known format" in one.why for one in passed_over)
    with pytest.raises(TranscriptError, match="no known format"):
        list(read_sessions(tmp_path / "package.json"))
