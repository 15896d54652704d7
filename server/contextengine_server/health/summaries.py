"""Summaries that should be made again: what stood in for a better one, and what quotes a model's
private reasoning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.store.rows import MessageRow, SummaryRow
from contextengine_server.summarize.extractive.summarizer import NAME as EXTRACTIVE
from contextengine_server.wire.damage import readable
from contextengine_server.wire.message import texts_of
from contextengine_server.wire.privacy import said

MIN_QUOTE = 24
"""Characters of reasoning that are a quote where a summary holds them in a row; fewer may be
chance."""

MAX_QUOTE = 120
"""Of a longer sentence the beginning is looked for: an extractive summary cuts it."""

_BREAK = re.compile(r"[\n.!?。！？;]+")


def stand_ins(rows: Sequence[SummaryRow]) -> list[str]:
    """The live summaries that a lower link of the chain wrote: the notes that count, and what was
    extracted in a session whose other summaries a model wrote."""
    ours = [row for row in rows if row.origin != "host"]
    by_model = any(not row.fallback and row.summarizer != EXTRACTIVE for row in ours)
    return [
        row.id
        for row in ours
        if not row.retired_revision
        and (row.fallback or (by_model and row.summarizer == EXTRACTIVE))
    ]


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
