"""Notes: what a sentence may lose, and what it must not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.summarize.extractive.notes import clauses, english, note


@pytest.mark.parametrize(
    ("said", "noted"),
    [
        ("We decided to use PostgreSQL for the ledger.", "decided to use PostgreSQL for ledger."),
        (
            "I'm 35 years old and I have lived in Seattle since 2014.",
            "35 years old lived Seattle since 2014.",
        ),
        ("We must never touch the billing tables.", "must never touch billing tables."),
        ("You can't delete it before the 3rd of May.", "You can't delete before 3rd May."),
        (
            "The deploy isn't done until the tests are green.",
            "deploy isn't done until tests green.",
        ),
        ("It is called “The Art of the Deal” here.", "called “The Art of the Deal” here."),
        ("The flag is `the --a of it` in the script.", "flag `the --a of it` script."),
        (
            "She studied at the University of Pennsylvania.",
            "She studied University of Pennsylvania.",
        ),
        ("The US team met in May, and I am in IT.", "US team met May, IT."),
        ("I used to walk, and I need to talk to Ann.", "used walk, need talk to Ann."),
        ("A neighbor with a guitar saved me.", "A neighbor with guitar saved me."),
        ("She might move, and you should know.", "She might move, you should know."),
        ("I hope so.", "I hope so."),
        ("It is.", "It is."),
    ],
)
def test_only_words_that_carry_nothing_are_left_out(said: str, noted: str) -> None:
    assert note(said, terse=True) == noted


@pytest.mark.parametrize(
    ("said", "noted"),
    [
        (
            "The theme is undefined, so it is really passed on.",
            "theme is undefined, so it is passed on.",
        ),
        ("I'm 35 and I have lived in Seattle.", "I'm 35 and I have lived in Seattle."),
    ],
)
def test_where_there_is_room_a_sentence_loses_its_fillers_alone(said: str, noted: str) -> None:
    assert note(said) == noted


@pytest.mark.parametrize(
    "word",
    [
        "not",
        "never",
        "no",
        "without",
        "must",
        "can't",
        "if",
        "unless",
        "or",
        "before",
        "to",
        "from",
    ],
)
def test_words_that_turn_a_meaning_stay(word: str) -> None:
    assert f" {word} " in note(f"We said that the server {word} the client.")


@pytest.mark.parametrize(
    ("text", "is_english"),
    [
        ("I have been there and it was good.", True),
        ("Das war so nicht geplant, wir sollten am Montag noch einmal darüber reden.", False),
        ("Me gustaría cambiar la reserva a otro día de la semana.", False),
        ("Je voudrais savoir si le serveur a été redémarré.", False),
        ("我们决定采用方案二，预算是三万元。", False),
    ],
)
def test_other_languages_are_left_alone(text: str, is_english: bool) -> None:
    assert english(text) is is_english


def test_a_sentence_of_usual_length_stays_whole() -> None:
    for said in (
        "My breakfast is Greek yogurt with nuts, or eggs with avocado — nothing fancy.",
        "I chose them for helping single parents, and you join when 10 have signed.",
    ):
        assert clauses(said) == [said]


def test_clauses_of_a_long_sentence_say_something_each() -> None:
    assert clauses(
        "My go-to breakfast at home on weekdays is Greek yogurt with nuts and some honey, or"
        " scrambled eggs with avocado — nothing fancy, as you can tell, but it keeps me going"
        " until noon."
    ) == [
        "My go-to breakfast at home on weekdays is Greek yogurt with nuts and some honey,",
        "or scrambled eggs with avocado nothing fancy,",
        "as you can tell,",
        "but it keeps me going until noon.",
    ]


def test_a_condition_is_not_parted_from_what_it_is_for() -> None:
    for said in (
        "If the tests fail, ask me, and do not deploy.",
        "Deploy it, unless somebody objects.",
    ):
        assert clauses(said) == [said]


def test_a_range_of_numbers_stays_a_range() -> None:
    assert clauses(
        "The system that we bought was down from 10 AM - 12 PM on a day in March, for the first"
        " time - nobody in the office noticed."
    ) == [
        "The system that we bought was down from 10 AM - 12 PM on a day in March,",
        "for the first time",
        "nobody in the office noticed.",
    ]


@given(st.text(max_size=300))
def test_nothing_is_made_up(text: str) -> None:
    """A note is made of words of the text, in their order; clauses hold every word of a
    sentence."""
    for terse in (False, True):
        rest = iter(text.split())
        assert all(word in rest for word in note(text, terse=terse).split())
        assert not text.strip() or note(text, terse=terse)
