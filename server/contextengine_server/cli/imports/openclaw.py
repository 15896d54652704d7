"""The transcripts of OpenClaw (`openclaw-agent.sqlite` of each agent): the entries that its session
files held before, a row each.

As OpenClaw 2026.9.6 keeps them: long entries are compressed (zstd), each session belongs to a key
that outlives it, a conversation that begins anew goes on in the same session behind a reset, and
what nobody has used for long is moved to an archive beside, of which a row
with the number of its entries stays.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from contextengine_server.cli.imports.databases import column, each, opened

if TYPE_CHECKING:
    from contextengine.formats import Transcript, TranscriptError
    from contextengine.formats.session_files import Entry

TABLES = {"session_windows", "transcript_events"}
_ARCHIVED = "session_transcript_cold_archives"


def read_openclaw(file: Path) -> Iterator[Transcript | TranscriptError]:
    """The sessions of the file, the oldest first, those without a word left out; the error of one
    that cannot be read. Raises CommandFailed."""
    with opened(file) as database:
        archived = _archived(database)
        windows = "SELECT * FROM session_windows ORDER BY created_at, session_id"
        named = ((str(row["session_id"]), row) for row in database.execute(windows))

        def read(window: sqlite3.Row) -> list[Transcript]:
            return _transcripts(file, database, window, archived.get(window["session_id"], 0))

        for found in each(file, named, read):
            if isinstance(found, Exception):
                yield found
            else:
                yield from (one for one in found if one.messages or one.left_out)


def _archived(database: sqlite3.Connection) -> dict[str, int]:
    """How many entries of each session are in the archive."""
    there = "SELECT 1 FROM sqlite_master WHERE name = ?"
    if database.execute(there, (_ARCHIVED,)).fetchone() is None:
        return {}
    rows = database.execute(f"SELECT session_id, event_count FROM {_ARCHIVED}")
    return {row["session_id"]: row["event_count"] for row in rows}


def _transcripts(
    file: Path, database: sqlite3.Connection, window: sqlite3.Row, archived: int
) -> list[Transcript]:
    from contextengine.formats import FormatError, TranscriptError
    from contextengine.formats.pi_session import conversations

    name = str(window["session_id"])
    entries: list[Entry] = []
    try:
        for row in database.execute(
            "SELECT * FROM transcript_events WHERE session_id = ? ORDER BY seq", (name,)
        ):
            entries.append(_entry(row, len(entries)))
        first, *later = conversations(entries, name)
    except FormatError as error:
        raise TranscriptError(file, 1, f"entry {error.line}: {error}") from None
    left_out = dict(first.left_out)
    if archived:
        left_out["entries in OpenClaw's archive"] = archived
    key = column(window, "session_key") or ""
    found = (replace(first, left_out=left_out), *later)
    return [replace(one, session_key=key) for one in found]


def _entry(row: sqlite3.Row, place: int) -> Entry:
    """A row as the line of a session file. Raises FormatError that names its number."""
    import zstandard

    from contextengine.formats import FormatError
    from contextengine.formats.node import load
    from contextengine.formats.session_files import Entry

    try:
        text, packed = row["event_json"], column(row, "event_zstd")
        if text is None:
            size = column(row, "event_utf8_bytes") or 0
            text = zstandard.ZstdDecompressor().decompress(packed or b"", max_output_size=size)
        node, raw = load(text)
        node.required("type")
    except (FormatError, zstandard.ZstdError) as error:
        raise FormatError(str(error), row["seq"]) from None
    return Entry(node, raw, place, row["seq"])
