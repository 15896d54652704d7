"""How texts and queries are cut into words, so that every store finds the same.

A word is a run of letters and digits, in lower case, without accents, reduced to its stem:
`Résumés` is found as `resume`. Identifiers need no help: dots, slashes and underscores part words,
and a query is looked for word after word, so `src/app.py` is found as `src app py` and its parts
are found too. Chinese, Japanese and Korean do: a whole run of their characters would be one word.
Here a run becomes its pairs and its last character, `天气好` is cut into `天气 气好 好`, and any
part of it is found as pairs that follow each other.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

_RUN = re.compile(
    "[\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003134f]+"
)
_WORD = re.compile(r"[^\W_]+")
_SHORTEST = 3
"""Characters of the shortest word that has a stem other than itself."""


def spread(text: str) -> str:
    """The text with its runs of Chinese, Japanese and Korean as pairs and a last character."""
    return text if text.isascii() else _RUN.sub(_pairs, text)


def sought(text: str) -> tuple[str, bool]:
    """What to look for where a text is sought: its words in this order, spread; and whether the
    last of them need only be how a word begins."""
    end = _RUN.search(text.rstrip()[-1:])
    plain = spread(text).rstrip()
    if end is None:
        return plain, False
    # The last character alone stands only where a run ends; before that it begins a pair.
    if len(_RUN.findall(text)[-1]) == 1:
        return plain, True
    return plain[:-1], False


def stems(text: str) -> list[str]:
    """The words of a text as they are compared."""
    return [_stem(word) for word in _WORD.findall(_folded(text))]


def _pairs(run: re.Match[str]) -> str:
    text = run[0]
    return f" {' '.join(map(''.join, pairwise(text)))} {text[-1]} "


def _folded(text: str) -> str:
    """In lower case, without accents."""
    text = text.lower()
    return text if text.isascii() else "".join(map(_plain, text))


@lru_cache(4096)
def _plain(character: str) -> str:
    """A character without its accents; nothing where it is an accent itself."""
    base = unicodedata.normalize("NFD", character)[0]
    if unicodedata.combining(base):
        return ""
    # Elsewhere than on Latin letters a mark makes another letter: か and が, и and й.
    return base if base.isascii() else character


@lru_cache(65_536)
def _stem(word: str) -> str:
    return word if len(word) < _SHORTEST else _stemmer()(word)


@lru_cache(1)
def _stemmer() -> Callable[[str], str]:
    """Porter's, as FTS5 has it."""
    from snowballstemmer import stemmer  # late: it brings thirty languages, and SQLite its own

    stem: Callable[[str], str] = stemmer("porter").stemWord
    return stem
