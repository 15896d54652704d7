"""Every text is kept, in its order, and a session is found by the same numbers for good."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.context.scope import Scope
from contextengine_server.store.postgres import keys, texts

TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("\0\1\x0201"))


@given(TEXTS)
def test_a_text_comes_back_as_it_was(text: str) -> None:
    stored = texts.written(text)
    assert "\0" not in stored
    assert texts.read(stored) == text


@given(TEXTS, TEXTS)
def test_texts_stay_in_their_order(one: str, other: str) -> None:
    stored = texts.written(one).encode(), texts.written(other).encode()
    assert (stored[0] < stored[1]) == (one.encode() < other.encode())


def test_a_usual_text_is_stored_as_it_is() -> None:
    assert texts.written("a é 文 \t\n") == "a é 文 \t\n"
    assert texts.all_written(["a\0", None, "\1"]) == ["a\x010", None, "\x011"]


def test_the_numbers_of_a_session_never_change() -> None:
    """They are in the rows of every database there is."""
    scope = Scope("acme", "main", "s1")
    assert keys.home(scope) == HOME
    assert keys.life(scope, "first life") == LIFE
    assert keys.life(scope, "second life") != LIFE
    # Names do not run into one another.
    assert keys.home(Scope("ac", "memain", "s1")) != HOME
    assert keys.home(Scope("acme", "mains", "1")) != HOME


HOME = -7430225295489425574
LIFE = UUID("c7b48037-6e0f-5bd0-5136-67d005fcd4d1")
