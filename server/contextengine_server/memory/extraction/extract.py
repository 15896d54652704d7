"""The facts of a text, and of messages.

Rules for English and Chinese, in the form that people say such things of themselves. In doubt
nothing is found: a fact that is none misleads every later session, one that is missed can be found
in its message. So questions, suppositions, what others are said to have said, quotations, code and
output are passed over, and what a user alone can know is taken from users alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from contextengine_server.notices import parted

from .decisions import decisions
from .fact import FactKind, FoundFact
from .people import entities, names
from .preferences import preferences
from .prose import Sentence, sentences
from .values import addresses, dates, emails, identifiers

ROLES = ("user", "assistant")
"""Whose words are looked at. What tools answer, and what a system prompt says, is nobody's word."""
MAX_CHARS = 20_000
"""Of a text so many characters are looked at. Longer ones are pasted: documents, logs."""


def facts_in(
    role: str, text: str, max_chars: int = MAX_CHARS, said_on: date | None = None
) -> list[FoundFact]:
    """The facts that a message of this role says, in order, each once. `said_on`: the day of which
    it speaks as today; None: it is not known, and a day named from there is none."""
    if role not in ROLES:
        return []
    found: dict[tuple[FactKind, str], FoundFact] = {}
    for one in sentences(_beginning(words_of(role, text), max_chars)):
        if not one.states:
            continue
        for fact in _facts_of(one, said_on, user=role == "user"):
            found.setdefault((fact.kind, fact.value), fact)
    return list(found.values())


def words_of(role: str, text: str) -> str:
    """What of a message's text is its speaker's own: not what a harness writes beside a user."""
    return parted(text)[0] if role == "user" else text


def _beginning(text: str, max_chars: int) -> str:
    """Whole sentences of at most so many characters."""
    if len(text) <= max_chars:
        return text
    return text[: max(text.rfind(end, 0, max_chars) + 1 for end in ("\n", ". ", "。"))]


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
