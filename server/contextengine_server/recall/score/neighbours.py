"""What neighbouring turns lend a message that was found, and what they show beside it.

Somebody asks and somebody answers: the answer often holds few of the words that the question does.
So a message is ranked by what stands beside it as well, and a query in words of its own also brings
the turn before or behind a match that holds none of them. Where a match only asks for what is
sought (`questions.py`), the turn behind it is what answers, and goes on with what was told before.
The weights are fixed and modest: ones fitted to one kind of conversation harm another.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
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
QUESTION_WORDS = 3
"""A query of so many words of content, none in quotes, is a question: what answers it may hold none
of them. A name, an identifier or a phrase finds only where it stands."""


NOTHING: Mapping[int, float] = MappingProxyType({})


class Ranked(msgspec.Struct, frozen=True):
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
    near, beside = _nearby(own), _lender(own, asked)
    found: list[Ranked] = []
    for score, match in scored:
        place = match.place
        if place not in seen:
            if asked:
                score *= 1 - (1 - ASKING) * asked.get(place, 0.0)
            found.append(Ranked(score + (beside(place) + NEARBY * near[place]), place, match))
    if question:
        others = {place + step for place in own for step in (-1, 1)} - own.keys()
        ends = [(span.first, span.last) for span in spans]
        found += [
            Ranked(beside(place), place, None)
            for place in others
            if place not in seen and any(first <= place <= last for first, last in ends)
        ]
    found.sort(key=_BEST, reverse=True)
    return found


def _nearby(own: Mapping[int, float]) -> dict[int, float]:
    """By place, the scores in the rest of its stretch: of those within NEAR that do not stand
    beside it."""
    near = dict.fromkeys(own, 0.0)
    places = sorted(own)
    for at, place in enumerate(places, 1):
        end = place + NEAR
        for other in places[at : at + NEAR]:
            if other > end:
                break
            if other > place + 2:
                near[place] += own[other]
                near[other] += own[place]
    return near


def _lender(own: Mapping[int, float], asked: Mapping[int, float]) -> Callable[[int], float]:
    """Tells what the two messages on either side of a place lend it."""
    get = own.get

    def beside(place: int, before: float = BESIDE, gone_on: float = NEXT) -> float:
        lent = get(place - 2, 0.0) * gone_on + get(place - 1, 0.0) * before
        return lent + get(place + 1, 0.0) * BESIDE + get(place + 2, 0.0) * NEXT

    def answering(place: int) -> float:
        answers = asked.get(place - 1, 0.0)
        before, gone_on = (ANSWER - BESIDE) * answers, (GOES_ON - NEXT) * answers
        return beside(place, BESIDE + before, NEXT + gone_on)

    return answering if asked else beside


_BEST = attrgetter("score", "place")
