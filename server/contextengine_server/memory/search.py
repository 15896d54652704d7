"""Search of an agent's memory: by words, ranked, or by a regular expression, the newest first.

All facts of the agent are gone through, of which there are no more than the settings allow.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from math import log

import msgspec

from contextengine_server.context.scope import Scope
from contextengine_server.memory.supersession import RememberedFact, remembered
from contextengine_server.recall.pages import digest_of, numbers_in, token_of
from contextengine_server.recall.patterns import Pattern, compile_pattern
from contextengine_server.recall.terms import terms_of
from contextengine_server.store.protocols import AgentMemory
from contextengine_server.store.words import spread, stems

DEFAULT_LIMIT, MAX_LIMIT = 10, 100


class MemoryQuery(msgspec.Struct, frozen=True):
    """What is looked for."""

    text: str
    regex: bool = False
    kinds: tuple[str, ...] = ()
    """Only facts of these kinds; empty: all."""
    limit: int = DEFAULT_LIMIT
    page: str = ""
    """Where the last page ended; empty: from the start."""
    start_ms: int | None = None
    end_ms: int | None = None
    superseded: bool = False
    """True: also facts that hold no more."""


class FactHit(msgspec.Struct, frozen=True):
    """A fact that was found."""

    found: RememberedFact
    score: float
    """How well it matches, 0 to 1."""


class FactPage(msgspec.Struct, frozen=True):
    """A page of hits, best first."""

    hits: Sequence[FactHit] = ()
    next_page: str = ""
    """Where the next page begins; empty: there is none."""
    total: int = 0


async def search_memory(store: AgentMemory, scope: Scope, query: MemoryQuery) -> FactPage:
    """What the agent of a session remembers. Raises InvalidField for a page that is not the
    query's, or a pattern that is none."""
    pattern = compile_pattern(query.text) if query.regex else None
    asked = [query.text, query.regex, query.kinds, query.start_ms, query.end_ms, query.superseded]
    digest = digest_of(scope.tenant, scope.agent, "memory", asked)
    [start] = numbers_in(query.page, digest, 1) if query.page else [0]
    facts = await store.facts(scope.tenant, scope.agent)
    found = await asyncio.to_thread(_found, remembered(facts), query, pattern)
    page = found[start : start + query.limit]
    behind = start + len(page)
    more = token_of(digest, [behind]) if page and behind < len(found) else ""
    return FactPage(page, more, len(found))


def _found(
    facts: Sequence[RememberedFact], query: MemoryQuery, pattern: Pattern | None
) -> list[FactHit]:
    chosen = [one for one in facts if _wanted(one, query)]
    if pattern is not None:
        return [FactHit(one, 1.0) for one in chosen if pattern.first(_said(one)) is not None]
    texts = [
        set(stems(spread(f"{one.fact.kind} {one.fact.subject} {_said(one)}"))) for one in chosen
    ]
    words = set(stems(spread(" ".join(term.text for term in terms_of(query.text)))))
    counts = Counter(word for text in texts for word in words & text)
    worth = {word: log(1 + len(texts) / (1 + counts[word])) for word in words}
    whole = sum(worth.values()) or 1.0
    hits = [
        FactHit(one, sum(worth[word] for word in sorted(words & text)) / whole)
        for one, text in zip(chosen, texts, strict=True)
        if words & text
    ]
    return sorted(hits, key=lambda hit: -hit.score)


def _wanted(one: RememberedFact, query: MemoryQuery) -> bool:
    said = one.fact.said_ms
    return (
        (query.superseded or not one.superseded_by)
        and (not query.kinds or one.fact.kind in query.kinds)
        and (query.start_ms is None or said >= query.start_ms)
        and (query.end_ms is None or said < query.end_ms)
    )


def _said(one: RememberedFact) -> str:
    return f"{one.fact.value}\n{one.fact.text}"
