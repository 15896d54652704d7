"""The seeded store: the sessions that profiles speak of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contextengine_proto.v1 import message_pb2
from tests.bench.talk import Talk, conversation, said, transcripts

HISTORY = 220
"""Messages of 400 bytes of text, 440 as an item: a context of 100 KB."""

READ = {"warm-10kb": 22, "warm-100kb": HISTORY, "warm-1mb": 2_200}
"""Sessions that are only read, by their messages. `search` is one more."""

WRITTEN = {
    "ingest": 32,
    "batch": 32,
    "turn": 32,
    "step": 32,
    "compact": 24,
    "parent": 16,
    "agent": 16,
}
"""Sessions that are written to: how many of `HISTORY` messages bear the name and a number. A run
has its own, so that none finds them grown by the run before it: their names begin with the
run's."""


def seed_read(talk: Talk) -> None:
    """Makes the sessions that all runs read."""
    for session, count in READ.items():
        _fill(talk, session, list(conversation(count, 400)))
    _fill(talk, "search", [said(*one) for one in transcripts()])


def seed_written(talk: Talk, run: str, groups: Mapping[str, int]) -> None:
    """Makes the sessions that a run writes to: so many of each name."""
    history = list(conversation(HISTORY, 400))
    for group, count in groups.items():
        for index in range(count):
            _fill(talk, f"{run}{group}-{index}", history)


def _fill(talk: Talk, session: str, messages: Sequence[message_pb2.Message]) -> None:
    """Stores messages and waits for the index, whose work in the background would count
    otherwise."""
    talk.indexed(session, talk.fill(session, messages))
