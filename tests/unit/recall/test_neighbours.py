"""What neighbours lend: half their own score to either side, less to the next but one and over a
stretch, and to a question the turns that hold none of its words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.context.scope import Scope
from contextengine_server.recall.score.neighbours import BESIDE, NEAR, NEARBY, NEXT, Ranked, lent
from contextengine_server.store.search import DocumentKind, Match, SearchSpan

SPAN = SearchSpan(Scope("t", "a", "s"), DocumentKind.MESSAGE, 3, 60, 1)


def scored(scores: dict[int, float]) -> list[tuple[float, Match]]:
    return [(score, Match(SPAN, place, 0, "text")) for place, score in scores.items()]


def ranked(
    scores: dict[int, float], *, question: bool = False, seen: frozenset[int] = frozenset()
) -> list[Ranked]:
    return lent(scored(scores), [SPAN], seen, question)


def test_a_match_beside_matches_comes_before_one_that_stands_alone() -> None:
    found = ranked({10: 0.5, 30: 0.4, 31: 0.4})
    assert [one.place for one in found] == [31, 30, 10]
    assert [one.score for one in found] == pytest.approx([0.6, 0.6, 0.5])


def test_what_the_same_one_said_next_lends_less_than_what_stands_beside() -> None:
    found = ranked({10: 0.5, 12: 0.4, 30: 0.5, 31: 0.4, 50: 0.5})
    assert [one.place for one in found] == [30, 31, 10, 50, 12]
    scores = {one.place: one.score for one in found}
    assert scores[10] == pytest.approx(0.5 + NEXT * 0.4)
    assert 0 < NEARBY < NEXT < BESIDE


def test_a_stretch_of_matches_counts_a_little() -> None:
    found = ranked({10: 0.5, 10 + NEAR: 0.2, 30: 0.5})
    assert [one.place for one in found][:2] == [10, 30]
    assert found[0].score == pytest.approx(0.5 + NEARBY * 0.2)


def test_a_question_finds_what_stands_beside_a_match_within_what_is_searched() -> None:
    found = ranked({3: 1.0, 60: 0.9}, question=True)
    assert [(one.place, one.match is None) for one in found] == [
        (3, False), (60, False), (4, True), (59, True)
    ]  # fmt: skip
    assert found[2].score == pytest.approx(BESIDE)
    assert [one.place for one in ranked({3: 1.0, 60: 0.9})] == [3, 60]


@given(
    st.dictionaries(st.integers(3, 60), st.floats(0.01, 1), min_size=1),
    st.booleans(),
    st.frozensets(st.integers(3, 60)),
)
def test_each_once_none_seen_and_every_match_there(
    scores: dict[int, float], question: bool, seen: frozenset[int]
) -> None:
    found = ranked(scores, question=question, seen=seen)
    places = [one.place for one in found]
    assert len(places) == len(set(places))
    assert not seen & set(places)
    assert set(scores) - seen == {one.place for one in found if one.match is not None}
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert all(one.score >= scores[one.place] for one in found if one.match is not None)
    assert all({one.place - 1, one.place + 1} & set(scores) for one in found if one.match is None)
