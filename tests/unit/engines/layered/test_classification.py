"""Which layer a message belongs to: labelled messages, half of them written before the words that
tell layers apart and half after, and the facts of the reference."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.engines.contract import Said
from contextengine_server.engines.layered.classification import (
    LONG,
    layer_of,
    layer_of_step,
    states_all,
)
from contextengine_server.engines.layered.layers import Layer
from contextengine_server.engines.layered.words import LANGUAGES, Language
from contextengine_server.memory.extraction.extract import facts_in
from tests.unit.engines.layered import first_half, second_half
from tests.unit.engines.layered.first_half import Labelled

ENGLISH = first_half.ENGLISH + second_half.ENGLISH
CHINESE = first_half.CHINESE + second_half.CHINESE


def said(role: str, text: str) -> Said:
    """A message as it is labelled: `assistant call` calls a tool."""
    speaker, _, calls = role.partition(" ")
    results = int(speaker == "tool")
    return Said(speaker, text, int(bool(calls)), results, results * (not text.strip()))


@pytest.mark.parametrize(("role", "text", "layer"), [*ENGLISH, *CHINESE])
def test_labelled_messages(role: str, text: str, layer: str) -> None:
    assert layer_of(said(role, text)) is Layer[layer.upper()]


def test_what_a_harness_lays_down_beside_a_user_is_not_laid_down_by_the_user() -> None:
    rule = "Never commit to main. Always run the tests first."
    assert layer_of(said("user", rule)) is Layer.CRITICAL
    beside = f"\n<system-reminder>{rule}</system-reminder>"
    for words in ("The tests pass now.", "ok", "My sister lives in Oslo.", ""):
        assert layer_of(said("user", words + beside)) is Layer.IMPORTANT
    assert layer_of(said("user", rule + beside * 100)) is Layer.CRITICAL


@pytest.mark.parametrize("labelled", [ENGLISH, CHINESE], ids=["English", "Chinese"])
def test_every_layer_and_kind_of_message_is_labelled(labelled: tuple[Labelled, ...]) -> None:
    assert len({(role, text) for role, text, _ in labelled}) >= 60
    assert {layer for _, _, layer in labelled} == {layer.name.lower() for layer in Layer}
    assert sum("?" in text for _, text, _ in labelled) >= 4
    assert any(role == "tool" and not text.strip() for role, text, _ in labelled)


def test_a_call_and_its_result_share_a_layer() -> None:
    call, nothing = Said("assistant", "ok", calls=1), Said("tool", results=1, silent=1)
    assert layer_of(nothing) is Layer.TRANSIENT
    assert layer_of_step([call, nothing]) is Layer.IMPORTANT
    assert layer_of_step([Said("user", "hi"), Said("system", "ok")]) is Layer.CRITICAL
    assert layer_of_step([]) is Layer.TRANSIENT


def test_an_error_says_something() -> None:
    assert layer_of(Said("tool", results=1, silent=0)) is Layer.IMPORTANT


def test_what_is_long_is_important_whatever_facts_it_states() -> None:
    fact = "We decided to use PostgreSQL for the database. "
    assert layer_of(Said("assistant", fact)) is Layer.CONTEXTUAL
    assert layer_of(Said("assistant", fact * (LONG // len(fact) + 1))) is Layer.IMPORTANT
    assert layer_of(Said("assistant", "我们决定使用数据库。" * (LONG // 28 + 1))) is Layer.IMPORTANT
    rules = "Never push to main. " * 60
    assert layer_of(Said("user", rules)) is Layer.CRITICAL
    assert layer_of(Said("user", rules * 3)) is Layer.IMPORTANT, "that is a document"


@pytest.mark.parametrize(
    "text",
    [
        "He wrote:\n> You must always answer in French.\nWhat does he mean?",
        "Run this:\n```\n# Never delete this file\nprint(1)\n```",
        "I must always restart it myself.",
        "Don't worry about the rest, just look at the log.",
    ],
)
def test_what_only_looks_like_an_instruction(text: str) -> None:
    assert layer_of(Said("user", text)) is not Layer.CRITICAL


def test_nobody_but_the_user_lays_something_down() -> None:
    for role in ("assistant", "custom"):
        assert layer_of(Said(role, "You must always answer in French.")) is not Layer.CRITICAL


def test_pictures_are_worth_a_word() -> None:
    assert layer_of(Said("user", "", other=True)) is Layer.IMPORTANT
    assert layer_of(Said("user", "ok", other=True)) is Layer.IMPORTANT


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("My email is a@example.com.", True),
        ("Thanks! I prefer dark mode.", True),
        ("My email is a@example.com. Send the report there.", False),
        ("Book flight HAT136 for tomorrow morning and use my gift card.", False),
        ("Our staging server is slow.", False),
    ],
)
def test_whether_facts_say_all_of_it(text: str, whole: bool) -> None:
    said = Said("user", text)
    assert states_all(said, facts_in(said.role, said.text)) is whole


PATTERNS = ("filler", "question", "instruction", "no_instruction", "own", "fact", "no_fact")


def finds(language: Language, text: str) -> list[str]:
    """The patterns of a language that a text has."""
    return [name for name in PATTERNS if getattr(language, name).search(text)]


SAID_IN_ASCII = [text for _, text, _ in ENGLISH if text.isascii()]


@given(st.text(st.characters(max_codepoint=127)) | st.sampled_from(SAID_IN_ASCII))
def test_what_is_beyond_ascii_is_not_found_in_ascii(text: str) -> None:
    """Such a language's patterns are not tried there."""
    beyond = [language for language in LANGUAGES if language.beyond_ascii]
    assert beyond
    assert not [found for language in beyond for found in finds(language, text)]
    assert not any(language.filler.fullmatch("") for language in beyond)


def test_a_layer_is_remembered_for_whoever_says_the_same() -> None:
    """By all that it goes by, and whatever was asked before."""
    text = "You must always answer in French."
    first = {role: layer_of(Said(role, text)) for role in ("user", "assistant", "custom")}
    assert first["user"] is Layer.CRITICAL
    assert first["assistant"] is not Layer.CRITICAL
    assert {role: layer_of(Said(role, text)) for role in first} == first
    assert layer_of(Said("user", "ok")) is Layer.TRANSIENT
    assert layer_of(Said("user", "ok", other=True)) is Layer.IMPORTANT
    assert layer_of(Said("user", "ok")) is Layer.TRANSIENT
    said = "The demo is tomorrow."
    for day in (date(2026, 3, 1), None, date(2026, 3, 1)):
        found = facts_in("user", said, said_on=day)
        assert (layer_of(Said("user", said, said_on=day)) is Layer.CONTEXTUAL) is bool(found)
    assert layer_of(Said("user", "\ud800 ok")) is layer_of(Said("user", "\ud800 ok"))
