"""What is shown of a text that was found: the words around it, without secrets, as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from threading import Lock

from contextengine_server.context.summary_text import fenced
from contextengine_server.store.rows import MessageRow
from contextengine_server.wire.damage import readable

from .texts import searched_text

SNIPPET_CHARS = 480
TURN_CHARS = 240
"""How much of a neighbouring turn is shown beside a hit."""
_SHORT, _REMEMBERED = 2_048, 4_096
"""Bytes of a message whose beginning is remembered, and how many are."""
_EDGE = 24
"""How far an edge moves to the end of a word."""

Redact = Callable[[Sequence[str]], Sequence[str]]
"""Takes the secrets out of texts, each by itself."""


def around(text: str, at: int, length: int, most: int = SNIPPET_CHARS) -> str:
    """At most `most` characters of `text` around a place in it, with marks where more is left
    out."""
    if len(text) <= most:
        return text.strip()
    start = max(0, min(at - (most - min(length, most)) // 2, len(text) - most))
    end = start + most
    if start > 0:
        space = re.search(r"\s", text[start : start + _EDGE])
        start += space.end() if space is not None else 0
    if end < len(text):
        spaces = list(re.finditer(r"\s", text[end - _EDGE : end]))
        end = end - _EDGE + spaces[-1].start() if spaces else end
    return f"{'… ' if start else ''}{text[start:end].strip()}{' …' if end < len(text) else ''}"


def densest(text: str, worth: Sequence[tuple[str, float]]) -> tuple[int, int]:
    """Where in `text` the most of what is sought (in lower case, with its worth) stands close
    together: (start, length)."""
    folded = text.lower()
    places: list[tuple[int, str, float]] = []
    for word, value in worth:
        at = folded.find(word)
        while at >= 0 and len(places) < 10_000:
            places.append((at, word, value))
            at = folded.find(word, at + max(1, len(word)))
    places.sort()
    best, where = 0.0, (0, 0)
    first = 0
    inside: dict[str, int] = {}
    total = 0.0
    for at, word, value in places:
        inside[word] = inside.get(word, 0) + 1
        total += value if inside[word] == 1 else 0.0
        while (
            at + len(word) - places[first][0] > SNIPPET_CHARS - 2 * _EDGE and places[first][0] < at
        ):
            _, gone, lost = places[first]
            inside[gone] -= 1
            total -= lost if not inside[gone] else 0.0
            first += 1
        if total > best + 1e-9:
            best, where = total, (places[first][0], at + len(word) - places[first][0])
    return where


def shown(
    texts: Sequence[tuple[str, tuple[bool, bool]]],
    redact: Redact,
    find: Callable[[str], tuple[int, int]],
) -> list[str]:
    """A snippet of each text around what `find` finds in it. Beside a text: whether its beginning
    and its end may be in a word."""
    clean = redact([_whole_words(text, *cut) for text, cut in texts])
    return [fenced(around(text, *find(text))) for text in clean]


class TurnBeginnings:
    """How messages begin, redacted and fenced: at most TURN_CHARS characters of each.

    Who searches a session searches it again, and the same turns stand beside what is found. So
    those of short messages are remembered, by what the store read of the message: a row that was
    altered since is another one, and of one that is not what its hash names nothing is.
    """

    def __init__(self, redact: Redact) -> None:
        self._redact = redact
        self._known: dict[tuple[bytes, bytes], str] = {}
        """By content hash and body; what was made first stands first."""
        self._lock = Lock()

    def of(self, rows: Sequence[MessageRow]) -> list[str]:
        """The beginning of each row's message."""
        keys = [(row.content_hash, row.body) for row in rows]
        with self._lock:
            known = {key: self._known[key] for key in keys if key in self._known}
        new = {key: row for key, row in zip(keys, rows, strict=True) if key not in known}
        if new:
            made = dict(zip(new, self._made(list(new.values())), strict=True))
            known |= made
            kept = [key for key, row in new.items() if len(row.body) <= _SHORT and readable(row)]
            with self._lock:
                self._known |= {key: made[key] for key in kept}
                while len(self._known) > _REMEMBERED:
                    del self._known[next(iter(self._known))]
        return [known[key] for key in keys]

    def clear(self) -> None:
        """Forgets all."""
        with self._lock:
            self._known.clear()

    def _made(self, rows: Sequence[MessageRow]) -> list[str]:
        # More than is shown is redacted: a secret that the edge of the snippet would cut is
        # recognised only as a whole.
        texts = [searched_text(row) for row in rows]
        most = 4 * TURN_CHARS
        clean = self._redact([_whole_words(text[:most], False, len(text) > most) for text in texts])
        return [fenced(around(text, 0, 0, TURN_CHARS)) for text in clean]


def _whole_words(text: str, begins: bool, ends: bool) -> str:
    """The text without the words that are cut, each of which may be the half of a secret that
    nothing would know as one."""
    first, last = re.search(r"\s", text), text.rfind(" ")
    start = first.end() if begins and first is not None else 0
    end = last if ends and last > start else len(text)
    return text[start:end]
