"""How messages begin, as it is shown beside what is found: remembered, and never of a row that was
altered since."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from contextengine.messages import user
from contextengine_server.recall.snippets import TURN_CHARS, TurnBeginnings
from contextengine_server.store.rows import MessageRow
from contextengine_server.wire.message import content_hash


def row(text: str, sequence: int = 1) -> MessageRow:
    message = user(text)
    message.ClearField("id")
    return MessageRow(
        sequence, 1, 1, content_hash(message), message.SerializeToString(deterministic=True), 1
    )


class Redactor:
    """Counts what it is given."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Sequence[str]:
        self.seen += texts
        return [text.replace("secret", "[gone]") for text in texts]


def test_a_turn_is_read_once_wherever_it_stands() -> None:
    redactor = Redactor()
    beginnings = TurnBeginnings(redactor)
    first = beginnings.of([row("a secret one"), row("another"), row("a secret one")])
    assert "a [gone] one" in first[0]
    assert first[0] == first[2]
    assert beginnings.of([row("another", 7), row("a third")])[0] == first[1]
    assert redactor.seen == ["a secret one", "another", "a third"]


def test_a_row_that_was_altered_is_not_what_is_remembered_of_it() -> None:
    beginnings = TurnBeginnings(Redactor())
    good, other = row("as it was said"), row("as it was not")
    [said] = beginnings.of([good])
    [bad] = beginnings.of([replace(good, body=other.body)])
    assert "as it was said" in said
    assert "is damaged in the store" in bad
    assert beginnings.of([good]) == [said]


def test_long_messages_are_not_remembered() -> None:
    redactor = Redactor()
    beginnings = TurnBeginnings(redactor)
    long = row("word " * 1_000)
    [said], again = beginnings.of([long]), beginnings.of([long])
    assert again == [said]
    assert len(said) < TURN_CHARS + 200
    assert len(redactor.seen) == 2


def test_a_gap_tells_its_own_place() -> None:
    beginnings = TurnBeginnings(Redactor())
    bad = replace(row("as it was said"), body=b"")
    said = beginnings.of([replace(bad, sequence=3)]) + beginnings.of([replace(bad, sequence=9)])
    assert ["message 3 " in said[0], "message 9 " in said[1]] == [True, True]
