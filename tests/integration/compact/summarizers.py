"""Wrappers around the service's own summarizer: they wait, count, or say too much. What they hand
on is real."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from contextengine import types as t
from contextengine_server.summarize.request import (
    Summarizer,
    SummarizerFailed,
    SummaryRequest,
    SummaryResult,
)
from tests.integration.harness import House


class Counting:
    """Hands on, and remembers what was asked; of one session, where it is given, for others live
    in the same house."""

    name = "counting"

    def __init__(self, house: House, session: t.SessionRef | None = None) -> None:
        self._of = "" if session is None else session.session_id
        self.inner: Summarizer = house.app.core.summaries.summarizer
        self.asked: list[SummaryRequest] = []
        house.app.core.summaries.summarizer = self

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        if self._of in ("", request.session):
            self.asked.append(request)
        return await self.inner.summarize(request)


class Gated(Counting):
    """Waits at a gate before it hands on."""

    name = "gated"

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self.gate = asyncio.Event()
        self.reached = asyncio.Event()

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        self.reached.set()
        await self.gate.wait()
        return await super().summarize(request)


class Wordy(Counting):
    """Says everything twice over: its summaries are larger than what they stand for."""

    name = "wordy"

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        result = await super().summarize(request)
        return replace(
            result, text=f"{result.text}\n" + "and so on and on " * request.source_tokens
        )


class Failing:
    """A summarizer of a chain that never manages."""

    name = "failing"

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        raise SummarizerFailed("out of words")
