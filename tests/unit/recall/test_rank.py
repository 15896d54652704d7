"""How well texts match: who speaks counts more than whom a text names, and length counts little
against one that tells something."""

from __future__ import annotations

from contextengine_server.context.scope import Scope
from contextengine_server.recall.score.rank import ranked, sought
from contextengine_server.recall.terms import terms_of
from contextengine_server.store.search import DocumentKind, Match, SearchSpan

SPAN = SearchSpan(Scope("t", "a", "s"), DocumentKind.MESSAGE, 1, 60, 1)


def best(query: str, *texts: str) -> list[int]:
    """The places of the texts, from 0, the best first."""
    terms = terms_of(query)
    lanes = sought(
        terms,
        [sum(term.root in text.lower() for text in texts) for term in terms],
        [0] * len(terms),
        40,
    )
    matches = [
        Match(
            SPAN,
            place,
            0,
            text,
            sum(1 << bit for bit, one in enumerate(lanes) if one.term.root in text.lower()),
        )
        for place, text in enumerate(texts)
    ]
    return [match.place for _, match in ranked(matches, lanes)]


def test_the_one_who_speaks_comes_before_the_one_who_is_addressed() -> None:
    said = "Tobias: The kiln is hot, I can tell you."
    asked = "Nadia: Is the kiln hot already, Tobias? "
    assert best("Tobias kiln", said, asked) == [0, 1]
    assert best("Nadia kiln", said, asked)[0] == 1


def test_a_colon_further_on_names_nobody() -> None:
    late = "It was the kiln of the fire station, on Mill Street, that burned first. Tobias: here"
    early = "Tobias: it was the kiln of the fire station, on Mill Street, that burned first. here"
    assert best("Tobias", early, late) == [0, 1]


def test_a_long_text_that_tells_more_comes_before_a_greeting() -> None:
    told = (
        "Yes, the race went well after all, though I was ill for a week before it, and I crossed"
        " the line in Porto after nearly two hours with my brother at my side, who had not trained"
        " at all and laughed the whole way, while our mother waited with the dog and the flag."
    )
    assert best("race Porto time", told, "Long time!", "Time for bed.", "What time?")[0] == 0
