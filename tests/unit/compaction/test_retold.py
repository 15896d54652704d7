"""How a summary tells of messages by their layers: facts word for word, from messages and never
from a summary; what a summarizer reads; what is passed over."""

from __future__ import annotations

import pytest

from contextengine_server.compaction.retold import (
    HEADING,
    PASSED_OVER,
    Retold,
    fitted,
    joined,
    parted,
    retold,
    said_in,
    shared,
)
from contextengine_server.context.work import at_once
from contextengine_server.engines.contract import Engine, Said
from contextengine_server.engines.dag import DagEngine, DagOptions
from contextengine_server.engines.guard import GuardedEngine
from contextengine_server.engines.layered import LayeredEngine, LayeredOptions
from contextengine_server.engines.teller import Retelling
from contextengine_server.summarize.request import SourceMessage, SourceResult, SummaryResult

ENGINE = LayeredEngine(LayeredOptions())


def sources(*said: tuple[str, str]) -> list[SourceMessage]:
    return [SourceMessage(role, text, number) for number, (role, text) in enumerate(said, 1)]


def parts_of(engine: Engine, given: list[SourceMessage]) -> Retold:
    return at_once(retold(engine, given))


def lines(*said: str, role: str = "user") -> tuple[str, ...]:
    """The facts that summaries state of messages of one role."""
    return parts_of(ENGINE, sources(*((role, text) for text in said))).lines


def test_messages_are_parted_by_what_is_told_of_them() -> None:
    given = sources(
        ("user", "I prefer dark mode."),
        ("assistant", "ok"),
        ("user", "Why is it red?"),
        ("user", "I prefer light mode. Paint it."),
        ("user", "The port is 80 in the meantime."),
    )
    parts = parts_of(ENGINE, given)
    assert [one.sequence for one in parts.read] == [3, 4, 5], "of 5 no fact is found"
    assert parts.passed_over == {1, 2}
    assert parts.lines == ("preference: I prefer light mode (superseded: I prefer dark mode)",)


def test_the_facts_of_the_seed() -> None:
    given = sources(
        ("user", "My email is alice@example.com. I prefer dark mode."),
        ("assistant", "We decided to use PostgreSQL for the database."),
    )
    assert parts_of(ENGINE, given).lines == (
        "email: alice@example.com",
        "preference: I prefer dark mode",
        "decision: decided to use PostgreSQL",
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("I don't want dark mode", "I prefer light mode"),
        ("I prefer dark mode", "I don't want dark mode"),
        ("我喜欢深色模式", "我更喜欢浅色模式"),
        ("We decided to use PostgreSQL for the database", "Actually, use MySQL"),
        ("We decided to use Oracle", "We decided to use MySQL instead of Oracle"),
        ("My email is a@example.com", "My email is b@example.com"),
    ],
)
def test_what_contradicts_takes_the_place(before: str, after: str) -> None:
    [line] = lines(before, after)
    [old] = lines(before)
    assert line.endswith(f" (superseded: {old.partition(': ')[2]})")
    assert line.startswith(lines(after)[0])


def test_what_does_not_contradict_stands_beside() -> None:
    assert (
        len(lines("I prefer dark mode", "I love strong coffee", "We agreed to meet on Monday")) == 3
    )


def test_the_last_word_on_a_subject_holds() -> None:
    said = [f"I prefer {word} mode." for word in ("dark", "light", "dark", "dark")]
    assert lines(*said) == ("preference: I prefer dark mode (superseded: I prefer light mode)",)


def test_an_earlier_summary_keeps_its_facts_and_is_read_without_them() -> None:
    text = f"{HEADING}\nemail: a@example.com\ndecision: use Go\n\nThe rest."
    assert parted(text) == ([("email", "a@example.com"), ("decision", "use Go")], "The rest.")
    assert parted("Facts: many") == ([], "Facts: many")
    parts = parts_of(ENGINE, [SourceMessage("summary", text, 1, last=4)])
    assert parts.lines == ("email: a@example.com", "decision: use Go")
    assert [one.text for one in parts.read] == ["The rest."]


def test_the_newest_facts_stay_where_there_is_no_room_for_all() -> None:
    lines = [f"email: {n}@example.com" for n in range(50)]
    block = fitted(lines, 400, len)
    assert len(block) <= 400
    assert block.startswith(f"{HEADING}\n")
    assert block.endswith(lines[-1])
    assert lines[0] not in block
    assert fitted(lines, 5, len) == ""
    assert fitted([], 400, len) == ""


def test_both_have_the_share_of_their_layers() -> None:
    assert shared(ENGINE, 5_000) == (2_000, 3_000)
    assert shared(ENGINE, 500) == (200, 300)
    assert shared(DagEngine(DagOptions()), 500) == (0, 500)


def test_facts_stand_before_what_is_told() -> None:
    told = SummaryResult("It was told.", 12, "extractive", spent=5)
    both = joined("Facts:\na: b", told, len)
    assert (both.text, both.tokens) == ("Facts:\na: b\n\nIt was told.", len(both.text))
    assert (both.summarizer, both.spent) == ("extractive", 5)
    assert joined("", told, len) is told
    assert joined("Facts:\na: b", None, len).text == "Facts:\na: b"
    assert joined("", None, len).text == PASSED_OVER


def test_what_a_message_carries_is_told_to_the_engine() -> None:
    results = (SourceResult("c", "look", " "), SourceResult("d", "look", "", failed=True))
    assert said_in(SourceMessage("tool", "", 1, results=results)) == Said("tool", "", 0, 2, 1)


class Broken:
    facts_tokens = 5

    def told(self, said: Said) -> Retelling:
        raise RuntimeError("broken")


def test_an_engine_that_cannot_say_has_all_of_it_read() -> None:
    engine = LayeredEngine(LayeredOptions())
    engine.teller = Broken()  # type: ignore[assignment]
    assert len(parts_of(engine, sources(("assistant", "ok"))).read) == 1


def test_an_engine_without_a_teller_has_all_of_it_read() -> None:
    for engine in (DagEngine(DagOptions()), GuardedEngine(DagEngine(DagOptions()))):
        parts = parts_of(engine, sources(("assistant", "ok")))
        assert (len(parts.read), parts.lines) == (1, ())


def test_others_have_their_turn_behind_each_message() -> None:
    """What a message says of itself is found in some tenths of a millisecond."""
    given = sources(("user", "I prefer dark mode."), ("assistant", "ok"), ("user", "Why?"))
    assert len(list(retold(ENGINE, given))) == len(given)


def test_a_guarded_engine_has_its_teller() -> None:
    assert not parts_of(GuardedEngine(ENGINE), sources(("assistant", "ok"))).read
