"""Room that is left when all that is new was told: talk fills it, work leaves it."""

from __future__ import annotations

from itertools import permutations

import pytest

from contextengine_server.summarize import SourceMessage, SummaryRequest, extract
from contextengine_server.summarize.extractive.choice import UnitChoice
from contextengine_server.summarize.extractive.units import Unit
from contextengine_server.summarize.request import SourceCall, SourceResult
from contextengine_server.tokens import TokenCounter

COUNT = TokenCounter("o200k_base").count_text

NAMES = ("Ana", "Bruno", "Carla", "Dario", "Elena", "Fabio")
THINGS = ("garden", "bicycle", "kitchen", "telescope", "violin", "greenhouse")


def talk() -> tuple[SourceMessage, ...]:
    """Thirty-six sentences of twelve names: each tells a fact in words that others told already."""
    said = [
        f"Yesterday {name} was really very happy about the {thing}, as we all were."
        for name in NAMES
        for thing in THINGS
    ]
    roles = ("user", "assistant")
    return tuple(SourceMessage(roles[at % 2], text, at + 1, "") for at, text in enumerate(said))


def told(messages: tuple[SourceMessage, ...], target: int) -> tuple[str, int]:
    source = sum(COUNT(message.text) for message in messages)
    result = extract(SummaryRequest(messages, source, target), COUNT)
    assert result.tokens == COUNT(result.text) <= target
    return result.text, result.tokens


@pytest.mark.parametrize("target", [200, 300, 400])
def test_a_summary_of_talk_uses_its_room(target: int) -> None:
    _, used = told(talk(), target)
    assert used >= 0.85 * target


def test_what_is_new_comes_before_what_is_said_again() -> None:
    """However little room there is, no name and no thing is missing while another is told twice."""
    text, _ = told(talk(), 160)
    assert all(word in text for word in (*NAMES, *THINGS))


def test_of_little_that_is_new_the_whole_words_are_told() -> None:
    said = "I had been thinking that the old violin of my grandmother might well be repaired."
    messages = (SourceMessage("user", said, 1, ""), *talk()[:6])
    assert said.rstrip(".") in told(messages, 150)[0]


def test_work_does_not_repeat_itself() -> None:
    """A log that says the same in a hundred orders is told once, whatever room there is."""
    words = ("worker", "compiling", "module", "linker", "objects")
    lines = "\n".join(" ".join(order) for order in permutations(words))
    call = SourceCall("c1", "shell", '{"command": "make"}')
    messages = (
        SourceMessage("user", "Please build it.", 1, ""),
        SourceMessage("assistant", "", 2, "", calls=(call,)),
        SourceMessage("tool", "", 3, "", results=(SourceResult("c1", "shell", lines),)),
    )
    source = 2_000
    few = extract(SummaryRequest(messages, source, 300), COUNT)
    many = extract(SummaryRequest(messages, source, 900), COUNT)
    assert many.tokens - few.tokens < 300


def unit(text: str, *holds: str, whole: str = "") -> Unit:
    return Unit(0, 0, text, False, 1.0, 0.0, 0.0, tuple((one, 1.0) for one in holds), whole)


def test_units_of_known_words_wait_until_they_are_asked_for_again() -> None:
    choice = UnitChoice([unit("ab", "a", "b"), unit("a", "a"), unit("b", "b")], [0], len)
    assert choice.take(100)
    assert len(choice.chosen) == 1
    assert not choice.take(100)
    choice.again()
    assert choice.take(100)
    assert {one.text for one in choice.chosen} == {"ab", "a", "b"}
    assert not choice.take(100)


def test_whole_words_go_as_far_as_the_tokens() -> None:
    choice = UnitChoice([unit("a", "a", whole="an a"), unit("b", "b", whole="just b")], [0], len)
    choice.take(100)
    assert choice.fuller(4)
    assert [one.text for one in choice.chosen] == ["an a", "b"]
    assert choice.fuller(5)
    assert not choice.fuller(100)
    assert [one.text for one in choice.chosen] == ["an a", "just b"]
