"""Prose as notes: whole sentences, a long one in clauses, without fillers; where room is short,
without all words that a reader supplies by himself.

A summary quotes; what it saves in words it can spend on facts. Only words of English that carry
nothing by themselves are left out: never a negation, a condition, who else than the speaker is
spoken of, whether something is, may or should be, a preposition that tells a direction or a time, a
number, a name, or anything in quotes or backticks. Text in another language is only cut. Pure.
"""

from __future__ import annotations

import re

_FILLERS = frozenset(
    """
    a an the very really quite pretty just actually basically definitely especially truly incredibly
    simply certainly honestly obviously literally totally absolutely also too even still already
    """.split()  # noqa: SIM905 (a list of so many quoted words reads worse)
)
"""Without them a sentence is still one."""
_EMPTY = _FILLERS | frozenset(
    """
    this that these those there here it its it's that's there's i i'm i've i'd i'll im me my myself
    we we're we've we'll us our is are was were am be been being have has had having do does did of
    as so and at in on which who whom than then about
    """.split()  # noqa: SIM905
)
"""What a telegram leaves out as well."""

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
_LEAST = 3
"""Words of a clause that say something, at least: fewer are a fragment."""
WHOLE_CHARS = 100
"""A sentence of no more characters is never cut."""


def english(text: str) -> bool:
    """True where a text is English as far as its smallest words tell."""
    words = text.split()
    return sum(_plain(word) in _ENGLISH for word in words) > _SHARE * len(words)


def clauses(sentence: str) -> list[str]:
    """A sentence whole; one that is very long cut where clauses meet, each with enough words to say
    something by itself."""
    if len(sentence) <= WHOLE_CHARS or _WHOLE.search(sentence):
        return [sentence]
    found: list[str] = []
    short = False
    for clause in filter(None, map(str.strip, _CLAUSE.split(sentence))):
        words = sum(_plain(word) not in _EMPTY for word in clause.split())
        few = words < _LEAST and clause.isascii()
        if found and (short or few):
            found[-1] += " " + clause
            # Two that are too short may be enough together.
            short = few and short and len(found[-1].split()) < 2 * _LEAST
        else:
            found.append(clause)
            short = few
    return found


def note(text: str, *, terse: bool = False) -> str:
    """An English text without the words that carry nothing; `terse`, like a telegram, where there
    is little room for much."""
    empty = _EMPTY if terse else _FILLERS
    said: list[str] = []
    end = 0
    for kept in _KEPT.finditer(text):
        said += [_thinned(text[end : kept.start()], empty), kept[0]]
        end = kept.end()
    thin = "".join([*said, _thinned(text[end:], empty)]).strip()
    return thin if len(thin.split()) >= _LEAST else text


def _thinned(text: str, empty: frozenset[str]) -> str:
    pieces = re.split(r"(\s+)", _INFINITIVE.sub(r"\1 ", text))
    words = pieces[::2]
    out: list[str] = []
    for at, word in enumerate(words):
        before, after = words[at - 1 : at], words[at + 1 : at + 2]
        named = bool(word.islower() and before and after and before[0][-1:].isalnum())
        named = named and before[0].istitle() and after[0].istitle()
        if _empty(word, at == 0, empty) and not named:
            continue
        out += [word, pieces[2 * at + 1] if at < len(words) - 1 else ""]
    return "".join(out)


def _empty(word: str, first: bool, empty: frozenset[str]) -> bool:
    """True where a word carries nothing. In the middle of a text a capital makes a name: May, US;
    what a sentence ends with is what it says something of: "saved me."."""
    plain = _plain(word)
    return (
        plain in empty
        and word[-1:] not in ".!?"
        and (
            plain.startswith("i'")
            or plain == "i"
            or word.islower()
            or (first and not word[:2].isupper())
        )
    )


def _plain(word: str) -> str:
    return word.strip(".,;:!?\"'()[]“”‘’").replace("’", "'").casefold()
