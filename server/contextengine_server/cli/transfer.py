"""`import`, `export` and `sessions delete`: whole sessions in and out."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from contextengine_server.cli import imported
from contextengine_server.cli.connection import Missing, Where, connected
from contextengine_server.cli.output import CommandFailed, console, note, print_json, shown
from contextengine_server.cli.transcripts import read_sessions

if TYPE_CHECKING:
    from contextengine import AsyncStream
    from contextengine.formats import Transcript
    from contextengine.types import ExportResponse, Message


async def import_file(
    where: Where, file: Path, agent: str, session: str, format: str, json: bool
) -> None:
    """Stores every session of a file, each whole or not at all."""
    from contextengine.formats import TranscriptError

    replies: list[imported.ImportedTranscript] = []
    transcripts = read_sessions(file, format)
    if session:
        transcripts = _only(transcripts, file, session)
    async with connected(where, Missing.CREATE) as client:
        with _progress() as advance:
            try:
                for transcript in transcripts:
                    replies.append(await imported.store(client, agent, transcript, advance))
            except TranscriptError as error:
                raise CommandFailed(f"{error}. {_so_far(replies)}") from error
    stored = sum(reply.stored for reply in replies)
    duplicates = sum(reply.known for reply in replies)
    tokens = sum(reply.tokens for reply in replies)
    if json:
        print_json({"agent_id": agent, "sessions": [reply.row() for reply in replies]})
        return
    known = f", {duplicates:,} were there before" if duplicates else ""
    print(
        f"{_count(len(replies), 'session')} of agent {agent!r}: {stored:,} messages stored{known};"
        f" {tokens:,} tokens"
    )
    if len(replies) == 1:
        print(f"session {replies[0].session_id}")
    for line in imported.remarks(replies):
        print(line)


def _only(transcripts: Iterator[Transcript], file: Path, session: str) -> Iterator[Transcript]:
    """The one session of a file, under another id."""
    from dataclasses import replace

    found = list(transcripts)
    if len(found) != 1:
        raise CommandFailed(
            f"{file} holds {len(found)} sessions: --session names one; leave it out", 2
        )
    return iter([replace(found[0], session_id=session)])


def _so_far(replies: list[Any]) -> str:
    if not replies:
        return "Nothing was imported."
    before = "The session" if len(replies) == 1 else f"The {len(replies)} sessions"
    return (
        f"{before} before it {'is' if len(replies) == 1 else 'are'} imported, of this one nothing"
        " is: mend the file and run the same command again."
    )


@contextmanager
def _progress() -> Iterator[Callable[[str, int], None]]:
    """A bar on the terminal; nothing where nobody looks on. The function yielded counts messages of
    a session."""
    if not sys.stderr.isatty():
        yield lambda session, messages: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} messages"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("importing", total=None)
        yield lambda session, messages: bar.update(task, description=session, advance=messages)


async def export_session(
    where: Where, session: str, agent: str, output: Path | None, format: str
) -> None:
    """Writes a session's rows. A file is written whole or not at all."""
    from contextengine import SessionRef

    ref = SessionRef(agent_id=agent, session_id=session)
    async with connected(where) as client, client.sessions.export(ref) as rows:
        if output is None:
            await _write(rows, sys.stdout.buffer, format)
            sys.stdout.flush()
            return
        partial = output.with_name(output.name + ".partial")
        try:
            with partial.open("wb") as out:
                count = await _write(rows, out, format)
            partial.replace(output)
        except OSError as error:
            raise CommandFailed(f"{output} cannot be written: {error.strerror}") from error
        finally:
            partial.unlink(missing_ok=True)
        note(f"{count:,} messages written to {output}")


async def _write(rows: AsyncStream[ExportResponse], out: BinaryIO, format: str) -> int:
    """Writes rows in a format; the number of messages written."""
    from google.protobuf.json_format import MessageToJson

    from contextengine.formats import to_openai

    count, session_id = 0, ""
    messages: list[Message] = []
    async for row in rows:
        kind = row.WhichOneof("kind")
        count += kind == "message"
        if format == "jsonl":
            line = MessageToJson(
                row, preserving_proto_field_name=True, indent=None, ensure_ascii=False
            )
            out.write(line.encode() + b"\n")
        elif kind == "session":
            session_id = row.session.session_id
        elif kind == "message" and format == "openai":
            messages.append(row.message.message)
        elif kind == "message":
            message = row.message.message
            if not message.HasField("native"):
                raise CommandFailed(
                    f"message {row.message.sequence} has no native form: it came without one; use"
                    " --format jsonl or openai"
                )
            out.write(message.native.json + b"\n")
    if format == "openai":
        whole = {"session_id": session_id, "messages": to_openai(messages)}
        out.write(jsonlib.dumps(whole, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
    return count


async def delete_session(where: Where, session: str, agent: str, cascade: bool) -> None:
    """Erases a session."""
    from contextengine import SessionRef

    async with connected(where) as client:
        gone = await client.sessions.delete(
            SessionRef(agent_id=agent, session_id=session), cascade=cascade
        )
    if not gone.deleted:
        raise CommandFailed(
            f"there is no session {session!r} of agent {agent!r}: `contextengine sessions list`"
            " shows them"
        )
    ids = ", ".join(gone.session_ids)
    print(
        f"erased {ids}: {shown(gone.message_count)} messages, {shown(gone.summary_count)} summaries"
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
