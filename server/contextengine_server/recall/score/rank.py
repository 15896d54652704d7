"""How well texts match, by BM25 over what a session itself holds: other sessions' words change
nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import log
from typing import NamedTuple

import msgspec

from contextengine_server.store.search import MAX_LANES, Lane, Match

from ..terms import Term

_K1, _B = 0.9, 0.4
"""How soon repetition stops to count, and how much length counts against a text: values of BM25 for
passages of very different length, as Anserini has them (github.com/castorini/anserini). With the
usual 1.2 and 0.75 greetings came before what was told at length."""

_SPOKEN = 0.3
"""What it adds to a score, of that score, that the one who speaks is named in the query: somebody
else's text has a name mostly because it is addressed to its bearer."""
_SPEAKER = 64
"""Characters within which a text says who speaks."""

_SUBSTRING = 0.5
"""What a term counts that stands within another word, beside one that stands by itself."""

_SHORT = 3

_UNIT = 1_000
"""Weights are whole numbers, so that their sum does not depend on the order of adding."""


class Sought(msgspec.Struct, frozen=True):
    """A lane and the term that it looks for."""

    term: Term
    lane: Lane
    worth: float


def sought(
    terms: Sequence[Term], by_word: Sequence[int], within: Sequence[int], documents: int
) -> list[Sought]:
    """The lanes worth looking into, the rarest first: words where any stand, parts of words where
    few do.

    `by_word` and `within` say how many documents each term is in, as a word and as part of one; 0
    where that is not looked for.
    """
    found = []
    for term, words, parts in zip(terms, by_word, within, strict=True):
        for count, substring, factor in ((words, False, 1.0), (parts, True, _SUBSTRING)):
            if count:
                worth = factor * _rarity(count, documents)
                lane = Lane(term.text, substring, max(1, round(worth * _UNIT)))
                found.append(Sought(term, lane, worth))
    found.sort(key=_by_worth)
    return found[:MAX_LANES]


def ranked(matches: Sequence[Match], lanes: Sequence[Sought]) -> list[tuple[float, Match]]:
    """(score, match), the best first and of equals the newest. A score is the share of the best
    that could be, 0 to 1. What only resembles a term is left out."""
    if not matches:
        return []
    average = sum([len(match.text) for match in matches]) / len(matches) or 1
    best: dict[str, float] = {}
    for one in lanes:
        best[one.term.text] = max(best.get(one.term.text, 0.0), one.worth * (_K1 + 1))
    whole = sum(best.values())
    looks = [_look(bit, one) for bit, one in enumerate(lanes)]
    of_bits: dict[int, list[list[_Look]]] = {}  # few: most texts match the same lanes as others do
    speakers = {one.term.text.lower() for one in lanes}
    least, more = _K1 * (1 - _B), _K1 * _B / average
    scored = []
    for match in matches:
        folded, bits = match.text.lower(), match.lanes
        some = of_bits.get(bits)
        if some is None:
            some = of_bits[bits] = _looks_at(looks, bits)
        score = _score(folded, some, least + more * len(match.text))
        colon = folded.find(": ", 0, _SPEAKER)
        if colon >= 0 and not speakers.isdisjoint(folded[:colon].split()):
            score *= 1 + _SPOKEN
        if score > 0:
            share = score / whole
            scored.append((share if share < 1.0 else 1.0, match))
    scored.sort(key=_by_score)
    return scored


class _Look(NamedTuple):
    """A lane, as texts are looked through for it."""

    bit: int
    term: str
    folded: str
    """What is counted, in lower case."""
    whole: re.Pattern[str] | None
    """The same as a word by itself, where it is short: such ones are parts of many others."""
    least: int
    """What it counts at least: that a word is there the index knows better, which knows its forms;
    a part of words it only takes to be there."""
    most: float
    """What it would count if it stood there without end."""


def _look(bit: int, one: Sought) -> _Look:
    if one.lane.substring:
        return _Look(1 << bit, one.term.text, one.term.text.lower(), None, 0, one.worth * (_K1 + 1))
    root = one.term.root
    short = len(root) <= _SHORT and root.isascii()
    whole = re.compile(rf"\b{re.escape(root)}\b") if short else None
    return _Look(1 << bit, one.term.text, root, whole, 1, one.worth * (_K1 + 1))


def _looks_at(looks: Sequence[_Look], bits: int) -> list[list[_Look]]:
    """Those of some lanes, those of each term together."""
    terms: dict[str, list[_Look]] = {}
    for look in looks:
        if look.bit & bits:
            terms.setdefault(look.term, []).append(look)
    return list(terms.values())


def _score(folded: str, terms: Sequence[Sequence[_Look]], damped: float) -> float:
    """`damped`: what the length of the text takes from its repetitions."""
    score = 0.0
    for looks in terms:
        best = 0.0
        for _, _, sought, whole, least, most in looks:
            times = folded.count(sought) if whole is None else len(whole.findall(folded))
            if times < least:
                times = least
            value = most * times / (times + damped)
            if value > best:
                best = value
        score += best
    return score


def _rarity(count: int, documents: int) -> float:
    return log(1 + (max(documents, count) - count + 0.5) / (count + 0.5))


def _by_worth(one: Sought) -> float:
    return -one.worth


def _by_score(scored: tuple[float, Match]) -> tuple[float, int]:
    return -scored[0], -scored[1].place
