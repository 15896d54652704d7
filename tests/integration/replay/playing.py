"""Playing real transcripts to a server in each way in which a harness may call it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from contextengine import types as t
from contextengine.formats import Transcript, read_transcript
from tests.integration.harness import House, ref

AIRLINE = "tests/data/airline_transcripts.jsonl"
CODING = "tests/data/coding_session.pi.jsonl"
EVERYTHING = bool(os.environ.get("CONTEXTENGINE_ALL_SESSIONS"))
"""Set for the soak: every session, every budget, every call."""


def coding() -> Transcript:
    """The coding session."""
    return next(iter(read_transcript(CODING)))


def airline(sample: int) -> list[Transcript]:
    """The airline sessions: every one in the soak, else this many, spread over all."""
    every = list(read_transcript(AIRLINE))
    return every if EVERYTHING else every[:: max(1, len(every) // sample)][:sample]


def turns(messages: Sequence[t.Message]) -> Iterator[tuple[int, int]]:
    """Where each turn begins and ends: a user message and everything up to the next one."""
    starts = [index for index, message in enumerate(messages) if message.role == t.Role.ROLE_USER]
    edges = sorted({0, *starts, len(messages)})
    yield from pairwise(edges)


def strides(messages: Sequence[t.Message]) -> Iterator[tuple[int, int]]:
    """Where to stop on the way: behind every third turn; in the soak behind each."""
    edges = [0, *(last for _, last in turns(messages))]
    yield from pairwise(sorted({*edges[:: 1 if EVERYTHING else 3], len(messages)}))


def without_ids(messages: Sequence[t.Message]) -> list[t.Message]:
    """Copies that have no ids."""
    copies = []
    for message in messages:
        copy = t.Message()
        copy.CopyFrom(message)
        copy.id = ""
        copies.append(copy)
    return copies


def with_ids(messages: Sequence[t.Message]) -> list[t.Message]:
    """Copies with ids by position."""
    copies = without_ids(messages)
    for index, copy in enumerate(copies):
        copy.id = f"m{index + 1}"
    return copies


def no_background(house: House) -> None:
    """Nothing is compacted behind the test's back, so that ways of calling can be compared."""

    async def nothing(*_: object, **__: object) -> None:
        return None

    house.app.store.claim_debt = nothing  # type: ignore[method-assign]


@dataclass
class Player:
    """One session played in one way. Counts the bytes of requests and replies."""

    house: House
    name: str
    budget: int
    messages: Sequence[t.Message]
    delta: bool = False
    sent: int = 0
    received: int = 0
    held: list[t.Item] = field(default_factory=list)
    known: bytes = b""

    async def assemble(self, **fields: Any) -> t.AssembleResponse:
        """One assembly; with `delta` only what is new comes back, and the whole list is put
        together here."""
        request = t.AssembleRequest(
            session=ref(self.name), budget=t.Budget(message_tokens=self.budget), **fields
        )
        if self.delta:
            request.known_context_hash = self.known
        reply: t.AssembleResponse = await self.house.stub.Assemble(request)
        self.sent += request.ByteSize()
        self.received += reply.ByteSize()
        self.held = [*self.held[: reply.cache.reused_count], *reply.items]
        self.known = reply.context_hash
        return reply

    async def ingest(self, first: int, last: int) -> t.AssembleResponse:
        """The new messages inside Assemble."""
        return await self.assemble(ingest=self.messages[first:last])

    async def separate(self, first: int, last: int) -> t.AssembleResponse:
        """The new messages first, then Assemble."""
        request = t.IngestBatchRequest(session=ref(self.name), messages=self.messages[first:last])
        reply = await self.house.stub.IngestBatch(request)
        self.sent += request.ByteSize()
        self.received += reply.ByteSize()
        return await self.assemble()

    async def live(self, first: int, last: int) -> t.AssembleResponse:
        """The harness's whole list."""
        return await self.assemble(live=t.LiveList(messages=self.messages[:last], store_new=True))


Way = Callable[[Player, int, int], Any]
WAYS: dict[str, tuple[Callable[[Sequence[t.Message]], list[t.Message]], Way]] = {
    "ingest": (with_ids, Player.ingest),
    "separate": (with_ids, Player.separate),
    "live": (without_ids, Player.live),
    "live-ids": (with_ids, Player.live),
}
