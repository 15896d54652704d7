"""Laws 9 to 12: what their modules offer to the tests that hold them, and how each is broken."""

from __future__ import annotations

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.laws.determinism import fingerprint
from contextengine_server.context.laws.lossless import intact
from contextengine_server.context.laws.prefix import is_prefix
from contextengine_server.context.laws.progress import input_key, shrinks
from contextengine_server.context.prefix import SEED, chained
from contextengine_server.testing.engine.random_sessions import text
from contextengine_server.testing.engine.views import all_slots, entries_of, folded
from contextengine_server.testing.oracle.pairs import ViewRow
from contextengine_server.wire.message import content_hash


def rows(*words: str) -> list[ViewRow]:
    return [
        ViewRow(n, pb.Message(role=pb.ROLE_USER, parts=[text(5, word)]), 2 * n)
        for n, word in enumerate(words, 1)
    ]


def test_law_9_the_fingerprint_notices_any_other_byte_and_any_other_order() -> None:
    one = all_slots(folded(entries_of(rows("a", "b", "c"))))
    assert fingerprint(one) == fingerprint(
        all_slots(folded(entries_of(rows("a", "b", "c")), batch=1))
    )
    assert fingerprint(one) != fingerprint(all_slots(folded(entries_of(rows("a", "b", "d")))))
    assert fingerprint(one) != fingerprint(one[::-1])
    assert fingerprint(one) != fingerprint(one[:-1])


def test_law_10_a_list_that_began_otherwise_is_noticed() -> None:
    before, behind = (
        [slot.hash for slot in all_slots(folded(entries_of(rows(*words))))]
        for words in ("abc", "abcd")
    )
    other = [slot.hash for slot in all_slots(folded(entries_of(rows(*"axcd"))))]
    assert is_prefix(before, behind)
    assert not is_prefix(before, other)
    assert not is_prefix(behind, before)
    assert chained(behind)[3] == chained(before)[-1] != chained(other)[3]
    assert chained([]) == [SEED]
    assert chained(before)[2:] == chained(before[1:], chained(before)[1])[1:]


def test_law_11_a_row_that_was_changed_is_noticed() -> None:
    def hashed(body: bytes) -> bytes:
        return content_hash(pb.Message.FromString(body))

    [entry] = entries_of(rows("a"))
    [other] = entries_of(rows("b"))
    assert intact(entry.body, entry.hash, hashed)
    assert not intact(other.body, entry.hash, hashed)


@pytest.mark.parametrize(
    ("before", "after", "expected"), [(100, 99, True), (100, 100, False), (100, 101, False)]
)
def test_law_12_only_what_shrinks_is_progress(before: int, after: int, expected: bool) -> None:
    assert shrinks(before, after) == expected


def test_law_12_the_same_input_is_known_again() -> None:
    first, second, third = (entry.hash for entry in entries_of(rows("a", "b", "c")))
    key = input_key([first, second], "dag:1")
    assert key == input_key([first, second], "dag:1")
    others = [
        input_key([second, first], "dag:1"), input_key([first], "dag:1"), input_key([first, second,
        third], "dag:1"),
        input_key([first, second], "dag:2"), input_key([first, third], "dag:1"),
    ]  # fmt: skip
    assert len({key, *others}) == 6
    assert len(key) == 24  # a state keeps several
