"""What stays evicted is what the outermost of all commits says, at any room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.context.eviction import CommitSnapshot, EvictionHistory, history_of

commits = st.lists(
    st.builds(
        CommitSnapshot, view=st.integers(0, 40), total=st.integers(0, 60), fixed=st.integers(0, 9)
    ),
    max_size=25,
)


@given(commits, st.integers(-1, 45))
def test_it_answers_what_all_of_them_together_say(made: list[CommitSnapshot], room: int) -> None:
    reaches = [before.reach for before in made if before.view > room]
    found = history_of(made).at(room)
    assert (found.reach if found else None) == max(reaches, default=None)


@given(commits)
def test_it_keeps_no_more_than_it_needs(made: list[CommitSnapshot]) -> None:
    front = history_of(made).front
    views, reaches = [before.view for before in front], [before.reach for before in front]
    assert views == sorted(set(views), reverse=True)
    assert reaches == sorted(set(reaches))


def test_a_large_message_once_said_is_not_forgotten() -> None:
    held = EvictionHistory()
    held.add(CommitSnapshot(view=100, total=100, fixed=0, peak=40))
    held.add(CommitSnapshot(view=120, total=200, fixed=10, peak=5))
    assert held.front == [CommitSnapshot(120, 200, 10, 40)]
    held.add(CommitSnapshot(view=110, total=50, fixed=0, peak=60))
    assert held.at(115) == CommitSnapshot(120, 200, 10, 60)
    assert held.at(120) is None
