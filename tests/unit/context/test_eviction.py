"""What stays evicted is what all commits together say, at any room."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.context.eviction import (
    CommitSnapshot,
    EvictionHistory,
    decoded,
    encoded,
    history_of,
)

commits = st.lists(
    st.builds(
        CommitSnapshot,
        view=st.integers(0, 40),
        total=st.integers(0, 60),
        fixed=st.integers(0, 9),
        peak=st.integers(0, 9),
    ),
    max_size=25,
)


def _in_order(made: list[CommitSnapshot]) -> Iterator[tuple[CommitSnapshot, int, int]]:
    """The commits with their revisions; all follow the same one, by which masks are judged."""
    return ((before, created, 0) for created, before in enumerate(made, 1))


@given(commits, st.integers(-1, 45))
def test_it_answers_what_all_of_them_together_say(made: list[CommitSnapshot], room: int) -> None:
    evicting = [before for before in made if before.view > room]
    found = list(history_of(_in_order(made)).evicting(room))
    for far in ("reach", "end"):
        furthest = max((getattr(before, far) for before in evicting), default=None)
        assert max((getattr(before, far) for before in found), default=None) == furthest


@given(commits)
def test_it_keeps_no_more_than_it_needs(made: list[CommitSnapshot]) -> None:
    front = history_of(_in_order(made)).front
    assert [before.view for before in front] == sorted((b.view for b in front), reverse=True)
    assert not any(other.is_outdone(one for one in front if one is not other) for other in front)
    assert history_of(_in_order(front)).front == front


@given(commits, st.integers(-1, 45))
def test_it_answers_those_of_the_most_history_first(made: list[CommitSnapshot], room: int) -> None:
    held = history_of(_in_order(made))
    found = list(held.evicting(room))
    assert [one.total for one in found] == sorted((one.total for one in found), reverse=True)
    assert sorted(map(id, found)) == sorted(id(one) for one in held.front if one.view > room)
    assert held.evicted(room) == bool(found) == any(before.view > room for before in made)
    assert held.peak >= max((one.peak for one in found), default=0)


@given(commits, commits)
def test_a_copy_goes_on_by_itself(made: list[CommitSnapshot], more: list[CommitSnapshot]) -> None:
    held = history_of(_in_order(made))
    before, copy = (list(held.front), list(held.by_history), dict(held.runs)), held.copy()
    for one in more:
        copy.add(one, 100)
    assert (held.front, held.by_history, held.runs) == before


@given(commits)
def test_it_knows_the_newest(made: list[CommitSnapshot]) -> None:
    held = history_of(reversed(list(_in_order(made))))
    assert held.created == len(made)
    assert held.newest == (made[-1] if made else CommitSnapshot())


@given(st.dictionaries(st.integers(0, 9_999), st.integers(0, 10**7)))
def test_needs_are_read_as_they_were_written(needs: dict[int, int]) -> None:
    assert decoded(encoded(needs)) == needs


def test_needs_that_cannot_be_read_are_none() -> None:
    assert decoded('{"1": "many"}') == decoded('{"1":') == decoded("") == {}


def test_a_large_message_once_said_is_not_forgotten() -> None:
    held = EvictionHistory()
    held.add(CommitSnapshot(view=100, total=100, fixed=0, peak=140), 1)
    held.add(CommitSnapshot(view=120, total=200, fixed=10, peak=5), 2)
    assert [before.peak for before in held.evicting(90)] == [5, 140]
    assert [before.peak for before in held.evicting(110)] == [5]
    held.add(CommitSnapshot(view=130, total=300, fixed=10, peak=5), 3)
    assert [before.total for before in held.front] == [300]
