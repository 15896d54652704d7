"""Imports the sessions of files and folders, and says what became of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from contextengine_server.cli.connection import Missing, Where, connected
from contextengine_server.cli.imports.files import PassedOver, read_sessions, session_files
from contextengine_server.cli.imports.session import ImportedTranscript, remarks, store
from contextengine_server.cli.output import Advance, CommandFailed, complain, print_json, progress

if TYPE_CHECKING:
    from contextengine import AsyncClient
    from contextengine.formats import Transcript

MOST_NAMED = 20
"""Files that are passed over are named, the first ones: a folder of somebody's whole work may hold
thousands."""


async def import_files(
    where: Where, paths: Sequence[Path], agent: str, session: str, format: str, json: bool
) -> None:
    """Stores every session of the files, each whole or not at all. A file that cannot be read stops
    no other: what failed is named, and the command fails at the end."""
    files, passed_over = session_files(paths)
    if not files:
        raise CommandFailed(f"no session files in {', '.join(map(str, paths))}")
    done: list[ImportedTranscript] = []
    failures: list[str] = []
    async with connected(where, Missing.CREATE) as client:
        with progress(f"importing {_count(len(files), 'file')}") as advance:
            for file in files:
                stored: list[ImportedTranscript] = []
                try:
                    await _import_file(client, file, agent, session, format, advance, stored)
                except CommandFailed as error:
                    if len(files) == 1:
                        raise
                    failures.append(error.text)
                done += stored
    if json:
        sessions = [one.row() for one in done]
        named = [{"file": str(one.file), "why": one.why} for one in passed_over[:MOST_NAMED]]
        print_json(
            {
                "agent_id": agent,
                "sessions": sessions,
                "failures": failures,
                "passed_over": {"count": len(passed_over), "files": named},
            }
        )
    else:
        _say(done, agent)
        _say_passed_over(passed_over)
    for failure in failures:
        complain(failure)
    if failures:
        raise CommandFailed(
            f"{_count(len(failures), 'file')} of {len(files)} could not be imported: mend what is"
            " named above and run the same command again; what is there already is not stored twice"
        )


async def _import_file(
    client: AsyncClient,
    file: Path,
    agent: str,
    session: str,
    format: str,
    advance: Advance,
    done: list[ImportedTranscript],
) -> None:
    """Stores the sessions of one file, which `done` is told of. Raises CommandFailed."""
    from contextengine.formats import TranscriptError

    transcripts = read_sessions(file, format)
    if session:
        transcripts = _only(transcripts, file, session)
    try:
        for transcript in transcripts:
            done.append(await store(client, agent, transcript, advance))
    except TranscriptError as error:
        raise CommandFailed(f"{error}. {_so_far(done)}") from error


def _say(done: Sequence[ImportedTranscript], agent: str) -> None:
    stored = sum(one.stored for one in done)
    duplicates = sum(one.known for one in done)
    tokens = sum(one.tokens for one in done)
    known = f", {duplicates:,} were there before" if duplicates else ""
    print(
        f"{_count(len(done), 'session')} of agent {agent!r}: {stored:,} messages stored{known};"
        f" {tokens:,} tokens"
    )
    if len(done) == 1:
        print(f"session {done[0].session_id}")
    for line in remarks(done):
        print(line)


def _say_passed_over(files: Sequence[PassedOver]) -> None:
    if files:
        print(f"passed over: {_count(len(files), 'file')} of no known format")
    for one in files[:MOST_NAMED]:
        print(f"  {one.file}: {one.why}")
    if len(files) > MOST_NAMED:
        print(f"  and {len(files) - MOST_NAMED:,} more")


def _only(transcripts: Iterator[Transcript], file: Path, session: str) -> Iterator[Transcript]:
    """The one session of a file, under another id."""
    found = list(transcripts)
    if len(found) != 1:
        raise CommandFailed(
            f"{file} holds {len(found)} sessions: --session names one; leave it out", 2
        )
    return iter([replace(found[0], session_id=session)])


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
