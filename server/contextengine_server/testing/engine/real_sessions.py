"""Real sessions as rows, counted in real tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from contextengine.formats import read_transcript
from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.testing.oracle.pairs import ViewRow
from contextengine_server.tokens import TokenCounter
from contextengine_server.wire.slots import WireShaper

count = cache(TokenCounter().count_text)
"""Real tokens. Transcripts repeat themselves, so counts are kept."""

REAL_SHAPER = WireShaper(count)


def rows_of(messages: Iterable[pb.Message]) -> list[ViewRow]:
    """The messages as a session stores them, one after the other; revisions between them are left
    for commits."""
    return [ViewRow(number, message, 100 * number) for number, message in enumerate(messages, 1)]


def real_sessions(file: Path) -> Iterator[list[ViewRow]]:
    """The sessions of a file in a format that `contextengine import` reads."""
    for transcript in read_transcript(file):
        yield rows_of(transcript.messages)
