"""The messages below summaries, read for a summarizer that quotes: a fold of what it wrote before
would be chosen from twice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from contextengine_server.compaction.summary_request import source_message
from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import StoreError
from contextengine_server.store.protocols import Messages
from contextengine_server.store.rows import MessageRow
from contextengine_server.summarize.request import SourceMessage, SummaryRequest
from contextengine_server.wire.entries import stored

MAX_TOKENS = 400_000
"""Of messages that a fold is made from. It bounds the memory and the time of one summary; what is
older is told by the summaries that cover it."""
MAX_MESSAGES = 8_000
_BATCH = 256
"""Sequences that are read at a time."""
_SLICE = 16
"""Messages that are decoded before others have their turn on the event loop."""
_SLICE_BYTES = 64 * 1024


class OriginalMessages(msgspec.Struct, frozen=True):
    """Puts messages in the place of the summaries of a request, the newest first, as far as the
    bounds go; the texts of the summaries stand for what is older."""

    store: Messages

    async def __call__(self, request: SummaryRequest) -> Sequence[SourceMessage]:
        """The sources of the request, in order, without private reasoning."""
        scope = Scope(request.tenant, request.agent, request.session)
        found: list[Sequence[SourceMessage]] = []
        tokens, messages, full = MAX_TOKENS, MAX_MESSAGES, False
        for source in reversed(request.messages):
            below: list[MessageRow] | None = None
            if not full and source.last >= source.sequence:
                try:
                    below = await self._below(scope, source, tokens, messages)
                except StoreError:
                    below = None  # a summary of summaries is better than none
                full = below is None
            if not below:
                found.append((source,))
                continue
            tokens -= sum(row.tokens for row in below)
            messages -= len(below)
            told = [row for row in below if row.sequence not in request.passed_over]
            found.append(await decoded(told))
        return [message for part in reversed(found) for message in part]

    async def _below(
        self, scope: Scope, source: SourceMessage, tokens: int, messages: int
    ) -> list[MessageRow] | None:
        """What a summary stands for; None where it is more than there is room for."""
        rows: list[MessageRow] = []
        for first in range(source.sequence, source.last + 1, _BATCH):
            last = min(source.last, first + _BATCH - 1)
            batch = await self.store.messages(scope, first, last)
            # What is not shown was not summarized; what came late for atoms before it stands with
            # them.
            rows += [
                row
                for row in batch
                if row.step is not None and (row.late_of is None or row.late_of >= source.sequence)
            ]
            messages -= len(batch)
            tokens -= sum(row.tokens for row in batch)
            if tokens < 0 or messages < 0:
                return None
        late = await self.store.late_results(scope, source.sequence, source.last)
        rows += [row for row in late if row.sequence > source.last]
        # What is pinned is shown all the same, and was never summarized.
        pinned = {row.step for row in rows if row.pinned}
        return [row for row in rows if row.step not in pinned]


async def decoded(rows: Sequence[MessageRow]) -> list[SourceMessage]:
    """What rows say, without holding the event loop for long."""
    found: list[SourceMessage] = []
    waiting = 0
    for at, row in enumerate(rows):
        found.append(source_message(stored(row)))
        waiting += len(row.body)
        if waiting >= _SLICE_BYTES or at % _SLICE == _SLICE - 1:
            waiting = 0
            await asyncio.sleep(0)
    return found
