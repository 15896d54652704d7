"""The session store of Hermes (`state.db`): sessions, with what its compactions took out of them.

As hermes-agent 0.19.0 keeps it: a compaction in place marks every row `active = 0, compacted = 1`
and writes the new list behind them, in which the first and the last messages stand once more around
a summary; a compaction by rotation ends the session with the reason `compression` and writes that
list into a child. Rows with neither mark were taken back by the user. Here each message is there
once, and the summary is one of a host.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contextengine_server.cli.imports.databases import column, each, opened

if TYPE_CHECKING:
    from contextengine.formats import HostSummary, Transcript, TranscriptError
    from contextengine.types import Message

TABLES = {"sessions", "messages", "state_meta"}
PREFIXES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
"""How the summaries of its compressor begin, now and before."""
MOST_AT_HEAD = 16
"""How many first messages a compaction keeps at most before its summary, as far as is looked."""
_ENCODED = "\x00json:"
"""Begins a content that is a list of parts."""
_EXTRA = ("reasoning", "reasoning_content", "reasoning_details", "codex_reasoning_items",
          "codex_message_items", "finish_reason", "api_content")  # fmt: skip
"""Columns of an assistant's row that its original form carries on."""

Row = dict[str, Any]


def read_hermes(file: Path) -> Iterator[Transcript | TranscriptError]:
    """The sessions of the file, the oldest first; those that a compaction parted are one, under the
    newest id, with the ids that it had before; the error of one that cannot be read. Raises
    CommandFailed."""
    with opened(file) as database:
        sessions = {
            str(row["id"]): row
            for row in database.execute("SELECT * FROM sessions ORDER BY started_at")
        }
        gone_on = {_parent(one) for one in sessions.values()}

        def read(name: str) -> Transcript:
            line = _line(name, sessions)
            rows = [one for session in line for one in _rows(database, session)]
            return _transcript(file, line, sessions[name], rows)

        newest = (
            (name, name)
            for name, row in sessions.items()
            if not (_compressed(row) and name in gone_on)
        )
        yield from each(file, newest, read)


def _parent(row: sqlite3.Row) -> str:
    return column(row, "parent_session_id") or ""


def _compressed(row: sqlite3.Row) -> bool:
    return bool(column(row, "end_reason") == "compression")


def _line(name: str, sessions: dict[str, sqlite3.Row]) -> list[str]:
    """The sessions that one conversation went through, the first one first."""
    line = [name]
    while (parent := _parent(sessions[line[0]])) in sessions and parent not in line:
        if not _compressed(sessions[parent]):
            break
        line.insert(0, parent)
    return line


def _rows(database: sqlite3.Connection, session: str) -> Iterator[Row]:
    found = database.execute("SELECT * FROM messages WHERE session_id = ? ORDER BY id", (session,))
    for row in found:
        yield {name: row[name] for name in row.keys()}  # noqa: SIM118 (a Row iterates its values)


def _transcript(
    file: Path, line: Sequence[str], session: sqlite3.Row, rows: Sequence[Row]
) -> Transcript:
    from contextengine.formats import EarlierName, Transcript

    # A row without the columns is of a version that compacted by rotation alone.
    parted: tuple[list[Row], list[Row]] = ([], [])
    for row in rows:
        parted[bool(row.get("active", 1) or row.get("compacted", 0))].append(row)
    taken_back, said = parted
    kept, summaries = _once(said)
    *before, name = line
    left_out = {
        "messages that the user took back": len(taken_back),
        "copies that its compactions made": len(said) - len(kept) - len(summaries),
    }
    return Transcript(
        name,
        [_message(file, row) for row in kept],
        column(session, "model") or "",
        column(session, "billing_provider") or "",
        summaries=tuple(summaries),
        left_out={what: count for what, count in left_out.items() if count},
        abandoned=frozenset(map(_id, taken_back)),
        session_key=column(session, "session_key") or "",
        earlier=tuple(
            EarlierName(one, sum(row["session_id"] in line[: at + 1] for row in kept))
            for at, one in enumerate(before)
        ),
    )


def _once(rows: Sequence[Row]) -> tuple[list[Row], list[HostSummary]]:
    """Each message once, in order, and the summaries of what was before them."""
    from contextengine.formats import HostSummary

    kept: list[Row] = []
    summaries: list[HostSummary] = []
    at = 0
    while at < len(rows):
        summary = _summary_of_a_list(rows, at, kept)
        if summary is None:
            kept.append(rows[at])
            at += 1
            continue
        again = _again(rows, summary + 1, kept)
        text = str(_content(rows[summary]))
        summaries.append(HostSummary(f"hermes:{rows[summary]['id']}", len(kept) - again, text))
        at = summary + 1 + again
    return kept, summaries


def _summary_of_a_list(rows: Sequence[Row], at: int, kept: Sequence[Row]) -> int | None:
    """The place of the summary, where a list that a compaction wrote begins: after the first
    messages once more. None: none begins."""
    for head in range(min(MOST_AT_HEAD, len(kept)) + 1):
        if at + head >= len(rows):
            return None
        if kept and _is_summary(rows[at + head]):
            return at + head
        if head == len(kept) or _said(rows[at + head]) != _said(kept[head]):
            return None
    return None


def _is_summary(row: Row) -> bool:
    content = _content(row)
    return isinstance(content, str) and content.lstrip().startswith(PREFIXES)


def _again(rows: Sequence[Row], at: int, kept: Sequence[Row]) -> int:
    """How many of the rows from `at` on are the last that were kept."""
    said = [_said(row) for row in rows[at : at + len(kept)]]
    before = [_said(row) for row in kept]
    for count in range(len(said), 0, -1):
        if before[-count:] == said[:count]:
            return count
    return 0


def _said(row: Row) -> tuple[Any, ...]:
    """What tells messages apart."""
    return tuple(row.get(key) for key in ("role", "content", "tool_call_id", "tool_calls"))


def _content(row: Row) -> Any:
    content = row["content"]
    if isinstance(content, str) and content.startswith(_ENCODED):
        return json.loads(content[len(_ENCODED) :])
    return content


def _id(row: Row) -> str:
    return f"hermes:{row['id']}"


def _message(file: Path, row: Row) -> Message:
    """A row as the message of an OpenAI chat that Hermes makes of it."""
    from contextengine.formats import FormatError, TranscriptError, from_openai

    try:
        said: Row = {"role": row["role"], "content": _content(row)}
        if row.get("tool_calls"):
            said["tool_calls"] = json.loads(row["tool_calls"])
        for key in ("tool_call_id", *(_EXTRA if row["role"] == "assistant" else ())):
            if row.get(key):
                said[key] = row[key]
        if row.get("tool_name") and row["role"] == "tool":
            said["name"] = row["tool_name"]
        (message,) = from_openai([said])
    except (FormatError, ValueError) as error:
        raise TranscriptError(file, 1, f"message {row['id']}: {error}") from None
    message.id = _id(row)
    if row.get("timestamp"):
        message.timestamp.FromMicroseconds(int(row["timestamp"] * 1_000_000))
    return message
