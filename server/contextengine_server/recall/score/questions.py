"""Which of the messages that match only ask: what answers them stands behind them.

Of "What a story! Where will you stay?" the first half is small talk and the second a question,
whose answer is the next turn and holds none of its words. Somebody who tells and then asks ("I pay
$900 in rent. How do I save?") is found by what he tells. So it counts in which of its sentences a
message holds what is sought.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from contextengine_server.store.search import Match

from .rank import Sought

LONG = 100
"""A question of more characters tells as much as it asks, and counts like all else."""
_END = re.compile(r"[.!?]\s+|[。！？]|\n+")
"""Where a sentence ends. It begins with what ends it, and not with what stands before that, so that
a text is gone through as fast as it is read."""
_ASKS = ("?", "？")
_SHORT, _REMEMBERED = 2_000, 2_048
"""Characters of a text that is remembered in its two halves, and how many are: who searches a
session searches it again, and to part texts is the dearest of what a question asks for."""


class Questions:
    """Tells which messages only ask. Remembers of short texts what they ask and what they tell."""

    def __init__(self) -> None:
        self._remembered = lru_cache(maxsize=_REMEMBERED)(_halves)

    def asked_in(
        self, scored: Sequence[tuple[float, Match]], lanes: Sequence[Sought]
    ) -> dict[int, float]:
        """By place, the share of what is sought in a message that only its questions hold, 0 to 1,
        each term by its worth. Messages without a question are left out."""
        roots: dict[str, float] = {}
        for one in lanes:
            roots[one.term.root] = max(roots.get(one.term.root, 0.0), one.worth)
        found = {}
        for _, match in scored:
            text = match.text
            if "?" in text or "？" in text:
                halves = self._remembered(text) if len(text) <= _SHORT else _halves(text)
                if share := _share(*halves, roots):
                    found[match.place] = share
        return found

    def clear(self) -> None:
        """Forgets all."""
        self._remembered.cache_clear()


def _share(asked: str, told: str, roots: Mapping[str, float]) -> float:
    only = whole = 0.0
    for root, worth in roots.items() if asked else ():
        if root in told:
            whole += worth
        elif root in asked:
            whole += worth
            only += worth
    return only / whole if only else 0.0


def _halves(text: str) -> tuple[str, str]:
    """The sentences of a text that only ask, and all others, in lower case."""
    asked: list[str] = []
    told: list[str] = []
    for row in _sentences(text.lower()):
        (asked if row.endswith(_ASKS) and len(row) <= LONG else told).append(row)
    return "\n".join(asked), "\n".join(told)


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(text):
        yield text[start : end.end()].rstrip()
        start = end.end()
    yield text[start:].rstrip()
