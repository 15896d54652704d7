"""`export` and `sessions delete`: whole sessions out."""

from __future__ import annotations

import json as jsonlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from contextengine_server.cli.connection import Where, connected
from contextengine_server.cli.output import CommandFailed, note, shown

if TYPE_CHECKING:
    from contextengine import AsyncStream
    from contextengine.types import ExportResponse, Message


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
    """Writes rows in a format; the number of messages written. Raises CommandFailed where they are
    not the whole session."""
    from google.protobuf.json_format import MessageToJson

    from contextengine.exports import Tally
    from contextengine.formats import to_openai

    tally, session_id = Tally(), ""
    messages: list[Message] = []
    async for row in rows:
        kind = row.WhichOneof("kind")
        tally.add(row)
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
    try:
        tally.check()
    except ValueError as error:
        raise CommandFailed(f"{error}: what was written is not the whole session") from error
    if format == "openai":
        whole = {"session_id": session_id, "messages": to_openai(messages)}
        out.write(jsonlib.dumps(whole, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
    return tally.messages


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
