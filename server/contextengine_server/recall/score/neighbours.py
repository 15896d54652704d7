"""What neighbouring turns lend a message that was found, and what they show beside it.

Somebody asks and somebody answers: the answer often holds few of the words that the question does.
So a message is ranked by what stands beside it as well, and a query in words of its own also brings
the turn before or behind a match that holds none of them. Where a match only asks for what is
sought (`questions.py`), the turn behind it is what answers, and goes on with what was told before.
The weights are fixed and modest: ones fitted to one kind of conversation harm another.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
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
Own = Mapping[int, tuple[float, Match]]
"""By place, the matches and their own scores."""


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
    own = {match.place: (score, match) for score, match in scored}
    places = sorted(own)
    found = []
    for at, place in enumerate(places):
        score, match = own[place]
        if place not in seen:
            near = sum(
                own[other][0]
                for other in (*places[max(0, at - NEAR) : at], *places[at + 1 : at + 1 + NEAR])
                if 2 < abs(other - place) <= NEAR
            )
            score *= 1 - (1 - ASKING) * asked.get(place, 0.0)
            score += _beside(own, place, asked) + NEARBY * near
            found.append(Ranked(score, place, match))
    if question:
        beside = {place + step for place in places for step in (-1, 1)} - own.keys()
        found += [
            Ranked(_beside(own, place, asked), place, None)
            for place in beside
            if place not in seen and any(span.first <= place <= span.last for span in spans)
        ]
    found.sort(key=_best_first)
    return found


def _beside(own: Own, place: int, asked: Mapping[int, float]) -> float:
    """What the two messages on either side lend one."""
    answers = asked.get(place - 1, 0.0)
    before = BESIDE + (ANSWER - BESIDE) * answers
    gone_on = NEXT + (GOES_ON - NEXT) * answers
    lenders = ((-2, gone_on), (-1, before), (1, BESIDE), (2, NEXT))
    return sum(own[place + step][0] * share for step, share in lenders if place + step in own)


def _best_first(one: Ranked) -> tuple[float, int]:
    return -one.score, -one.place
