"""Summaries that should be made again: what stood in for a better one, what quotes a model's
private reasoning, and what is damaged."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.compaction.retold import NAME as FACTS
from contextengine_server.context.view import Summary
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import MessageRow, SessionHead, SummaryRow
from contextengine_server.summarize.extractive.summarizer import NAME as EXTRACTIVE
from contextengine_server.wire.damage import intact, readable
from contextengine_server.wire.message import texts_of
from contextengine_server.wire.privacy import said

Row = TypeVar("Row", SummaryRow, Summary)

MIN_QUOTE = 24
"""Characters of reasoning that are a quote where a summary holds them in a row; fewer may be
chance."""

MAX_QUOTE = 120
"""Of a longer sentence the beginning is looked for: an extractive summary cuts it."""

_AT_ONCE = 256
"""Messages that are read at once."""

_BREAK = re.compile(r"[\n.!?。！？;]+")


def ours_now(rows: Iterable[SummaryRow]) -> list[SummaryRow]:
    """Of these rows the live summaries that were not made again since, and that no host wrote."""
    live = [row for row in rows if not row.retired_revision]
    remade = {row.remakes for row in live}
    return [row for row in live if row.id not in remade and row.origin != "host"]


def stand_ins(summaries: Sequence[Row]) -> list[str]:
    """Those that a lower link of the chain wrote, of live summaries: the notes that count, those
    that somebody else was wanted for, and what was extracted in a session whose other summaries a
    model wrote."""
    ours, by_model = _ours(summaries)
    return [
        one.id
        for one in ours
        if one.fallback or one.wanted or (by_model and one.summarizer == EXTRACTIVE)
    ]


def awaited(summaries: Sequence[Summary]) -> bool:
    """True where one of these live summaries is damaged, or somebody may come back who was to write
    it. Extraction needs nobody: what it could not say it cannot say later."""
    ours, by_model = _ours(summaries)
    stood_in = set(stand_ins(summaries))
    return any(
        one.damaged or (one.id in stood_in and (by_model or one.wanted != EXTRACTIVE))
        for one in ours
    )


def _ours(summaries: Sequence[Row]) -> tuple[list[Row], bool]:
    """Those that no host wrote and that were not made again, and whether a model wrote any."""
    remade = {one.remakes for one in summaries}
    ours = [one for one in summaries if one.origin != "host" and one.id not in remade]
    rules = (EXTRACTIVE, FACTS)
    return ours, any(not one.fallback and one.summarizer not in rules for one in ours)


async def quoting(store: Store, head: SessionHead, rows: Sequence[SummaryRow]) -> list[str]:
    """Of a session's live summaries those of its own messages that quote private reasoning."""
    own, found = head.parent_sequence + 1 if head.parent_session else 1, []
    for row in filter(intact, ours_now(rows)):
        for first in range(max(row.first_sequence, own), row.last_sequence + 1, _AT_ONCE):
            last = min(first + _AT_ONCE - 1, row.last_sequence)
            messages = await store.messages(head.scope, first, last, retired=True)
            if await asyncio.to_thread(quotes_reasoning, row, messages):
                found.append(row.id)
                break
    return found


def quotes_reasoning(row: SummaryRow, messages: Sequence[MessageRow]) -> bool:
    """True where a summary holds what a message that it covers says in private reasoning, and none
    of them says openly. Earlier versions gave reasoning to summarizers."""
    text = _plain(row.text)
    hidden: list[str] = []
    openly: list[str] = []
    for one in messages:
        message = readable(one)
        if message is None:
            continue
        spoken, everything = _texts(said(message)), _texts(message.parts)
        openly.append(_plain(" ".join(spoken)))
        if spoken != everything:
            hidden += everything
    return any(
        quote in text and not any(quote in other for other in openly) for quote in _quotes(hidden)
    )


def _texts(parts: Sequence[pb.Part]) -> list[str]:
    texts: list[str] = []
    texts_of(parts, texts)
    return texts


def _quotes(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        for piece in _BREAK.split(re.sub(r"<[^<>]*>", "\n", text)):
            quote = _plain(piece)[:MAX_QUOTE]
            if len(quote) >= MIN_QUOTE:
                yield quote


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
