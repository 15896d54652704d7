"""What is found in what people say, and what is not. The second half of the labelled sentences was
written after the rules; of its facts 96 of 100 were found then, and 96 of 100 found were right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.memory.extraction.extract import facts_in
from contextengine_server.memory.extraction.fact import FactKind, FoundFact
from contextengine_server.memory.extraction.values import is_card
from tests.unit.memory.first_half import FIRST_HALF, Labelled
from tests.unit.memory.second_half import SECOND_HALF

ALL = (*FIRST_HALF, *SECOND_HALF)
STATED = [one for one in ALL if one[2]]


def lines(role: str, text: str) -> list[str]:
    return [fact.line for fact in facts_in(role, text)]


def only(text: str, role: str = "user") -> FoundFact:
    [fact] = facts_in(role, text)
    return fact


@pytest.mark.parametrize("labelled", ALL, ids=lambda one: one[1][:40])
def test_each_sentence_is_read_as_it_is_labelled(labelled: Labelled) -> None:
    role, text, facts = labelled
    assert lines(role, text) == list(facts)


def test_every_kind_is_among_the_labels_in_both_languages() -> None:
    for chinese in (False, True):
        kinds = {
            line.partition(":")[0]
            for _, text, facts in ALL
            if any("\u4e00" <= one <= "\u9fff" for one in text) == chinese
            for line in facts
        }
        assert kinds == set(FactKind), chinese


def test_the_seed_s_example_gives_the_seed_s_lines() -> None:
    told = [
        *lines("user", "My email is alice@example.com. I prefer dark mode."),
        *lines("assistant", "We decided to use PostgreSQL for the database."),
    ]
    assert told == [
        "email: alice@example.com",
        "preference: I prefer dark mode",
        "decision: decided to use PostgreSQL",
    ]


@pytest.mark.parametrize("labelled", STATED, ids=lambda one: one[1][:40])
def test_what_is_asked_quoted_or_code_is_no_fact(labelled: Labelled) -> None:
    role, text, _ = labelled
    bare = text.rstrip("。.，！!")
    assert lines(role, f"{bare}?") == []
    assert lines(role, f"> {text}") == []
    assert lines(role, f"```\n{text}\n```") == []
    assert lines(role, f"<recalled-memory>\n{text}\n</recalled-memory>") == []
    assert lines(role, f'The mail said "{bare} and so on, as ever".') == []
    assert lines(role, f"If {bare}") == []
    assert lines("tool", text) == lines("system", text) == []


@pytest.mark.parametrize(
    "text",
    [
        "My password is hunter2.",
        "The api key is AB12CD34.",
        "My card number is 4111 1111 1111 1111.",
        "my account number is 4111111111111111",
        "My SSN is 078-05-1120.",
        "我的密码是abc123。",
    ],
)
def test_what_opens_doors_is_no_fact(text: str) -> None:
    assert lines("user", text) == []


def test_card_numbers_are_known_by_their_check_digit() -> None:
    assert is_card("4111 1111 1111 1111")
    assert is_card("378282246310005")
    assert not is_card("4111 1111 1111 1112")
    assert not is_card("20240315001")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("I prefer dark mode.", "I prefer light mode now."),
        ("I prefer tabs over spaces.", "I prefer spaces over tabs."),
        ("I like coffee.", "I don't like coffee anymore."),
        ("My favourite editor is Vim.", "My favorite editor is Helix."),
        ("Please always answer in French.", "From now on, answer in English."),
        ("Never use semicolons.", "Always use semicolons."),
        ("We decided to use PostgreSQL for the database.", "We will use MySQL for the database."),
        ("The deadline is March 3, 2026.", "The deadline is 10 April 2026."),
        ("I live in Berlin.", "I moved to Paris."),
        ("My manager is Maria Chen.", "My new manager is Tom Ford."),
        ("My name is Alice Chen.", "Call me Ally."),
        ("My email is a@x.example.", "My email is b@x.example."),
        ("我喜欢深色模式。", "我更喜欢浅色模式。"),
        ("截止日期是3月3日。", "截止日期改到4月1日。"),
        ("我住在北京市。", "我搬到了上海市。"),
    ],
)
def test_what_contradicts_is_about_the_same(before: str, after: str) -> None:
    first, second = only(before), only(after)
    assert (first.kind, first.subject) == (second.kind, second.subject)
    assert first.value != second.value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I like coffee.", "I like tea."),
        ("My order number is A-1.", "My order number is A-2."),
        ("My friend is Tom Ford.", "My friend is Ann Lee."),
        ("We decided to use PostgreSQL for the database.", "We decided to use Redis for caching."),
        ("The deadline is March 3.", "The launch is March 4."),
    ],
)
def test_what_may_stand_together_does(one: str, other: str) -> None:
    assert only(one).subject != only(other).subject


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("We will use MySQL instead of PostgreSQL.", "postgresql"),
        ("Let's switch from Redis to Memcached.", "redis"),
        ("We decided to replace Jenkins with Buildkite.", "jenkins"),
        ("We decided not to use Kafka.", "kafka"),
        ("我们决定把PostgreSQL换成MySQL。", "postgresql"),
    ],
)
def test_a_decision_says_what_it_replaces(text: str, replaced: str) -> None:
    assert only(text).replaces == replaced


def test_a_correction_is_told() -> None:
    assert only("Actually, use MySQL.").corrects
    assert only("数据库改用MySQL吧。").corrects
    assert not only("We decided to use MySQL.").corrects


def test_of_a_pasted_text_the_beginning_is_read() -> None:
    text = f"I prefer dark mode. {'word ' * 5_000} My name is Bob."
    assert lines("user", text) == ["preference: I prefer dark mode"]
    assert lines("user", "x. " * 100 + "I prefer dark mode.") == ["preference: I prefer dark mode"]
    assert facts_in("user", "I prefer dark mode.", max_chars=10) == []


WORDS = st.sampled_from(
    [text for _, text, _ in ALL]
    + ["```", "> ", "\n", "?", "not ", '"', "<tag>", "</tag>", "我", "是"]
)


@given(st.lists(st.one_of(WORDS, st.text(max_size=40)), max_size=12).map(" ".join))
def test_any_text_is_read_the_same_at_every_run(text: str) -> None:
    for role in ("user", "assistant"):
        facts = facts_in(role, text)
        assert facts == facts_in(role, text)
        assert len({(fact.kind, fact.value) for fact in facts}) == len(facts)
        for fact in facts:
            assert fact.value.strip() == fact.value != ""
            assert fact.subject
            assert "\n" not in fact.line
            assert len(fact.value) <= 460


def test_what_a_harness_writes_beside_a_user_is_no_fact_of_the_user() -> None:
    notice = "My email is bot@example.com. I prefer dark mode. We decided to use pnpm."
    beside = f"<system-reminder>\n{notice}\n</system-reminder>"
    assert lines("user", f"{beside}\nMy email is alice@example.com.") == (
        lines("user", "My email is alice@example.com.")
    )
    assert lines("user", notice)
