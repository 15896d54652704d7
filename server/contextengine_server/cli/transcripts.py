"""Files of conversations: those of other programs, and what `export --format jsonl` wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from contextengine_server.cli.output import CommandFailed

if TYPE_CHECKING:
    from contextengine.formats import Transcript

FORMATS = {
    "openai": "openai.chat",
    "pi": "pi",
    "anthropic": "anthropic.messages",
    "claude-code": "anthropic.messages",
    "codex": "openai.responses",
}
"""Formats as commands name them, and as `Message.native` does."""


def read_sessions(file: Path, format: str = "auto") -> Iterator[Transcript]:
    """The sessions of a file, one after the other. Raises CommandFailed, and TranscriptError that
    names the line.

    With another `format` than `auto`, a file that is not of it is refused.
    """
    from contextengine.formats import read_transcript

    try:
        ours = _is_export(file)
        transcripts = iter([_exported(file)]) if ours else read_transcript(file)
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror}") from error
    if format != "auto" and ours != (format == "jsonl"):
        raise CommandFailed(
            f"{file} is {'' if ours else 'not '}what `export --format jsonl` writes, and --format"
            f" is {format}"
        )
    for transcript in transcripts:
        if format in FORMATS and transcript.messages:
            found = transcript.messages[0].native.format
            if found != FORMATS[format]:
                raise CommandFailed(f"{file} reads as {found}, and --format is {format}")
        yield transcript


def _is_export(file: Path) -> bool:
    """Whether the file begins as an export does: with the session's row."""
    with file.open("rb") as lines:
        return lines.readline(4096).lstrip().startswith(b'{"session":')


def _exported(file: Path) -> Transcript:
    """The session of an export. Its summaries stay behind: they are made anew from the messages."""
    from google.protobuf.json_format import Parse, ParseError

    from contextengine.formats import Transcript, TranscriptError
    from contextengine.types import ExportResponse, Message

    session_id, model, provider = file.stem, "", ""
    messages: list[Message] = []
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = Parse(line, ExportResponse())
            except (ParseError, UnicodeDecodeError) as error:
                raise TranscriptError(file, number, f"no row of an export: {error}") from None
            match row.WhichOneof("kind"):
                case "session":
                    session_id, model, provider = (
                        row.session.session_id,
                        row.session.model,
                        row.session.provider,
                    )
                case "message" if not row.message.retired_revision:
                    messages.append(row.message.message)
    return Transcript(session_id, messages, model, provider)
