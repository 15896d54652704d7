"""The facts of one sentence after the other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from .decisions import decisions
from .fact import FoundFact
from .people import entities, names
from .preferences import preferences
from .prose import Sentence, sentences
from .values import addresses, dates, emails, identifiers


def stated_in(text: str, said_on: date | None, *, user: bool) -> Iterator[FoundFact]:
    """The facts that the sentences of a text state, in order. What a user alone can know is taken
    from users alone."""
    for one in sentences(text):
        if one.states:
            yield from _facts_of(one, said_on, user=user)


def _facts_of(one: Sentence, said_on: date | None, *, user: bool) -> Iterator[FoundFact]:
    yield from emails(one)
    if user:
        yield from names(one)
        yield from preferences(one)
    yield from decisions(one, user=user)
    if user:
        yield from dates(one, said_on)
        yield from addresses(one)
        yield from identifiers(one)
        yield from entities(one)
