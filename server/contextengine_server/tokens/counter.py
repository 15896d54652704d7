"""Counting the tokens of text: small texts at once, long ones in slices, off the event loop.

A text of more than SLICE_CHARS characters is always counted slice by slice, in every way of
calling, so that its count does not depend on the way. A cut where a word ends before white space is
exact, since no piece of either encoding reaches over it; a text without such a place within a
slice's last kilobyte is cut all the same, which may cost a token or two.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import tiktoken

from . import encodings

INLINE_BYTES = 16 * 1024
"""Texts that together have at most so many bytes of UTF-8 are counted at once, which takes about
half a millisecond."""

SLICE_CHARS = 16 * 1024
"""The most characters given to the tokenizer at once.

Its regular expressions overflow their stack on a run of a million spaces (65,536 are fine), and a
single piece of n letters takes n log n. So bounded, the worst slices found take a few milliseconds.
"""

_SHORT_CHARS = 32
"""A text of no more, as the name of a tool, is said over and over, and its count is kept: the
tokenizer gives up the interpreter for every text, and beside busy threads waits for it again."""
_SHORT_KEPT = 4_096

_SEARCH_CHARS = 1024
_WORD_END = re.compile(r"[^\W_](?=[ \t\r\n])")
# A thread gives way after so many characters, so that one long text does not keep others waiting
# and a cancelled call stops soon: some 10 ms of ordinary text.
_STRETCH_CHARS = 256 * 1024


class TokenCounter:
    """Counts text in one encoding. Safe to share between threads and event loops; no input makes a
    count fail.

    The encoding is loaded at the first use, or before it by `warm`. Raises
    encodings.UnknownEncoding.
    """

    def __init__(self, encoding: str = encodings.DEFAULT_ENCODING) -> None:
        self.encoding = encodings.require_known(encoding)
        self.method = f"tiktoken:{self.encoding}"
        """How counts are made, as estimates name it."""
        self._loaded: tiktoken.Encoding | None = None
        self._count_short = lru_cache(_SHORT_KEPT)(self._count_slice)
        # Threads of our own: counting neither waits for other rooms' work nor keeps it waiting.
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="tokens")

    async def warm(self) -> None:
        """Loads the encoding in a thread, so that no later count waits for it. Raises
        encodings.CorruptRanks."""
        await asyncio.get_running_loop().run_in_executor(self._threads, self._tokenizer)

    def close(self) -> None:
        """Ends the threads; what they are counting ends with its stretch."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def count_text(self, text: str) -> int:
        """The tokens of `text`, counted here and now: for texts that are known to be small, and for
        threads."""
        if len(text) <= SLICE_CHARS:
            return self._count_slice(text)
        total = start = 0
        while start < len(text):
            end = slice_end(text, start)
            total += self._count_slice(text[start:end])
            start = end
        return total

    def count_small(self, texts: Sequence[str]) -> int | None:
        """The tokens of all texts together, or None where they are too long to be counted on the
        event loop."""
        # No character has more than four bytes.
        if 4 * sum(map(len, texts)) > INLINE_BYTES and not _small_together(texts):
            return None
        encode = (self._loaded or self._tokenizer()).encode_ordinary
        try:
            total = 0
            for text in texts:  # none is longer than a slice
                short = len(text) <= _SHORT_CHARS
                total += self._count_short(text) if short else len(encode(text))
            return total
        except BaseException:
            return sum(map(self.count_text, texts))  # which knows a panic, or fails in the same way

    async def count_text_async(self, text: str) -> int:
        """The tokens of `text`, without holding the event loop."""
        return (await self.count_many([text]))[0]

    async def count_many(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text, in order, without holding the event loop: inline when small,
        else in threads."""
        if _small_together(texts):
            return [self.count_text(text) for text in texts]
        loop = asyncio.get_running_loop()
        counts = [0] * len(texts)
        position = (0, 0)
        while position[0] < len(texts):
            position = await loop.run_in_executor(
                self._threads, self._count_stretch, texts, counts, *position
            )
        return counts

    def _count_stretch(
        self, texts: Sequence[str], counts: list[int], index: int, start: int
    ) -> tuple[int, int]:
        """Counts about _STRETCH_CHARS characters from `start` of text `index` on into `counts`;
        answers where it is."""
        left = _STRETCH_CHARS
        while index < len(texts) and left > 0:
            text = texts[index]
            end = slice_end(text, start)
            counts[index] += self._count_slice(text[start:end])
            left -= end - start + 1  # one more, so that many empty texts come to an end as well
            index, start = (index, end) if end < len(text) else (index + 1, 0)
        return index, start

    def _count_slice(self, piece: str) -> int:
        """The tokens of a text that is short enough to be given to the tokenizer whole."""
        try:
            return len((self._loaded or self._tokenizer()).encode_ordinary(piece))
        except BaseException as error:
            # What panics in Rust arrives as a BaseException of a type that cannot be imported. No
            # slice is known to do it; should one, the number of its bytes is a bound that no count
            # exceeds.
            if type(error).__name__ != "PanicException":
                raise
            return _utf8_length(piece)

    def _tokenizer(self) -> tiktoken.Encoding:
        if self._loaded is None:
            self._loaded = encodings.load(self.encoding)
        return self._loaded


def slice_end(text: str, start: int) -> int:
    """Where the slice of `text` that begins at `start` ends: after at most SLICE_CHARS characters,
    at a word's end."""
    limit = start + SLICE_CHARS
    if limit >= len(text):
        return len(text)
    end = limit
    for match in _WORD_END.finditer(text, limit - _SEARCH_CHARS, limit):
        end = match.end()
    return end


def _small_together(texts: Sequence[str]) -> bool:
    left = INLINE_BYTES
    for text in texts:
        if len(text) > left:
            return False
        left -= len(text) if text.isascii() else _utf8_length(text)
    return left >= 0


def _utf8_length(text: str) -> int:
    """The bytes of `text` in UTF-8, a lone surrogate taken for the three bytes it would have."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
