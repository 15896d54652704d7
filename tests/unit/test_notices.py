"""What a harness writes into a user's message is not what the user said."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.notices import parted
from tests.unit.summarize.sources import Work

REMINDER = "<system-reminder>\n{}\n</system-reminder>"
WORDS = st.text("abc <>/.\n", max_size=30)


@given(st.lists(st.tuples(WORDS, WORDS), max_size=5), WORDS)
def test_words_are_the_users_and_what_stands_between_tags_is_not(
    turns: list[tuple[str, str]], last: str
) -> None:
    text = "".join(f"{said}\n{REMINDER.format(told)}" for said, told in turns) + last
    said, told = parted(text)
    if not turns:
        assert (said, told) == (text, "")
        return
    assert said.split() == " ".join([*(one for one, _ in turns), last]).split()
    assert told.split() == " ".join(one for _, one in turns).split()


@pytest.mark.parametrize(
    "text",
    [
        "What does <system-reminder> mean?",
        "Close it: </system-reminder>",
        "<div>So</div>",
        "<environment_context>a</system-reminder>",
        "What does the <skill> tag do? And </skill>?",
        "A line `<system-reminder>so</system-reminder>` of code.",
    ],
)
def test_what_is_no_block_is_the_users(text: str) -> None:
    assert parted(text) == (text, "")


def test_the_head_of_a_file_of_rules_goes_with_it() -> None:
    rules = "# AGENTS.md instructions for /work\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>"
    assert parted(f"{rules}\nGo on.") == ("\nGo on.", "Be brief.")


def test_tags_that_nothing_closes_cost_no_more_than_words() -> None:
    began = time.process_time()
    parted("<system-reminder>\n" * 60_000)
    assert time.process_time() - began < 2


@pytest.mark.parametrize("target", [300, 600, 1_500])
def test_a_request_is_kept_however_much_stands_beside_it(target: int) -> None:
    rows = [f"Rule {at}: module m{at}.py must never import n{at}.py." for at in range(120)]
    rules, work = REMINDER.format("\n".join(rows)), Work()
    for at in range(6):
        request = f"Rename the limit of room {at} to {at}00 tokens. Keep the old name as well."
        work.says("user", f"{rules}\n{request}\n{rules}")
        work.does("edit", {"path": f"room{at}.py"}, "done")
        work.says("assistant", f"Room {at} has its limit. " * 30)
    text = work.summary(target)
    for at in range(6):
        assert f"user: Rename the limit of room {at} to {at}00 tokens." in text
    assert "Rule 0: " in text, "and what the harness says is told where there is room"


def test_a_file_is_named_by_a_user_and_not_by_a_harness() -> None:
    work = Work()
    work.says("user", f"{REMINDER.format('Open: src/other.py')}\nLook at src/limits.py.")
    for name in ("other", "limits"):
        work.does("read", {"path": f"src/{name}.py"}, f"{name.upper()} = 1\n" * 8)
    work.says("assistant", "There are limits. " * 100)
    text = work.summary(200)
    assert "LIMITS = 1" in text
    assert "OTHER = 1" not in text


def test_a_talk_between_two_people_is_one_whatever_a_harness_says_beside_it() -> None:
    """Everybody who speaks weighs the same then, and the harness is nobody."""
    cities = ["Lisbon", "Oslo", "Quito", "Turin", "Perth", "Kyoto"]
    rows = [f"Rule {at}: module m{at}.py must never import n{at}.py." for at in range(60)]
    rules, work = REMINDER.format("\n".join(rows)), Work()
    for at, city in enumerate(cities):
        work.says("user", f"{rules}\nMy sister moved to {city} in 199{at}. We wrote each month.")
        work.says("assistant", f"My brother painted {city} in 200{at}. He sold all of it.")
    text = work.summary(230)
    assert all(f"199{at}" in text and f"200{at}" in text for at in range(len(cities)))
