"""Who makes room: always the one with the most, and never for one who would then have more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.fairness.held import Held

KEYS = ("a", "b", "c")
WEIGHT = {"a": 1.0, "b": 1.0, "c": 2.0}


def ask(held: Held[int], key: str, holder: int) -> bool:
    """One that comes, as admission does it."""
    if held.full:
        largest = held.largest_before(key)
        if largest is None:
            return False
        newest = held.newest(largest)
        assert newest is not None
        held.discard(largest, newest)
    held.add(key, holder)
    return True


@given(st.lists(st.sampled_from(KEYS), max_size=300), st.integers(1, 40))
def test_the_limit_holds_and_counts_are_true(asked, limit):
    held = Held[int](limit, WEIGHT.__getitem__)
    for number, key in enumerate(asked):
        ask(held, key, number)
        assert len(held) == sum(map(held.of, KEYS)) == len(list(held)) <= limit
    assert len(held) == min(limit, len(asked))  # one that comes alone may have it all


@given(st.permutations(("a",) * 200 + ("b",) * 200 + ("c",) * 400))
def test_those_who_always_want_more_end_with_shares_as_their_weights(asked):
    held = Held[int](80, WEIGHT.__getitem__)
    for number, key in enumerate(("a",) * 300 + tuple(asked)):
        ask(held, key, number)
    assert [held.of(key) for key in KEYS] == [20, 20, 40] or all(
        abs(held.of(key) / WEIGHT[key] - 20) <= 1 for key in KEYS
    )


def test_nobody_makes_room_for_the_largest_nor_for_an_equal():
    held = Held[int](4)
    for number, key in enumerate("aaab"):
        held.add(key, number)
    assert held.largest_before("a") is None
    assert held.largest_before("b") == "a"
    assert held.newest("a") == 2
    assert held.newest("a", lambda holder: holder < 2) == 1
    held.discard("a", 2)
    held.add("b", 9)
    assert held.largest_before("b") is None
    assert held.largest_before("a") is None


def test_who_is_discarded_twice_or_added_twice_counts_once():
    held = Held[int](4)
    held.add("a", 1)
    held.add("a", 1)
    assert len(held) == 1
    held.discard("a", 1)
    held.discard("a", 1)
    held.discard("b", 1)
    assert (len(held), list(held)) == (0, [])
