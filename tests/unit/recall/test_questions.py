"""What only a question holds is answered behind it: that turn comes first, though it holds none of
the words; who tells and then asks is found by what he tells."""

from __future__ import annotations

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.recall.score.neighbours import ANSWER, ASKING, BESIDE, GOES_ON, NEXT, lent
from contextengine_server.recall.score.questions import LONG, Questions
from contextengine_server.recall.score.rank import sought
from contextengine_server.recall.terms import terms_of
from contextengine_server.store.search import DocumentKind, Match, SearchSpan

SPAN = SearchSpan(Scope("t", "a", "s"), DocumentKind.MESSAGE, 1, 60, 1)


def asked(query: str, *texts: str) -> dict[int, float]:
    """What these texts only ask for, by their places from 1."""
    terms = terms_of(query)
    counts = [sum(term.root in text.lower() for text in texts) for term in terms]
    lanes = sought(terms, counts, [0] * len(terms), 40)
    matches = [(1.0, Match(SPAN, place, 0, text)) for place, text in enumerate(texts, 1)]
    return Questions().asked_in(matches, lanes)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("That's brave! Where will you stay?", 1.0),
        ("我们住在哪里？ will you stay？", 1.0),
        ("I can stay two weeks. How would you travel?", None),
        ("I will stay. Will you stay?", None),
        ("We stay here.", None),
        ("Would you stay " + "and stay " * (LONG // 9) + "there?", None),
    ],
)
def test_a_message_only_asks_where_no_other_sentence_holds_what_is_sought(
    text: str, share: float | None
) -> None:
    assert asked("stay", text).get(1) == share


def test_what_is_told_beside_the_question_counts_against_it_by_its_worth() -> None:
    found = asked("stay tallinn", "In Tallinn! Where will you stay?", "Stay.", "Stay!")
    assert 0 < found[1] < 0.5


def test_the_answer_comes_before_its_question_and_the_likes_of_it() -> None:
    scores = [
        (score, Match(SPAN, place, 0, "")) for place, score in {10: 0.6, 11: 0.5, 30: 0.5}.items()
    ]
    plain = {one.place: one.score for one in lent(scores, [SPAN], (), True)}
    found = lent(scores, [SPAN], (), True, {11: 1.0})
    by_place = {one.place: one.score for one in found}
    assert plain[12] == pytest.approx(BESIDE * 0.5 + NEXT * 0.6)
    assert by_place[12] == pytest.approx(ANSWER * 0.5 + GOES_ON * 0.6)
    assert by_place[11] == pytest.approx(ASKING * 0.5 + BESIDE * 0.6)
    assert [one.place for one in found][:2] == [10, 12]
    assert by_place[30] == plain[30]
