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

FUNCTION_WORDS = frozenset(
    """
    a about after again all also am an and any are as at be because been before being between both
    but by can can't could couldn't did didn't do does doesn't doing don't down during each few for
    from further had hadn't has hasn't have haven't having he he's her here hers herself him himself
    his how how's i i'd i'll i'm i've if in into is isn't it it's its itself just let let's me more
    most my myself no nor not of off on once only or other our ours ourselves out over own same
    shall she she's should shouldn't so some such than that that's the their theirs them themselves
    then there there's these they they'd they'll they're they've this those through to too under
    until up very was wasn't we we'd we'll we're we've were weren't what what's when when's where
    where's which while who who's whom whose why why's will with won't would wouldn't you you'd
    you'll you're you've your yours yourself yourselves tell please
    """.split()  # noqa: SIM905 (a list of 170 quoted words reads worse)
)
"""Words of English that stand in every text: articles, pronouns, prepositions, auxiliaries,
question words. As in the usual lists for retrieval (Snowball's, snowballstem.org/algorithms/
english/stop.txt), and two that lead in a request."""

_MEASURES = frozenset(
    "big deep far fast heavy high large long many much often old small soon tall wide".split()  # noqa: SIM905
)
"""What `how` asks for the measure of: behind it they are a part of the question, and what answers
holds the measure and not the word."""

_ENDINGS = ("ings", "ing", "edly", "ied", "ies", "ed", "es", "s", "ly")


class Term(msgspec.Struct, frozen=True):
    """A word, an identifier or a phrase to look for."""

    text: str
    quoted: bool = False
    """It stood in quotes: its words are looked for in this order."""
    part: bool = False
    """It is a part of another term: a word of an identifier, a pair of characters."""

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
    """The terms of a query, each once: what is in quotes, and every other word, whole and in parts.
    Function words, and what `how` asks the measure of, only where there is nothing else: they stand
    everywhere, and say nothing of what is looked for."""
    quoted = [
        _EDGES.sub("", next(filter(None, match.groups()))) for match in _QUOTED.finditer(query)
    ]
    known = {text.lower(): Term(text, quoted=True) for text in quoted if text}
    plain = [_EDGES.sub("", chunk) for chunk in _QUOTED.sub(" ", query).split()]
    words = [
        word
        for word, before in zip(plain, ["", *plain], strict=False)
        if not _says_nothing(word) and not (before.lower() == "how" and word.lower() in _MEASURES)
    ]
    for word in words or ([] if known else plain):
        parts = _parts(word)
        if parts:
            known.setdefault(word.lower(), Term(word))
        for part in parts:
            known.setdefault(part.lower(), Term(part, part=True))
    return list(known.values())


def _says_nothing(word: str) -> bool:
    """True for a function word; not for one in capitals, such as IT, which is a name."""
    name = len(word) > 1 and word.isupper()
    return not name and word.lower().replace("’", "'") in FUNCTION_WORDS


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
