"""What neighbouring turns lend a message that was found, and what they show beside it.

Somebody asks and somebody answers: the answer often holds few of the words that the question does.
So a message is ranked by what stands beside it as well, and a query in words of its own also brings
the turn before or behind a match that holds none of them. The weights are fixed and modest: ones
fitted to one kind of conversation harm another.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import msgspec

from contextengine_server.store.search import Match, SearchSpan

from ..terms import Term

BESIDE = 0.5
"""What the message before lends, and the one behind, of its own score."""
NEXT = 0.15
"""What the message before that lends, and the one behind that: in a talk of two it is the same
one's, who goes on with what was said."""
NEAR, NEARBY = 8, 0.04
"""How far the rest of a stretch of conversation reaches, and what each match in it lends."""
QUESTION_WORDS = 3
"""A query of so many words of content, none in quotes, is a question: what answers it may hold none
of them. A name, an identifier or a phrase finds only where it stands."""


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
) -> list[Ranked]:
    """The matches with what their neighbours lend, the best first and of equals the newest. For a
    `question` also the neighbours themselves. What was `seen` is left out."""
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
            found.append(Ranked(score + _beside(own, place) + NEARBY * near, place, match))
    if question:
        beside = {place + step for place in places for step in (-1, 1)} - own.keys()
        found += [
            Ranked(_beside(own, place), place, None)
            for place in beside
            if place not in seen and any(span.first <= place <= span.last for span in spans)
        ]
    found.sort(key=_best_first)
    return found


def _beside(own: dict[int, tuple[float, Match]], place: int) -> float:
    beside = sum(own[other][0] for other in (place - 1, place + 1) if other in own)
    following = sum(own[other][0] for other in (place - 2, place + 2) if other in own)
    return BESIDE * beside + NEXT * following


def _best_first(one: Ranked) -> tuple[float, int]:
    return -one.score, -one.place
