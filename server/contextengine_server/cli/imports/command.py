"""Imports the sessions of files and folders, and says what became of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from contextengine_server.cli.connection import Missing, Where, connected
from contextengine_server.cli.imports.files import PassedOver, read_each, session_files
from contextengine_server.cli.imports.session import ImportedTranscript, remarks, store
from contextengine_server.cli.output import Advance, CommandFailed, complain, print_json, progress

if TYPE_CHECKING:
    from contextengine import AsyncClient, ContextEngineError
    from contextengine.formats import Transcript, TranscriptError

MOST_NAMED = 20
"""Files that are passed over are named, the first ones: a folder of somebody's whole work may hold
thousands."""


class NotImported(msgspec.Struct, frozen=True):
    """What was not imported, and why."""

    file: Path
    text: str
    error: Exception


async def import_files(
    where: Where, paths: Sequence[Path], agent: str, session: str, format: str, json: bool
) -> None:
    """Stores every session of the files, each whole or not at all. What cannot be read or is
    refused stops nothing else: it is named, and the command fails at the end. Where the service
    goes away nothing more is tried. What was done until then is said in any case."""
    from contextengine import ContextEngineError

    files, passed_over = session_files(paths)
    if not files:
        raise CommandFailed(f"no session files in {', '.join(map(str, paths))}")
    done: list[ImportedTranscript] = []
    failures: list[NotImported] = []
    away: ContextEngineError | None = None
    async with connected(where, Missing.CREATE) as client:
        with progress(f"importing {_count(len(files), 'file')}") as advance:
            for file in files:
                stored: list[ImportedTranscript] = []
                try:
                    read = _read(file, session, format)
                    failures += await _store_each(client, file, agent, read, advance, stored)
                except CommandFailed as error:
                    failures.append(NotImported(file, error.text, error))
                except ContextEngineError as error:
                    away = error
                done += stored
                if away is not None:
                    break
        if not done and len(files) == 1 and len(failures) <= 1:
            for alone in [away, *(one.error for one in failures)]:
                if alone is not None:
                    raise alone
        if json:
            _print_json(done, failures, passed_over, agent)
        else:
            _say(done, agent)
            _say_passed_over(passed_over)
        for failure in failures:
            complain(failure.text)
        if away is not None:
            raise away
    if failures:
        failed = len({one.file for one in failures})
        raise CommandFailed(
            f"{_count(failed, 'file')} of {len(files)} could not be imported, or not whole: mend"
            " what is named above and run the same command again; what is there already is not"
            " stored twice"
        )


def _read(file: Path, session: str, format: str) -> Iterator[Transcript | TranscriptError]:
    """The sessions of a file; its only one under another id where `session` gives one."""
    found = read_each(file, format)
    return _only(found, file, session) if session else found


async def _store_each(
    client: AsyncClient,
    file: Path,
    agent: str,
    transcripts: Iterator[Transcript | TranscriptError],
    advance: Advance,
    done: list[ImportedTranscript],
) -> list[NotImported]:
    """Stores the sessions of one file, which `done` is told of. What was not stored of them. Raises
    CommandFailed where no more of the file can be read, ContextEngineError where the service is
    away."""
    from contextengine.errors import ContextEngineError, is_away
    from contextengine.formats import TranscriptError

    failures: list[NotImported] = []
    try:
        for transcript in transcripts:
            if isinstance(transcript, TranscriptError):
                failures.append(NotImported(file, str(transcript), CommandFailed(str(transcript))))
                continue
            try:
                done.append(await store(client, agent, transcript, advance))
            except ContextEngineError as error:
                if is_away(error):
                    raise
                text = f"{file}: session {transcript.session_id!r}: {error}"
                failures.append(NotImported(file, text, error))
    except TranscriptError as error:
        raise CommandFailed(f"{error}. {_so_far(done)}") from error
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror}. {_so_far(done)}") from error
    return failures


def _print_json(
    done: Sequence[ImportedTranscript],
    failures: Sequence[NotImported],
    passed_over: Sequence[PassedOver],
    agent: str,
) -> None:
    named = [{"file": str(one.file), "why": one.why} for one in passed_over[:MOST_NAMED]]
    print_json(
        {
            "agent_id": agent,
            "sessions": [one.row() for one in done],
            "failures": [one.text for one in failures],
            "passed_over": {"count": len(passed_over), "files": named},
        }
    )


def _say(done: Sequence[ImportedTranscript], agent: str) -> None:
    stored = sum(one.stored for one in done)
    duplicates = sum(one.known for one in done)
    tokens = sum(one.tokens for one in done)
    known = f", {duplicates:,} were there before" if duplicates else ""
    # A file of a subagent's work has no session of its own.
    sessions = {one.session_id for one in done if one.stored or one.known}
    print(
        f"{_count(len(sessions), 'session')} of agent {agent!r}: {stored:,} messages stored{known};"
        f" {tokens:,} tokens"
    )
    for only in sessions if len(sessions) == 1 else ():
        print(f"session {only}")
    for line in remarks(done):
        print(line)


def _say_passed_over(files: Sequence[PassedOver]) -> None:
    if files:
        print(f"passed over: {_count(len(files), 'file')} of no known format")
    for one in files[:MOST_NAMED]:
        print(f"  {one.file}: {one.why}")
    if len(files) > MOST_NAMED:
        print(f"  and {len(files) - MOST_NAMED:,} more")


def _only(
    transcripts: Iterator[Transcript | TranscriptError], file: Path, session: str
) -> Iterator[Transcript | TranscriptError]:
    """The one session of a file, under another id."""
    found = list(transcripts)
    if len(found) != 1:
        raise CommandFailed(
            f"{file} holds {len(found)} sessions: --session names one; leave it out", 2
        )
    only = found[0]
    yield only if isinstance(only, Exception) else replace(only, session_id=session)


def _so_far(done: Sequence[ImportedTranscript]) -> str:
    if not done:
        return "Nothing was imported."
    before = "The session" if len(done) == 1 else f"The {len(done)} sessions"
    return (
        f"{before} before it {'is' if len(done) == 1 else 'are'} imported, of this one nothing"
        " is: mend the file and run the same command again."
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
