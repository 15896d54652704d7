"""Passages as the tests write and find them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.protocols import Store
from contextengine_server.store.search import (
    Advance,
    Asking,
    Document,
    DocumentKind,
    Lane,
    Match,
    Progress,
    SearchSpan,
)

from .rows import SCOPE, Pen, message

WHOLE = 2**40


def span(scope: Scope = SCOPE, **more: Any) -> SearchSpan:
    return replace(SearchSpan(scope, DocumentKind.MESSAGE, 1, WHOLE, WHOLE), **more)


async def fill(
    pen: Pen, *texts: str, kind: DocumentKind = DocumentKind.MESSAGE, first: int | None = None
) -> Progress:
    """Indexes texts, one for each place, behind what is there."""
    progress = await pen.store.index.progress(pen.scope)
    assert progress is not None
    before = progress.cursor
    first = before.sequence + 1 if first is None else first
    documents = [Document(kind, first + n, 0, text) for n, text in enumerate(texts)]
    after = replace(before, sequence=before.sequence + len(texts), revision=progress.revision)
    await pen.store.index.advance(
        [Advance(pen.scope, progress.incarnation, before, after, documents)]
    )
    return progress


async def written(store: Store, *texts: str, scope: Scope = SCOPE, **row: Any) -> Pen:
    """A session with a message for each text, all indexed."""
    pen = Pen(store, scope)
    await pen.write(messages=[message(n, **row) for n in range(1, len(texts) + 1)])
    await fill(pen, *texts)
    return pen


async def found(store: Store, text: str, *spans: SearchSpan, substring: bool = False) -> list[int]:
    matches = await store.index.find(spans or [span()], [Lane(text, substring)], 1000)
    return [match.place for match in matches]


async def counted(store: Store, spans: Sequence[SearchSpan], lanes: Sequence[Lane]) -> list[int]:
    """How many documents each lane matches; nothing where nothing is indexed."""
    counts: list[int] = []

    def asking() -> Asking:
        counts.extend((yield lanes))
        return []

    assert await store.index.look(spans, asking(), 10) == []
    return counts


def places(matches: Sequence[Match]) -> list[int]:
    return [match.place for match in matches]
