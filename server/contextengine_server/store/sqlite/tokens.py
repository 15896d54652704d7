"""How texts and queries are cut for FTS5, so that its own tokenizers find what they would miss.

Identifiers need no help: dots, slashes and underscores part words, and a query in quotes is a
phrase, so `src/app.py` is found as `src app py` and its parts are found too. Chinese, Japanese and
Korean do: FTS5 takes a whole run of their characters for one word. Here a run becomes its pairs and
its last character, `天气好` is indexed as `天气 气好 好`, and any part of it is found as a phrase
of
pairs.
"""

from __future__ import annotations

import re
from itertools import pairwise

_RUN = re.compile(
    "[\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003134f]+"
)
_GRAMS = 24
"""Trigrams of a query that are looked up: what holds these holds the rest, nearly always, and the
caller looks again."""


def spread(text: str) -> str:
    """The text as the index of words takes it."""
    return text if text.isascii() else _RUN.sub(_pairs, text)


def phrase(text: str) -> str:
    """The FTS5 expression for the words of a text in this order. No text makes it fail."""
    end = _RUN.search(text.rstrip()[-1:])
    plain = spread(text).rstrip()
    prefix = ""
    if end is not None:
        run = _RUN.findall(text)[-1]
        # The last character alone stands only where a run ends; before that it begins a pair.
        if len(run) == 1:
            prefix = " *"
        else:
            plain = plain[:-1]
    return f'"{_quotable(plain)}"{prefix}'


def grams(text: str) -> str:
    """The FTS5 expression for the trigrams of a text of at least three characters."""
    found = dict.fromkeys(text[at : at + 3] for at in range(len(text) - 2))
    return " AND ".join(f'"{_quoted(gram)}"' for gram in list(found)[:_GRAMS])


def _pairs(run: re.Match[str]) -> str:
    text = run[0]
    return f" {' '.join(map(''.join, pairwise(text)))} {text[-1]} "


def _quotable(text: str) -> str:
    return text.replace('"', " ").replace("\0", " ")


def _quoted(text: str) -> str:
    return text.replace('"', '""').replace("\0", " ")
