"""Databases of other programs, as far as import reads them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]

HERMES = """
CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, session_key TEXT, model TEXT,
  billing_provider TEXT, parent_session_id TEXT, started_at REAL, end_reason TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT,
  tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL, finish_reason TEXT,
  reasoning_content TEXT, active INTEGER DEFAULT 1, compacted INTEGER DEFAULT 0);
"""
"""What import reads of the tables of hermes-agent 0.19.0."""

OPENCLAW = """
CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT, created_at INTEGER);
CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, event_zstd BLOB,
  event_utf8_bytes INTEGER, PRIMARY KEY (session_id, seq));
CREATE TABLE session_transcript_cold_archives (session_id TEXT PRIMARY KEY, event_count INTEGER);
"""
"""What import reads of the tables of OpenClaw 2026.9.6."""

LOSSLESS_CLAW = """
CREATE TABLE conversations (conversation_id INTEGER PRIMARY KEY, session_id TEXT, session_key TEXT,
  active INTEGER);
CREATE TABLE messages (message_id INTEGER PRIMARY KEY, conversation_id INTEGER, seq INTEGER,
  role TEXT, content TEXT, transcript_entry_id TEXT, created_at TEXT);
CREATE TABLE message_parts (part_id TEXT PRIMARY KEY, message_id INTEGER, ordinal INTEGER,
  part_type TEXT, text_content TEXT, tool_call_id TEXT, tool_name TEXT, tool_input TEXT,
  tool_output TEXT, metadata TEXT);
CREATE TABLE summaries (summary_id TEXT PRIMARY KEY, conversation_id INTEGER, kind TEXT,
  depth INTEGER, content TEXT, created_at TEXT);
CREATE TABLE summary_messages (summary_id TEXT, message_id INTEGER, ordinal INTEGER);
CREATE TABLE summary_parents (summary_id TEXT, parent_summary_id TEXT, ordinal INTEGER);
"""
"""What import reads of the tables of lossless-claw."""


def written(file: Path, schema: str, tables: Mapping[str, Iterable[Row]]) -> Path:
    """A database with these rows."""
    with closing(sqlite3.connect(file)) as database:
        database.executescript(schema)
        for table, rows in tables.items():
            for row in rows:
                marks = ", ".join("?" * len(row))
                database.execute(
                    f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
                )
        database.commit()
    return file


def part(message: int, ordinal: int, kind: str, role: str, **columns: Any) -> Row:
    """A part of a message, with what its metadata says of it."""
    about = {"originalRole": role, **columns.pop("about", {})}
    return {
        "part_id": f"{message}-{ordinal}",
        "message_id": message,
        "ordinal": ordinal,
        "part_type": kind,
        "metadata": json.dumps(about),
        **columns,
    }


def lossless_claw(file: Path, *, words: str = "") -> Path:
    """A conversation of ten messages with two leaves and what was made of them, and an older one of
    the same key. `words` makes the messages longer."""
    texts = [f"message {number} {words}" for number in range(1, 9)]
    messages = [
        {
            "message_id": number,
            "conversation_id": 2,
            "seq": number,
            "role": "user" if number % 2 else "assistant",
            "content": text,
            "transcript_entry_id": f"e{number}" if number > 1 else None,
            "created_at": "2026-11-01 10:00:00",
        }
        for number, text in enumerate(texts, 1)
    ]
    call = {"message_id": 9, "conversation_id": 2, "seq": 9, "role": "assistant", "content": ""}
    result = {"message_id": 10, "conversation_id": 2, "seq": 10, "role": "tool", "content": ""}
    old = {"message_id": 11, "conversation_id": 1, "seq": 1, "role": "user", "content": "long ago"}
    raw = {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {"path": "."}}
    thought = {"type": "thinking", "thinking": "where?", "thinkingSignature": "sig"}
    answer = {"type": "tool_result", "tool_use_id": "c1", "content": "a.txt", "is_error": True}
    parts = [
        part(9, 0, "reasoning", "assistant", text_content="where?", about={"raw": thought}),
        part(9, 1, "tool", "assistant", tool_call_id="c1", tool_name="ls", about={"raw": raw}),
        part(10, 0, "tool", "toolResult", tool_call_id="c1", tool_output="a.txt",
             about={"raw": answer, "rawType": "tool_result"}),
    ]  # fmt: skip
    summary = {"conversation_id": 2, "created_at": "2026-11-01 11:00:00"}
    return written(
        file,
        LOSSLESS_CLAW,
        {
            "conversations": [
                {"conversation_id": 1, "session_id": "s-old", "session_key": "main", "active": 0},
                {"conversation_id": 2, "session_id": "s-new", "session_key": "main", "active": 1},
            ],
            "messages": [*messages, call, result, old],
            "message_parts": parts,
            "summaries": [
                {**summary, "summary_id": "sum_b", "depth": 1, "content": "they met and spoke"},
                {**summary, "summary_id": "sum_1", "depth": 0, "content": "they met"},
                {**summary, "summary_id": "sum_2", "depth": 0, "content": "they spoke"},
                {**summary, "summary_id": "sum_x", "depth": 0, "content": "torn"},
            ],
            "summary_messages": [
                *({"summary_id": "sum_1", "message_id": one, "ordinal": one} for one in (1, 2)),
                *({"summary_id": "sum_2", "message_id": one, "ordinal": one} for one in (3, 4)),
                *({"summary_id": "sum_x", "message_id": one, "ordinal": one} for one in (5, 8)),
            ],
            "summary_parents": [
                {"summary_id": "sum_b", "parent_summary_id": one, "ordinal": at}
                for at, one in enumerate(("sum_1", "sum_2"))
            ],
        },
    )
