"""A harness as agents have it, driven by a transcript: what it says to the server at each step and
turn.

A turn is a user's message and everything up to the next one. Within a turn the model is called
before each assistant message, with what is known by then; a turn without an assistant message asks
once, at its end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from contextengine.types import ROLE_ASSISTANT, ROLE_USER, AssembleResponse, LiveList, Message

if TYPE_CHECKING:
    from google.protobuf.message import Message as ProtoMessage

    from contextengine import AsyncClient, SessionRef
    from contextengine.calls import Call
    from contextengine.types import Budget, CacheReport, Item

Request = TypeVar("Request", bound="ProtoMessage")
Response = TypeVar("Response", bound="ProtoMessage")

FRAME = 5
"""Bytes that gRPC puts before each message on the wire."""
_POLL_S = 0.01
_JOB_WAIT_S = 60.0
"""How long background work is waited for: twice what a summary may take by default."""


class TranscriptTurn(msgspec.Struct, frozen=True):
    """A turn's place in its transcript: indexes from 0, the last one excluded."""

    first: int
    last: int
    calls: tuple[int, ...]
    """How many messages of the transcript are known at each call of the model."""


def turns_of(messages: Sequence[Message]) -> list[TranscriptTurn]:
    """The turns of a transcript. What stands before the first user message belongs to the first
    turn."""
    starts = [index for index, message in enumerate(messages) if message.role == ROLE_USER]
    edges = [0, *starts[1:], len(messages)] if messages else [0]
    turns = []
    for first, last in pairwise(edges):
        calls = tuple(i for i in range(first, last) if messages[i].role == ROLE_ASSISTANT and i)
        turns.append(TranscriptTurn(first, last, calls or (last,)))
    return turns


@dataclass(slots=True)
class Cost:
    """What calls cost: bytes both ways, milliseconds until the reply, how many calls."""

    sent: int = 0
    received: int = 0
    ms: float = 0.0
    calls: int = 0

    def add(self, other: Cost) -> None:
        """Adds another's."""
        self.sent += other.sent
        self.received += other.received
        self.ms += other.ms
        self.calls += other.calls


@dataclass(slots=True)
class Step:
    """One context as the model would get it."""

    reply: AssembleResponse
    items: tuple[Item, ...]
    """The whole list."""
    tokens: int
    """Of all items, in the reference encoding."""
    prefix: int
    """Of the items that begin the list as they began the one before: what a provider's cache
    holds."""
    cause: int
    """The EpochCause; 0: the epoch is the same."""
    compactions: int = 0
    """Forced because the context did not fit."""


@dataclass(slots=True)
class SimulatedHarness:
    """Holds what a harness holds: its last list, its epoch, and how much of the transcript it has
    handed over."""

    client: AsyncClient
    ref: SessionRef
    way: str
    budget: Budget | None = None
    cost: Cost = field(default_factory=Cost)
    _handed: int = 0
    _last: AssembleResponse | None = None
    _items: tuple[Item, ...] = ()

    async def step(self, known: Sequence[Message], *, explain: bool = False) -> Step:
        """Asks for the context of a model call that knows the messages `known`."""
        from contextengine.calls import ASSEMBLE, COMPACT, INGEST_BATCH

        new = known[self._handed :]
        fields: dict[str, Any] = self._budget()
        if self.way == "ingest":
            fields["ingest"] = new
        elif self.way == "separate":
            if new:
                await self._call(INGEST_BATCH, messages=new)
        else:
            fields["live"] = LiveList(messages=known, store_new=True)
        self._handed = len(known)
        step = await self._assembled(
            await self._call(ASSEMBLE, **fields, **self._held(), explain=explain)
        )
        if step.reply.outcome == AssembleResponse.OUTCOME_OVER_BUDGET:
            await self._call(
                COMPACT, force=True, force_reason="overflow", trigger="overflow", **self._budget()
            )
            fields.pop("ingest", None)
            again = await self._assembled(
                await self._call(ASSEMBLE, **fields, **self._held(), explain=explain)
            )
            again.compactions, again.prefix = 1, min(step.prefix, again.prefix)
            again.cause = again.cause or step.cause
            step = again
        budget = step.reply.budget
        if 0 < budget.compaction_threshold <= budget.utilization:
            await self._settled()
        return step

    async def end_turn(self, known: Sequence[Message]) -> None:
        """Says that the turn is over and hands over the rest of it."""
        from contextengine.calls import AFTER_TURN

        if self.way.startswith("live"):
            reply = await self._call(
                AFTER_TURN, messages=known, pre_prompt_message_count=self._handed, **self._budget()
            )
        else:
            reply = await self._call(AFTER_TURN, messages=known[self._handed :], **self._budget())
        self._handed = len(known)
        if reply.compaction_queued:
            await self._settled()

    def _budget(self) -> dict[str, Any]:
        return {} if self.budget is None else {"budget": self.budget}

    def _held(self) -> dict[str, Any]:
        if self._last is None:
            return {}
        return {
            "known_context_hash": self._last.context_hash,
            "known_epoch": self._last.context_projection.epoch,
        }

    async def _assembled(self, reply: AssembleResponse) -> Step:
        cache: CacheReport = reply.cache
        items = self._items[: cache.reused_count] + tuple(reply.items)
        if len(items) != cache.total_count:
            raise AssertionError(
                f"a reply of {len(items)} items says that it has {cache.total_count}"
            )
        same = 0
        for mine, now in zip(self._items, items, strict=False):
            if mine.content_hash != now.content_hash:
                break
            same += 1
        prefix = sum(item.tokens for item in items[:same])
        self._items, self._last = items, reply
        tokens = sum(item.tokens for item in items)
        return Step(reply, items, tokens, prefix, cache.epoch_cause)

    async def _call(self, call: Call[Request, Response], **fields: Any) -> Response:
        from contextengine.requests import build

        size = build(call.request, {"session": self.ref, **fields}).ByteSize()
        began = time.perf_counter()
        reply = await self.client.unary(call, session=self.ref, **fields)
        elapsed = (time.perf_counter() - began) * 1000
        self.cost.add(Cost(size + FRAME, reply.ByteSize() + FRAME, elapsed, 1))
        return reply

    async def _settled(self) -> None:
        """Waits for background work: a model's answer, which a transcript does not wait for, would
        take longer."""
        end = time.monotonic() + _JOB_WAIT_S
        while time.monotonic() < end:
            status = await self.client.get_status(self.ref)
            if not any(job.state in ("waiting", "running") for job in status.jobs):
                return
            await asyncio.sleep(_POLL_S)


def spent(harness: SimulatedHarness) -> Cost:
    """What was spent since the last time this was asked."""
    cost, harness.cost = harness.cost, Cost()
    return cost


def without_ids(messages: Sequence[Message]) -> Iterator[Message]:
    """Copies that carry no host id."""
    for message in messages:
        copy = Message()
        copy.CopyFrom(message)
        copy.id = ""
        yield copy
