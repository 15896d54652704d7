"""Prose as notes: sentences in clauses, without the words that a reader supplies by himself.

A summary quotes; what it saves in words it can spend on facts. Only words of English that carry
nothing by themselves are left out: never a negation, a condition, a preposition that tells a
direction or a time, a number, a name, or anything in quotes or backticks. Text in another language
is only cut into clauses. Pure.
"""

from __future__ import annotations

import re

_EMPTY = frozenset(
    """
    a an the this that these those there here it its it's that's there's i i'm i've i'd i'll im me
    my myself we we're we've we'll us our they're their them he she his her you're your is are was
    were be been being am have has had having do does did would could should may might shall of as
    so and at in on very really quite pretty just actually basically definitely especially truly
    incredibly simply certainly honestly obviously literally totally absolutely also too even still
    already which who whom than then about
    """.split()  # noqa: SIM905 (a list of ninety quoted words reads worse)
)
"""Function words and fillers."""

_ENGLISH = frozenset(
    """
    the and that with you my have has this are they i i'm i've it it's his her your our we're from
    would which
    """.split()  # noqa: SIM905
)
"""Words that hardly another language has."""
_SHARE = 0.08
"""How many of them a text holds that is taken to be English: English has about 0.2."""

_KEPT = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”|(?<!\w)['‘][^'’‘]{2,60}['’](?!\w)")
_CLAUSE = re.compile(
    r"(?<=[;:,])\s+|\s*(?:—|–)\s*|\s-\s(?!\d)|(?<=，|；|、)"
    r"|(?<=\w)\s+(?=(?:and|but|so|because|which|where|while|though|although|since|that|who|when|as)\s)",
    re.IGNORECASE,
)
_INFINITIVE = re.compile(
    r"\b(need(?:s|ed)?|want(?:s|ed)?|try|tries|tried|trying|like[sd]?|love[sd]?|hop(?:es?|ed|ing)|plan(?:s|ned|ning)?|going|able|ready"
    r"|happy|glad|easy|hard|time|ways?|how|learn(?:s|ed|ing)?|start(?:s|ed|ing)?|beg[aiu]n|continued?|prefers?|forg[eo]t"
    r"|allow(?:s|ed)?|help(?:s|ed)?|supposed|aim(?:s|ed|ing)?|willing|eager|chance|used|had|have|has)\s+to\s+(?=[a-z])"
)
"""A `to` that only leads in the verb behind it; any other may tell a direction."""
_WHOLE = re.compile(r"\b(if|unless|except|neither|either)\b|如果|除非|否则", re.IGNORECASE)
"""Half of such a sentence would say something else."""
_LEAST = 2
"""Words of a clause that say something, at least."""


def english(text: str) -> bool:
    """True where a text is English as far as its smallest words tell."""
    words = text.split()
    return sum(_plain(word) in _ENGLISH for word in words) > _SHARE * len(words)


def clauses(sentence: str) -> list[str]:
    """A sentence cut where clauses meet, each with enough words to say something."""
    if _WHOLE.search(sentence):
        return [sentence]
    found: list[str] = []
    short = False
    for clause in filter(None, map(str.strip, _CLAUSE.split(sentence))):
        few = (
            sum(_plain(word) not in _EMPTY for word in clause.split()) < _LEAST and clause.isascii()
        )
        if found and (short or few):
            found[-1] += " " + clause
        else:
            found.append(clause)
        short = few
    return found


def note(text: str) -> str:
    """An English text without the words that carry nothing."""
    said: list[str] = []
    end = 0
    for kept in _KEPT.finditer(text):
        said += [_thinned(text[end : kept.start()]), kept[0]]
        end = kept.end()
    thin = "".join([*said, _thinned(text[end:])])
    return thin.strip() or text


def _thinned(text: str) -> str:
    pieces = re.split(r"(\s+)", _INFINITIVE.sub(r"\1 ", text))
    words = pieces[::2]
    out: list[str] = []
    for at, word in enumerate(words):
        before, after = words[at - 1 : at], words[at + 1 : at + 2]
        named = bool(word.islower() and before and after and before[0][-1:].isalnum())
        named = named and before[0].istitle() and after[0].istitle()
        if _empty(word, at == 0) and not named:
            continue
        out += [word, pieces[2 * at + 1] if at < len(words) - 1 else ""]
    return "".join(out)


def _empty(word: str, first: bool) -> bool:
    """True where a word carries nothing. In the middle of a text a capital makes a name: May,
    US."""
    plain = _plain(word)
    return plain in _EMPTY and (
        plain.startswith("i'")
        or plain == "i"
        or word.islower()
        or (first and not word[:2].isupper())
    )


def _plain(word: str) -> str:
    return word.strip(".,;:!?\"'()[]“”‘’").replace("’", "'").casefold()
