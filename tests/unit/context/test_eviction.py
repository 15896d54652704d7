"""What stays evicted is what all commits together say, at any room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.context.eviction import CommitSnapshot, EvictionHistory, history_of

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


@given(commits, st.integers(-1, 45))
def test_it_answers_what_all_of_them_together_say(made: list[CommitSnapshot], room: int) -> None:
    evicting = [before for before in made if before.view > room]
    found = list(history_of(made).evicting(room))
    for far in ("reach", "end"):
        furthest = max((getattr(before, far) for before in evicting), default=None)
        assert max((getattr(before, far) for before in found), default=None) == furthest


@given(commits)
def test_it_keeps_no_more_than_it_needs(made: list[CommitSnapshot]) -> None:
    front = history_of(made).front
    assert [before.view for before in front] == sorted((b.view for b in front), reverse=True)
    assert not any(one.outdoes(other) for one in front for other in front if one is not other)
    assert history_of(front).front == front


def test_a_large_message_once_said_is_not_forgotten() -> None:
    held = EvictionHistory()
    held.add(CommitSnapshot(view=100, total=100, fixed=0, peak=140))
    held.add(CommitSnapshot(view=120, total=200, fixed=10, peak=5))
    assert [before.peak for before in held.evicting(90)] == [5, 140]
    assert [before.peak for before in held.evicting(110)] == [5]
    held.add(CommitSnapshot(view=130, total=300, fixed=10, peak=5))
    assert [before.total for before in held.front] == [300]
