"""What is to be beaten: the newest messages that fit, and a plain BM25 over whole messages."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

K1, B = 1.2, 0.75
"""BM25's usual constants."""


def newest(texts: Sequence[str], budget: int, count: Callable[[str], int]) -> list[str]:
    """The newest texts that fit a budget together."""
    kept: list[str] = []
    for text in reversed(texts):
        budget -= count(text)
        if budget < 0:
            break
        kept.append(text)
    return kept


class BM25:
    """Ranks texts by the words of a query: no stemming, no identifiers, no phrases."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._counts = [Counter(_words(text)) for text in texts]
        self._mean = sum(counts.total() for counts in self._counts) / len(texts)
        self._in = Counter(word for counts in self._counts for word in counts)

    def best(self, query: str, limit: int) -> list[str]:
        """The texts that answer a query best."""
        words = set(_words(query))
        scores = [(self._score(words, counts), -at) for at, counts in enumerate(self._counts)]
        chosen = sorted(((score, at) for score, at in scores if score > 0), reverse=True)[:limit]
        return [self._texts[-at] for _, at in chosen]

    def _score(self, words: set[str], counts: Counter[str]) -> float:
        length = 1 - B + B * counts.total() / self._mean
        total = 0.0
        for word in sorted(words & counts.keys()):
            rarity = math.log(
                1 + (len(self._texts) - self._in[word] + 0.5) / (self._in[word] + 0.5)
            )
            total += rarity * counts[word] * (K1 + 1) / (counts[word] + K1 * length)
        return total


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
