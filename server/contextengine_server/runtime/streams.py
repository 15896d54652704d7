"""Streams of harnesses that lend their models: who is at the other end, what it was handed, and
what it is to be told."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from contextengine_server.store.model_jobs import ModelJob

MAX_UNSAID = 64
"""Receipts that wait to be read by a harness."""


class Harness(msgspec.Struct, frozen=True):
    """A harness as it introduced itself."""

    host_id: str = ""
    agent: str = ""
    """Only work of this agent; empty: of any."""
    models: tuple[str, ...] = ()
    """The models it lends; empty: its default, whatever is wished for."""
    slots: int = 1
    """How many jobs it takes at once."""
    most_tokens: int = 0
    """The largest input it takes; 0: it does not say."""

    def suits(self, agent: str, model: str, tokens: int = 0) -> bool:
        """True where it takes such work."""
        return (
            self.agent in ("", agent)
            and (not model or not self.models or model in self.models)
            and (not self.most_tokens or tokens <= self.most_tokens)
        )


class Receipt(msgspec.Struct, frozen=True):
    """What became of a result: an empty reason where it was accepted."""

    job_id: str
    reason: str = ""


class Cancelled(msgspec.Struct, frozen=True):
    """A job that is no longer wanted of this harness."""

    job_id: str
    reason: str


Said: TypeAlias = ModelJob | Receipt | Cancelled


@dataclass(slots=True, eq=False)
class Attached:
    """A stream that stands."""

    id: str
    tenant: str
    harness: Harness
    passing: bool = False
    """True where the harness only comes by: it is gone before others could reckon with it."""
    leased: dict[str, ModelJob] = field(default_factory=dict)
    """The jobs that it was handed and has not answered, by id; also where its lease ran out: it is
    told when nobody wants the answer any more."""
    unsaid: deque[Said] = field(default_factory=deque)
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False

    def say(self, said: Receipt | Cancelled) -> None:
        """Has something sent."""
        self.unsaid.append(said)
        self.woken.set()

    def end(self) -> None:
        """The harness says no more: what is still to be said to it is the last."""
        self.ended = True
        self.woken.set()

    async def caught_up(self) -> None:
        """Waits until the harness has read most of what was said: one that never reads is not
        listened to."""
        while len(self.unsaid) >= MAX_UNSAID:
            self.heard.clear()
            await self.heard.wait()
