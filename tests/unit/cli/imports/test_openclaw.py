"""Reading the transcripts that OpenClaw keeps in its database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from contextengine.formats import Transcript, TranscriptError
from contextengine.messages import text_of
from contextengine_server.cli.imports.files import read_sessions
from tests.unit.cli.imports.hosts import OPENCLAW, Row, written


def entry(kind: str, name: str, parent: str | None = None, **more: Any) -> dict[str, Any]:
    return {"type": kind, "id": name, "parentId": parent, **more}


def said(role: str, name: str, parent: str | None, words: str) -> dict[str, Any]:
    text = [{"type": "text", "text": words}]
    return entry("message", name, parent, message={"role": role, "content": text})


def rows(session: str, *entries: dict[str, Any]) -> list[Row]:
    """As OpenClaw writes them: what is long is packed."""
    found: list[Row] = []
    for seq, one in enumerate(entries):
        raw = json.dumps(one).encode()
        packed = len(raw) > 200
        found.append(
            {
                "session_id": session,
                "seq": seq,
                "event_json": None if packed else raw.decode(),
                "event_zstd": zstandard.compress(raw) if packed else None,
                "event_utf8_bytes": len(raw),
            }
        )
    return found


def read(path: Path, tables: dict[str, Any], keys: dict[str, str]) -> list[Transcript]:
    windows = [
        {"session_id": name, "session_key": key, "created_at": at}
        for at, (name, key) in enumerate(keys.items())
    ]
    file = path / "openclaw-agent.sqlite"
    written(file, OPENCLAW, {"session_windows": windows, **tables})
    return list(read_sessions(file))


def test_each_session_is_read_with_its_key_and_what_is_packed(tmp_path: Path) -> None:
    long = "well " * 100
    events = [
        *rows(
            "one",
            {"type": "session", "id": "one", "version": 4},
            entry("model_change", "m", None, provider="mock", modelId="mock-1"),
            said("user", "a", "m", "Hi"),
            said("assistant", "b", "a", long),
            entry("compaction", "c", "b", summary="They met.", firstKeptEntryId="b"),
            entry("custom", "d", "c", customType="x", data={}),
        ),
        *rows("two", {"type": "session", "id": "two"}, said("user", "e", None, "Again")),
    ]
    keys = {"one": "agent:main:talk", "two": "agent:main:talk", "empty": "agent:main:other"}
    one, two = read(tmp_path, {"transcript_events": events}, keys)
    assert [one.session_id, two.session_id] == ["one", "two"]
    assert one.session_key == two.session_key == "agent:main:talk"
    assert [(row.id, text_of(row)) for row in one.messages] == [("a", "Hi"), ("b", long)]
    assert [(one.updates[0].model, one.updates[0].provider)] == [("mock-1", "mock")]
    assert [(found.text, found.count) for found in one.summaries] == [("They met.", 1)]
    assert one.left_out == {"states of extensions": 1}
    assert [text_of(row) for row in two.messages] == ["Again"]


def test_a_session_goes_on_where_the_user_went_back_to(tmp_path: Path) -> None:
    back = [
        said("user", "a", None, "Alpha"),
        said("user", "b", "a", "Bravo"),
        entry("leaf", "l", "b", targetId="a"),
    ]
    events = [*rows("back", *back), *rows("on", *back, said("user", "c", "a", "Charlie"))]
    found = read(tmp_path, {"transcript_events": events}, {"back": "k", "on": "k"})
    assert [[text_of(row) for row in one.messages] for one in found] == [
        ["Alpha"],
        ["Alpha", "Charlie"],
    ]
    assert all(one.left_out == {"entries of branches that were left": 1} for one in found)


def test_a_conversation_that_began_anew_is_a_session_of_its_own(tmp_path: Path) -> None:
    events = rows(
        "one",
        {"type": "session", "id": "one"},
        said("user", "a", None, "Alpha"),
        entry("reset", "r", "a", reason="new"),
        said("user", "b", "r", "Bravo"),
        said("assistant", "c", "b", "Charlie"),
        said("user", "d", "b", "Delta"),
        entry("reset", "s", "d", reason="daily", firstKeptEntryId="b"),
        entry("custom", "x", "s"),
        said("user", "e", "x", "Echo"),
    )
    found = read(tmp_path, {"transcript_events": events}, {"one": "k"})
    assert [(one.session_id, [text_of(row) for row in one.messages]) for one in found] == [
        ("one", ["Alpha"]),
        ("one:r", ["Bravo", "Delta"]),
        ("one:s", ["Bravo", "Delta", "Echo"]),
    ]
    assert {one.session_key for one in found} == {"k"}
    # What was imported as one session before is taken out of its first.
    assert found[0].abandoned == {"b", "c", "d", "e"}
    assert [one.left_out for one in found] == [
        {"entries of branches that were left": 1},
        {},
        {"states of extensions": 1},
    ]


def test_what_is_in_the_archive_is_named(tmp_path: Path) -> None:
    archived = [{"session_id": "old", "event_count": 7}]
    tables = {"session_transcript_cold_archives": archived}
    [found] = read(tmp_path, tables, {"old": "k", "new": "k"})
    assert (found.messages, found.left_out) == ([], {"entries in OpenClaw's archive": 7})


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("event_zstd", b"no frame"),
        ("event_zstd", None),
        ("event_json", "[1]"),
        ("event_json", '{"no": "type"}'),
    ],
)
def test_what_is_wrong_is_said_with_the_entry(tmp_path: Path, column: str, value: Any) -> None:
    broken = {"session_id": "s", "seq": 4, "event_utf8_bytes": 9, column: value}
    with pytest.raises(TranscriptError, match=r"openclaw-agent.sqlite:1: session s, entry 4: "):
        read(tmp_path, {"transcript_events": [broken]}, {"s": "k"})
