"""What neighbouring turns lend a message that was found, and what they show beside it.

Somebody asks and somebody answers: the answer often holds few of the words that the question does.
So a message is ranked by what stands beside it as well, and a query in words of its own also brings
the turn before or behind a match that holds none of them. Where a match only asks for what is
sought (`questions.py`), the turn behind it is what answers, and goes on with what was told before.
The weights are fixed and modest: ones fitted to one kind of conversation harm another.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import repeat
from operator import attrgetter
from types import MappingProxyType

import msgspec

from contextengine_server.store.search import Match, SearchSpan

from ..terms import Term

BESIDE = 0.5
"""What the message before lends, and the one behind, of its own score."""
NEXT = 0.15
"""What the message before that lends, and the one behind that: in a talk of two it is the same
one's, who goes on with what was said."""
ANSWER, GOES_ON, ASKING = 0.8, 0.5, 0.5
"""Where a message only asks for what is sought: what it lends the one behind it, in place of
BESIDE; what the one before it lends that one, in place of NEXT; and what it counts itself."""
NEAR, NEARBY = 8, 0.04
"""How far the rest of a stretch of conversation reaches, and what each match in it lends."""
_LENDS = (0.0, BESIDE, NEXT, *(NEARBY for _ in range(3, NEAR + 1)))
_ANSWERS = (0.0, ANSWER, GOES_ON)
"""By how far they stand from each other, what a message lends another; and one behind it, where
what stands just before that only asks."""
QUESTION_WORDS = 3
"""A query of so many words of content, none in quotes, is a question: what answers it may hold none
of them. A name, an identifier or a phrase finds only where it stands."""


NOTHING: Mapping[int, float] = MappingProxyType({})


class Ranked(msgspec.Struct, frozen=True, gc=False):
    """A message by its place in the session, and how well it answers."""

    score: float
    place: int
    match: Match | None
    """The passage that matches; None: only a neighbour does."""


def asks(terms: Sequence[Term]) -> bool:
    """True where a query is a question."""
    words = [term for term in terms if not term.part]
    return len(words) >= QUESTION_WORDS and not any(term.quoted for term in words)


def lent(
    scored: Sequence[tuple[float, Match]],
    spans: Sequence[SearchSpan],
    seen: Container[int],
    question: bool,
    asked: Mapping[int, float] = NOTHING,
) -> list[Ranked]:
    """The matches with what their neighbours lend, the best first and of equals the newest. For a
    `question` also the neighbours themselves. What was `seen` is left out. `asked`: by place, the
    share of what is sought in a match that it only asks for."""
    own = {match.place: score for score, match in scored}
    among = _among(own, asked)
    found: list[Ranked] = []
    for score, match in scored:
        place = match.place
        if place not in seen:
            if asked:
                score *= 1 - (1 - ASKING) * asked.get(place, 0.0)
            found.append(Ranked(score + among[place], place, match))
    if question:
        others = {place - 1 for place in own} | {place + 1 for place in own}
        others -= own.keys()
        for span in spans:
            first, last = span.first, span.last
            some = [place for place in others if first <= place <= last and place not in seen]
            found += map(Ranked, _beside(some, own, asked), some, repeat(None))
    found.sort(key=_BEST, reverse=True)
    return found


def _among(own: Mapping[int, float], asked: Mapping[int, float]) -> dict[int, float]:
    """By place, what the other matches lend each: those beside it, and those in the rest of its
    stretch."""
    places = sorted(own)
    scores = [own[place] for place in places]
    count = len(places)
    lent = [0.0] * count
    for at, place in enumerate(places):
        score, end = scores[at], place + NEAR
        behind = at + 1
        while behind < count and places[behind] <= end:
            step = places[behind] - place
            share = _LENDS[step]
            lent[at] += share * scores[behind]
            if asked and step <= 2:
                share += (_ANSWERS[step] - share) * asked.get(place + step - 1, 0.0)
            lent[behind] += share * score
            behind += 1
    return dict(zip(places, lent, strict=True))


def _beside(
    places: Iterable[int], own: Mapping[int, float], asked: Mapping[int, float]
) -> list[float]:
    """What the two messages on either side lend each of these places, which match nothing."""
    get, lent = own.get, []
    for place in places:
        answers = asked.get(place - 1, 0.0)
        before = BESIDE + (ANSWER - BESIDE) * answers
        gone_on = NEXT + (GOES_ON - NEXT) * answers
        lent.append(
            get(place - 2, 0.0) * gone_on
            + get(place - 1, 0.0) * before
            + get(place + 1, 0.0) * BESIDE
            + get(place + 2, 0.0) * NEXT
        )
    return lent


_BEST = attrgetter("score", "place")
