"""Files of conversations: those of other programs, and what `export --format jsonl` wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from contextengine_server.cli.imports import hermes, lossless_claw, openclaw
from contextengine_server.cli.imports.databases import is_database, tables
from contextengine_server.cli.output import CommandFailed

if TYPE_CHECKING:
    from contextengine.formats import Transcript, TranscriptError

FORMATS = {
    "openai": "openai.chat",
    "pi": "pi",
    "anthropic": "anthropic.messages",
    "claude-code": "anthropic.messages",
    "codex": "openai.responses",
}
"""Formats as commands name them, and as `Message.native` does."""


DATABASES: dict[str, tuple[set[str], Callable[[Path], Iterator[Transcript | TranscriptError]]]] = {
    "lossless-claw": (lossless_claw.TABLES, lossless_claw.read_lossless_claw),
    "hermes": (hermes.TABLES, hermes.read_hermes),
    "openclaw": (openclaw.TABLES, openclaw.read_openclaw),
}
"""Databases as commands name them: the tables by which each is known, and what reads it."""
SUFFIXES = (".jsonl", ".json", ".db", ".sqlite", ".sqlite3")
"""What a session file of a folder is named like."""


class PassedOver(msgspec.Struct, frozen=True):
    """A file of a folder that is not read, though it is named like one that is."""

    file: Path
    why: str


def session_files(paths: Sequence[Path]) -> tuple[list[Path], list[PassedOver]]:
    """The files to read, those of folders in the order of their names; and those of folders that
    are of no known format."""
    files: list[Path] = []
    passed_over: list[PassedOver] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        for file in sorted(one for one in path.rglob("*") if one.suffix in SUFFIXES):
            why = _unknown(file)
            if why:
                passed_over.append(PassedOver(file, why))
            else:
                files.append(file)
    return files, passed_over


def _unknown(file: Path) -> str:
    """Why a file does not begin as one that is read here; empty: it does. One that is damaged
    further on is read, so that what is wrong is said."""
    from contextengine.formats import TranscriptError, read_transcript

    if not file.is_file():
        return "no file"
    try:
        if is_database(file):
            return "" if _program(file) else f"a database of none of {', '.join(DATABASES)}"
        if not _is_export(file):
            read_transcript(file)
    except TranscriptError as error:
        return error.what
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except CommandFailed as error:
        return error.text
    return ""


def _program(file: Path) -> str:
    """Whose database it is. Empty: of a program that is not known."""
    found = tables(file)
    return next((name for name, (needed, _) in DATABASES.items() if found >= needed), "")


def read_sessions(file: Path, format: str = "auto") -> Iterator[Transcript]:
    """The sessions of a file, one after the other, all of them. Raises CommandFailed, and
    TranscriptError that names the line or the session."""
    for found in read_each(file, format):
        if isinstance(found, Exception):
            raise found
        yield found


def read_each(file: Path, format: str = "auto") -> Iterator[Transcript | TranscriptError]:
    """The sessions of a file, one after the other; of a database, the error of one that cannot be
    read. Raises CommandFailed, and TranscriptError that names the line.

    With another `format` than `auto`, a file that is not of it is refused.
    """
    from contextengine.formats import read_transcript

    try:
        if is_database(file):
            yield from _stored(file, format)
            return
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


def _stored(file: Path, format: str) -> Iterator[Transcript | TranscriptError]:
    """The sessions of another program's database."""
    program = _program(file)
    if not program:
        raise CommandFailed(f"{file} is a database of none of {', '.join(DATABASES)}")
    if format not in ("auto", program):
        raise CommandFailed(f"{file} is a database of {program}, and --format is {format}")
    _, read = DATABASES[program]
    yield from read(file)


def _is_export(file: Path) -> bool:
    """Whether the file begins as an export does: with the session's row."""
    with file.open("rb") as lines:
        return lines.readline(4096).lstrip().startswith(b'{"session":')


def _exported(file: Path) -> Transcript:
    """The session of an export. Its summaries stay behind: they are made anew from the messages.
    What is not whole is refused; exports of earlier versions do not tell whether they are."""
    from google.protobuf.json_format import Parse, ParseError

    from contextengine.exports import Tally
    from contextengine.formats import Transcript, TranscriptError
    from contextengine.types import ExportResponse, Message

    tally = Tally()
    session_id, model, provider = file.stem, "", ""
    messages: list[Message] = []
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = Parse(line, ExportResponse())
                tally.add(row)
                if tally.ended:
                    tally.check()
            except (ParseError, UnicodeDecodeError) as error:
                raise TranscriptError(file, number, f"no row of an export: {error}") from None
            except ValueError as error:
                raise TranscriptError(file, number, str(error)) from None
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
