"""A query cut into what is looked for. No query is wrong: operators and signs of any query language
are just signs."""

from __future__ import annotations

import re

import msgspec

_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”|「([^」]+)」')
_EDGES = re.compile(r"^\W+|\W+$")
_WORD = re.compile(r"[^\W_]+")
_PAIRED = re.compile(
    "[\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003134f]+"
)
"""Scripts without spaces, as the index pairs their characters."""

_ENDINGS = ("ings", "ing", "edly", "ied", "ies", "ed", "es", "s", "ly")


class Term(msgspec.Struct, frozen=True):
    """A word, an identifier or a phrase to look for."""

    text: str

    @property
    def root(self) -> str:
        """What most forms of an English word begin with; else the term itself. In lower case."""
        lower = self.text.lower()
        if lower.isascii() and lower.isalpha() and len(lower) > 4:
            for ending in _ENDINGS:
                if lower.endswith(ending) and len(lower) - len(ending) > 3:
                    return lower[: -len(ending)]
        return lower


def terms_of(query: str) -> list[Term]:
    """The terms of a query, each once: what is in quotes, and every other word, whole and in
    parts."""
    texts = [
        _EDGES.sub("", next(filter(None, match.groups()))) for match in _QUOTED.finditer(query)
    ]
    for chunk in _QUOTED.sub(" ", query).split():
        word = _EDGES.sub("", chunk)
        parts = _parts(word)
        texts += [word, *parts] if parts else []
    return [Term(text) for text in {text.lower(): text for text in texts if text}.values()]


def _parts(word: str) -> list[str]:
    """What a word is made of: the words of an identifier, the pairs of a text without spaces."""
    parts: list[str] = []
    for piece in _WORD.findall(word):
        start = 0
        for run in _PAIRED.finditer(piece):
            parts += [piece[start : run.start()]] if run.start() > start else []
            parts += [run[0][at : at + 2] for at in range(max(1, len(run[0]) - 1))]
            start = run.end()
        parts += [piece[start:]] if start < len(piece) else []
    # A single letter (the s of it's) says nothing by itself; a single character of Chinese does.
    return [part for part in parts if len(part) > 1 or not part.isascii()] or parts
