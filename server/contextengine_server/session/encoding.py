"""The encoding that a session counts in: it keeps the one that it began with, whatever the server
is configured for later, so that sums over its messages stay sums of one kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from contextengine_server.summarize import COUNT_ONLY_MAX_TOKENS
from contextengine_server.tokens import MESSAGE_TOKENS, TokenCounter
from contextengine_server.wire.slots import WireShaper

from .rows import summary_overhead

MAX_OWN_TEXTS = 64
"""Texts of engines (additions to the system prompt) whose counts are kept."""


class Encoding:
    """Counts and shapes in one encoding."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self.name = counter.encoding
        self.count: Callable[[str], int] = counter.count_text
        self.shaper = WireShaper(counter.count_text)
        self._own_texts = lru_cache(MAX_OWN_TEXTS)(counter.count_text)
        self._overhead = 0

    @property
    def summary_floor(self) -> int:
        """What the smallest summary costs: nothing smaller is worth compacting."""
        if not self._overhead:
            self._overhead = summary_overhead(self.count)
        return self._overhead + COUNT_ONLY_MAX_TOKENS

    def text_tokens(self, text: str) -> int:
        """The tokens of one of the service's own texts, as a message of its own."""
        return MESSAGE_TOKENS + self._own_texts(text) if text else 0

    async def texts(self, texts: Sequence[str]) -> int:
        """The tokens of texts together: small ones are counted here, long ones in threads."""
        small = self.counter.count_small(texts)
        return small if small is not None else sum(await self.counter.count_many(texts))


class Encodings:
    """The encodings in use, by name. The one for new sessions is there at once, others are loaded
    when a session that began with them is first read."""

    def __init__(self, counter: TokenCounter) -> None:
        self.default = Encoding(counter)
        self._known = {self.default.name: self.default}

    async def of(self, name: str) -> Encoding:
        """The encoding of this name. Raises UnknownEncoding, CorruptRanks."""
        known = self._known.get(name)
        if known is None:
            counter = TokenCounter(name)
            await counter.warm()
            known = self._known.setdefault(name, Encoding(counter))
        return known

    def close(self) -> None:
        """Ends the threads that count."""
        for encoding in self._known.values():
            encoding.counter.close()
