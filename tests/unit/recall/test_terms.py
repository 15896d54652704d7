"""What a query is cut into."""

from __future__ import annotations

import pytest

from contextengine_server.recall.score.neighbours import asks
from contextengine_server.recall.terms import terms_of


def texts(query: str) -> list[str]:
    return [term.text for term in terms_of(query)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("How long does John usually hold the pose?", ["John", "usually", "hold", "pose"]),
        ("how much is the Fish", ["Fish"]),
        ("is the pose held how long", ["pose", "held"]),
        ("a long pose", ["long", "pose"]),
        ("how long", ["how", "long"]),
        ("What's the IT department's address?", ["IT", "department's", "department", "address"]),
        ("who is it", ["who", "is", "it"]),
        ("to be or not to be", ["to", "be", "or", "not"]),
        ('the "state of the art" of it', ["state of the art"]),
        ("the src/app.py", ["src/app.py", "src", "app", "py"]),
        ("when did we don’t", ["when", "did", "we", "don’t", "don"]),
        ("", []),
    ],
)
def test_function_words_are_left_out_unless_there_is_nothing_else(
    query: str, expected: list[str]
) -> None:
    assert texts(query) == expected


@pytest.mark.parametrize(
    ("query", "question"),
    [
        ("How long does John hold the pose?", True),
        ("hold the pose", False),
        ("src/tui/theme/dark/blue.ts", False),
        ('"one exact long phrase"', False),
        ('hold pose yoga "thirty seconds"', False),
        ("用户喜欢什么颜色", False),
    ],
)
def test_a_question_has_three_words_of_content_and_no_phrase(query: str, question: bool) -> None:
    assert asks(terms_of(query)) is question
