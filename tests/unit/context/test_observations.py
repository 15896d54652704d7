"""What tools answered, and what was read again: from when on, and each copy for itself."""

from __future__ import annotations

from typing import Any

import pytest

from contextengine_server.context.message import ReadKey, Replacement, Replacements, Slot
from contextengine_server.context.observations import Observation, Observations

WHOLE, PART, OTHER_PART = b"", b"1-9", b"10-19"


def shows_nothing(how: Replacements) -> Slot:
    raise AssertionError(how)


def read(sequence: int, extent: bytes = WHOLE, target: bytes = b"file", **more: Any) -> Observation:
    """One that reads a file, stored by the revision ten times its sequence."""
    given = {
        "step": sequence - 1,
        "sequence": sequence,
        "part": 0,
        "tool": "read",
        "tokens": 7,
        "created": 10 * sequence,
        "key": ReadKey(target, extent),
        "failed": False,
        "pictured": False,
        "chars": 40,
        "show": shows_nothing,
    }
    return Observation(**{**given, **more})


def taken(*observations: Observation) -> Observations:
    made = Observations()
    made.take(observations)
    return made


def stale(made: Observations, revision: int = 10**6) -> dict[int, Replacements]:
    """What is stale before a revision, by sequence."""
    found = {sequence: message.at(revision) for sequence, message in made.stale.items()}
    return {sequence: parts for sequence, parts in found.items() if parts}


def test_a_later_read_of_the_same_stands_for_the_earlier() -> None:
    made = taken(read(1), read(2), read(3, target=b"other"), read(4))
    assert stale(made) == {1: (Replacement(0, by=2),), 2: (Replacement(0, by=4),)}
    assert made.sequences == [1, 2]
    assert set(made.stale_steps()) == {0, 1}
    assert made.sums == [7, 14, 21, 28]


def test_a_read_of_the_whole_stands_for_all_parts_and_a_part_for_itself() -> None:
    made = taken(read(1, PART), read(2, OTHER_PART), read(3, PART))
    assert stale(made) == {1: (Replacement(0, by=3),)}
    made.take([read(4)])
    assert stale(made) == {at: (Replacement(0, by=by),) for at, by in ((1, 3), (2, 4), (3, 4))}
    made.take([read(5, PART)])
    assert sorted(stale(made)) == [1, 2, 3], "a part does not stand for the whole"
    made.take([read(6)])
    assert stale(made)[4] == stale(made)[5] == (Replacement(0, by=6),)


@pytest.mark.parametrize("odd", [{"failed": True}, {"key": None}])
def test_what_failed_or_is_no_read_stands_for_nothing(odd: dict[str, Any]) -> None:
    made = taken(read(1), read(2, **odd), read(3))
    assert stale(made) == {1: (Replacement(0, by=3),)}
    assert [one.sequence for one in made.all] == [1, 2, 3]


def test_what_is_stale_is_so_behind_the_revision_that_stored_the_later_read() -> None:
    made = taken(read(1), read(2))
    assert stale(made, 20) == {}
    assert stale(made, 21) == {1: (Replacement(0, by=2),)}


def test_of_a_message_with_several_results_each_is_stale_from_its_own_revision_on() -> None:
    parts = [read(1, target=b"one"), read(1, target=b"two", part=1)]
    made = taken(*parts, read(2, target=b"one"), read(3, target=b"two"))
    first, second = Replacement(0, by=2), Replacement(1, by=3)
    seen = [stale(made, revision).get(1, ()) for revision in (20, 21, 30, 31)]
    assert seen == [(), (first,), (first,), (first, second)]


def test_stale_results_of_a_message_are_told_in_its_order() -> None:
    made = taken(read(1, target=b"a", part=0), read(1, target=b"b", part=1), read(2, target=b"b"))
    made.take([read(3, target=b"a")])
    assert stale(made) == {1: (Replacement(0, by=3), Replacement(1, by=2))}
    assert made.sequences == [1]


def test_a_copy_goes_on_by_itself() -> None:
    made = taken(read(1), read(2), read(3, PART, b"other"))
    before = stale(made), list(made.all), list(made.sums), list(made.sequences)
    copy = made.copy()
    assert (stale(copy), copy.all, copy.sums, copy.sequences) == before
    copy.take([read(4), read(5, target=b"other"), read(1, part=1), read(6)])
    assert (stale(made), made.all, made.sums, made.sequences) == before
    assert sorted(stale(copy)) == [1, 2, 3, 4]
    made.take([read(4, target=b"other")])
    assert stale(made)[3] == (Replacement(0, by=4),)
    assert stale(copy)[3] == (Replacement(0, by=5),)


def test_a_message_is_shown_anew_only_in_another_form() -> None:
    asked: list[Replacements] = []

    def show(how: Replacements) -> Slot:
        asked.append(how)
        return Slot(1, 0, 0, b"", b"")  # type: ignore[arg-type]

    one, two = (Replacement(0, by=2),), (Replacement(0, by=3),)
    made = taken(read(1, show=show), read(2))
    for shown in (made.shown, made.in_short):
        first = shown(1, show, one)
        assert shown(1, show, one) is first
        assert shown(1, show, two) is not first
        assert shown(1, show, one) is not first, "the newest form is kept"
        assert asked == [one, two, one]
        asked.clear()
    assert made.shown(1, show, one) is not made.in_short(1, show, one)
    assert made.stale[1].shown(one) is made.stale[1].shown(one)
    made.stale[1].shown(two)
    made.stale[1].shown(one)
    assert asked == [one, two]
