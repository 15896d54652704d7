"""The database of lossless-claw (`lcm.db`): conversations with their messages, rebuilt from the
parts that each was taken apart into, and the summaries that the model was shown.

A part keeps the block of OpenClaw that it came from in `metadata.raw`; where it does not, the block
is made of its columns. Text that was moved to a file of its own stays the reference that stands in
its place.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contextengine_server.cli.imports.databases import column, each, opened

if TYPE_CHECKING:
    from contextengine.formats import HostSummary, Transcript, TranscriptError
    from contextengine.types import Message

TABLES = {"conversations", "messages", "message_parts", "summaries"}
_CALLS = ("toolCall", "tool_use", "tool-use", "toolUse", "functionCall", "function_call")
_RESULTS = ("toolResult", "tool_result", "function_call_output")
_ROLES = {"tool": "toolResult", "user": "user", "assistant": "assistant", "system": "system"}

Json = dict[str, Any]


def read_lossless_claw(file: Path) -> Iterator[Transcript | TranscriptError]:
    """The conversations of the file, the oldest first, so that the newest of a session key is its
    current one; the error of one that cannot be read. Raises CommandFailed."""
    with opened(file) as database:
        found = database.execute("SELECT * FROM conversations ORDER BY conversation_id")
        named = ((name, (row, name)) for name, row in _named(found))
        yield from each(file, named, lambda one: _conversation(file, database, *one))


def _named(rows: Iterable[sqlite3.Row]) -> Iterator[tuple[str, sqlite3.Row]]:
    """Conversations with names of which none comes twice."""
    taken: set[str] = set()
    for row in rows:
        number = row["conversation_id"]
        name = str(row["session_id"] or f"lcm-{number}")
        name = f"{name}#{number}" if name in taken else name
        taken.add(name)
        yield name, row


def _conversation(
    file: Path, database: sqlite3.Connection, row: sqlite3.Row, name: str
) -> Transcript:
    from contextengine.formats import Transcript

    number = (row["conversation_id"],)
    parts: dict[int, list[sqlite3.Row]] = {}
    for part in database.execute(
        "SELECT p.* FROM message_parts p JOIN messages m USING (message_id)"
        " WHERE m.conversation_id = ? ORDER BY p.message_id, p.ordinal",
        number,
    ):
        parts.setdefault(part["message_id"], []).append(part)
    rows = database.execute("SELECT * FROM messages WHERE conversation_id = ? ORDER BY seq", number)
    places: dict[int, int] = {}
    messages: list[Message] = []
    for message in rows:
        places[message["message_id"]] = len(messages)
        messages.append(_message(file, message, parts.get(message["message_id"], ())))
    summaries, left = _summaries(database, row["conversation_id"], places)
    left_out = {"summaries whose messages do not stand together": left} if left else {}
    return Transcript(
        name,
        messages,
        summaries=tuple(summaries),
        left_out=left_out,
        session_key=column(row, "session_key") or "",
    )


def _summaries(
    database: sqlite3.Connection, conversation: int, places: Mapping[int, int]
) -> tuple[list[HostSummary], int]:
    """The summaries of a conversation, leaves first and then those made of them; how many cannot be
    said, since their messages do not follow each other."""
    from contextengine.formats import HostSummary

    covered: dict[str, set[int]] = {}
    for row in database.execute("SELECT summary_id, message_id FROM summary_messages"):
        if row["message_id"] in places:
            covered.setdefault(row["summary_id"], set()).add(places[row["message_id"]])
    sources: dict[str, list[str]] = {}
    for row in database.execute("SELECT summary_id, parent_summary_id FROM summary_parents"):
        # The "parent" of a summary is what it was made of.
        sources.setdefault(row["summary_id"], []).append(row["parent_summary_id"])
    found, left = [], 0
    for row in database.execute(
        "SELECT * FROM summaries WHERE conversation_id = ? ORDER BY depth, created_at, summary_id",
        (conversation,),
    ):
        name = row["summary_id"]
        own = covered.setdefault(name, set())
        for source in sources.get(name, ()):
            own |= covered.get(source, set())
        first, last = min(own, default=0), max(own, default=-1)
        if not own or len(own) != last - first + 1:
            left += 1
            continue
        found.append(HostSummary(name, last + 1, str(row["content"] or ""), first))
    return found, left


def _message(file: Path, row: sqlite3.Row, parts: Sequence[sqlite3.Row]) -> Message:
    """A message as OpenClaw gave it, as far as its parts say."""
    from contextengine.formats import FormatError, TranscriptError, from_pi

    metadata = [_object(part["metadata"]) for part in parts]
    role = next((one["originalRole"] for one in metadata if one.get("originalRole")), "")
    role = role or _ROLES.get(row["role"], "assistant")
    said: Json = {"role": role, "content": row["content"] or ""}
    if parts:
        said["content"] = [
            _block(part, about, role) for part, about in zip(parts, metadata, strict=True)
        ]
    if role == "toolResult":
        said |= _answered(parts, metadata)
    entry = {
        "type": "message",
        "id": column(row, "transcript_entry_id") or f"lcm:{row['message_id']}",
        "message": said,
    }
    if row["created_at"]:
        entry["timestamp"] = f"{str(row['created_at']).replace(' ', 'T').removesuffix('Z')}Z"
    try:
        (message,) = from_pi([entry])
    except FormatError as error:
        raise TranscriptError(file, 1, f"message {row['message_id']}: {error}") from None
    return message


def _answered(parts: Sequence[sqlite3.Row], metadata: Sequence[Json]) -> Json:
    """Which call a result answers."""
    raws = [about["raw"] for about in metadata if isinstance(about.get("raw"), dict)]
    sources = [*metadata, *raws]
    called = [part["tool_call_id"] for part in parts]
    called += [one.get(key) for one in sources for key in ("toolCallId", "tool_use_id", "call_id")]
    named = [part["tool_name"] for part in parts] + [one.get("toolName") for one in sources]
    return {
        "toolCallId": next((one for one in called if one), "unknown"),
        "toolName": next((one for one in named if one), ""),
        "isError": any(
            one.get("isError") is True or one.get("is_error") is True for one in sources
        ),
    }


def _block(part: sqlite3.Row, about: Json, role: str) -> Json:
    """A part as a block of OpenClaw's."""
    raw = about.get("raw")
    kind = str((raw.get("type") if isinstance(raw, dict) else None) or about.get("rawType") or "")
    if kind in _CALLS or (part["part_type"] == "tool" and role == "assistant"):
        return _call(part, raw if isinstance(raw, dict) else {})
    if kind in _RESULTS or part["part_type"] == "tool":
        return {"type": "text", "text": _output(part, raw if isinstance(raw, dict) else {})}
    if isinstance(raw, dict) and raw.get("type"):
        return raw
    if part["part_type"] == "reasoning":
        return {"type": "thinking", "thinking": part["text_content"] or ""}
    return {"type": "text", "text": part["text_content"] or ""}


def _call(part: sqlite3.Row, raw: Json) -> Json:
    given = raw.get("arguments", raw.get("input"))
    return {
        "type": "toolCall",
        "id": part["tool_call_id"] or raw.get("id") or raw.get("call_id") or "unknown",
        "name": part["tool_name"] or raw.get("name") or "unknown",
        "arguments": _object(part["tool_input"]) if given is None else given,
    }


def _output(part: sqlite3.Row, raw: Json) -> str:
    for value in (part["tool_output"], part["text_content"], raw.get("output"), raw.get("content")):
        if isinstance(value, str) and value:
            return value
        if value:
            texts = value if isinstance(value, list) else [value]
            return "\n".join(
                str(one.get("text", "")) if isinstance(one, dict) else str(one) for one in texts
            )
    return ""


def _object(text: str | None) -> Json:
    """An object that a column holds; none where it holds something else."""
    try:
        value = json.loads(text) if text else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
