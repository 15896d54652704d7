"""What was imported comes back byte for byte, native forms included: import, show, export, for
every transcript there is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextengine import Client, SessionRef
from contextengine.formats import Transcript, read_transcript
from tests.acceptance.shell import AIRLINE, CODING, DATA, Shell

MEMORY = sorted((DATA / "bfcl_memory").glob("memory_*.json"))
ANTHROPIC = """{
  "model": "claude-sonnet-4-5",
  "system": "Answer  in one word.",
  "messages": [
    {"role": "user", "content": "What is 6 × 7?"},
    {"role": "assistant", "content": [
      {"type": "thinking", "thinking": "easy", "signature": "c2lnbmF0dXJl"},
      {"type": "tool_use", "id": "toolu_1", "name": "multiply", "input": {"b": 7.0, "a": 6}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content":
    "42"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "42"}]}
  ]
}
"""


def chats_of(memory: Path) -> Iterator[str]:
    """The sessions of a memory file, each as a line of OpenAI chat."""
    for line in memory.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        messages = [message for turn in entry["question"] for message in turn]
        yield json.dumps({"session_id": entry["id"], "messages": messages}, ensure_ascii=False)


def stored(address: str, agent: str, transcript: Transcript) -> list[bytes]:
    """The messages of a session as Export answers them, encoded."""
    ref = SessionRef(agent_id=agent, session_id=transcript.session_id)
    with Client(address) as client, client.sessions.export(ref) as rows:
        return [row.message.message.SerializeToString() for row in rows if row.HasField("message")]


def check(shell: Shell, file: Path, agent: str) -> list[Transcript]:
    """Imports a file and holds that every message of every session comes back; the sessions."""
    shell.run("import", file, "--agent", agent)
    transcripts = list(read_transcript(file))
    for transcript in transcripts:
        sent = [message.SerializeToString() for message in transcript.messages]
        assert stored(shell.address, agent, transcript) == sent, transcript.session_id
    return transcripts


def test_the_airline_sessions(shell: Shell) -> None:
    transcripts = check(shell, AIRLINE, "airline")
    assert len(transcripts) == 120
    assert sum(len(transcript.messages) for transcript in transcripts) == 3202
    lines = AIRLINE.read_text(encoding="utf-8").splitlines()
    for line, transcript in zip(lines, transcripts, strict=True):
        end = 0
        for (
            message
        ) in transcript.messages:  # each original stands in its line, one behind the other
            end = line.index(message.native.json.decode(), end) + len(message.native.json.decode())
    listed = shell.run("sessions", "list", "--agent", "airline", "--limit", "200", "--json").json()
    assert len(listed) == 120
    back = shell.run("export", "airline-007", "--agent", "airline", "--format", "openai").json()
    assert back == json.loads(lines[7])


def test_the_coding_session(shell: Shell) -> None:
    [transcript] = check(shell, CODING, "coding")
    name = transcript.session_id
    native = shell.run("export", name, "--agent", "coding", "--format", "native").out
    lines = CODING.read_bytes().splitlines(keepends=True)
    assert native == b"".join(line for line in lines if json.loads(line)["type"] == "message")
    shown = shell.run(
        "show", name, "--agent", "coding", "--budget", "20000", "--explain", "--json"
    ).json()
    assert shown["outcome"] == "OUTCOME_FITS"
    assert [int(decision["sequence"]) for decision in shown["decisions"]] == list(range(1, 915))
    text = shell.run("show", name, "--agent", "coding", "--budget", "20000", "--explain").text
    assert "FITS: " in text
    assert "newest user message" in text


@pytest.mark.parametrize("memory", MEMORY, ids=lambda path: path.stem)
def test_the_memory_sessions(shell: Shell, memory: Path) -> None:
    file = shell.directory / "chats.jsonl"
    lines = list(chats_of(memory))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    transcripts = check(shell, file, memory.stem)
    last = transcripts[-1]
    back = shell.run("export", last.session_id, "--agent", memory.stem, "--format", "openai").json()
    assert back == json.loads(lines[-1])


def test_an_anthropic_request_and_what_export_wrote(shell: Shell) -> None:
    file = shell.directory / "request.json"
    file.write_text(ANTHROPIC, encoding="utf-8")
    [transcript] = check(shell, file, "anthropic")
    exported = shell.directory / "exported.jsonl"
    shell.run("export", "request", "--agent", "anthropic", "-o", exported)
    shell.run("import", exported, "--agent", "again", "--session", "request-2", "--format", "jsonl")
    again = stored(shell.address, "again", Transcript("request-2", []))
    assert again == [message.SerializeToString() for message in transcript.messages]
    natives = shell.run("export", "request-2", "--agent", "again", "--format", "native").text
    for line in (
        '{"role": "user", "content": "What is 6 × 7?"}',
        '"input": {"b": 7.0, "a": 6}',
        '"Answer  in one word."',
    ):
        assert line in natives


def test_the_same_file_again_changes_nothing(shell: Shell) -> None:
    first = shell.run("import", CODING, "--agent", "twice", "--json").json()["sessions"][0]
    again = shell.run("import", CODING, "--agent", "twice", "--json").json()["sessions"][0]
    assert (first["stored"], first["known"]) == (914, 0)
    assert (again["stored"], again["known"]) == (0, 914)
    other = shell.directory / "other.jsonl"
    other.write_bytes(b"".join(CODING.read_bytes().splitlines(keepends=True)[:20]))
    refused = shell.run("import", other, "--agent", "twice", status=1)
    assert refused.err.startswith("error: SESSION_EXISTS: ")


def test_a_bad_line_is_named_and_its_session_left_out(shell: Shell) -> None:
    file = shell.directory / "bad.jsonl"
    lines = AIRLINE.read_text(encoding="utf-8").splitlines()[:4]
    lines[2] = lines[2].replace('"role": "user"', '"role": "usher"', 1)
    file.write_text("\n".join(lines), encoding="utf-8")
    refused = shell.run("import", file, "--agent", "bad", status=1)
    assert f"{file}:3: messages[1]" in refused.err
    assert "usher" in refused.err
    assert "The 2 sessions before it are imported" in refused.err
    listed = shell.run("sessions", "list", "--agent", "bad", "--json").json()
    assert {row["session_id"] for row in listed} == {"airline-000", "airline-001"}


def test_a_bad_line_in_a_session_of_many_lines_leaves_nothing(shell: Shell) -> None:
    file = shell.directory / "bad.pi.jsonl"
    lines = CODING.read_bytes().splitlines(keepends=True)[:50]
    file.write_bytes(b"".join([*lines, b'{"type": "message", "message": 7}\n', *lines]))
    refused = shell.run("import", file, "--agent", "worse", status=1)
    assert f"{file}:51: " in refused.err
    assert "Nothing was imported." in refused.err
    assert shell.run("sessions", "list", "--agent", "worse", "--json").json() == []


def test_a_folder_is_taken_whole_but_for_what_is_damaged(shell: Shell) -> None:
    folder = shell.directory / "sessions"
    folder.mkdir()
    for name in ("a", "c"):
        line = {"role": "user", "content": f"hello from {name}"}
        (folder / f"{name}.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    good = '{"role": "user", "content": "hi"}\n'
    (folder / "b.jsonl").write_text(good + '{"role"\n', encoding="utf-8")
    (folder / "settings.json").write_text("{}", encoding="utf-8")
    done = shell.run("import", folder, "--agent", "bulk", status=1)
    assert "2 sessions of agent 'bulk': 2 messages stored" in done.text
    assert "passed over: 1 file of no known format" in done.text
    assert "b.jsonl:2: " in done.err
    assert "1 file of 3 could not be imported" in done.err
    (folder / "b.jsonl").write_text(good, encoding="utf-8")
    again = shell.run("import", folder, "--agent", "bulk")
    assert "3 sessions of agent 'bulk': 1 messages stored, 2 were there before" in again.text
