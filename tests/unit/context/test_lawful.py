"""Help to be lawful, by example: what no law lets go, what fits a room."""

from __future__ import annotations

from contextengine_server.context.lawful import (
    fitting,
    kept_before,
    least,
    newest_within,
    plan_of,
    settled_room,
    snapshot_of,
)
from contextengine_server.context.plan import Keep
from contextengine_server.context.view import View
from contextengine_server.testing.engine.trial import Trial, trial_of
from tests.unit.engines.test_dag_compaction import said


def tokens(view: View) -> list[int]:
    return [atom.tokens for atom in view.atoms]


def session() -> Trial:
    """One that leads, a pinned message, answers, and a question that is not the newest step."""
    return trial_of(
        said(
            ("system", 40),
            ("assistant!", 60),
            *[("assistant", 200)] * 3,
            ("user", 90),
            *[("assistant", 300)] * 3,
        )
    )


def test_the_least_is_what_stays_and_the_newest_step() -> None:
    view = session().view
    each = tokens(view)
    assert view.must_stay() == [0, 1, 5]
    assert least(view) == each[0] + each[1] + each[5] + each[8]
    assert least(view, {8: 100}) == least(view) - 100
    assert kept_before(view, 5) == each[0] + each[1]
    assert kept_before(view, 6) == each[0] + each[1] + each[5]


def test_the_newest_step_is_not_needed_once_a_summary_covers_it() -> None:
    one = session()
    before = least(one.view)
    one.compact(6, 8, "[20] what was said")
    assert least(one.view) == before - one.view.atom(8).tokens


def test_as_many_of_the_newest_as_fit_and_never_none() -> None:
    view = session().view
    each = tokens(view)
    two = each[8] + each[7]
    assert newest_within(view, 0) == 8, "never less than the newest"
    assert newest_within(view, two - 1) == 8
    assert newest_within(view, two) == 7
    # What stays takes no room of its own: with the third answer the question is behind the cut.
    assert newest_within(view, two + each[6]) == 5
    assert newest_within(view, two + each[6], oldest=7) == 7
    assert newest_within(view, two - 50, saved={7: 50}) == 7


def shown(view: View, room: int, tail: int = 1) -> list[tuple[int, int]]:
    """The ranges of steps that are shown in this room, what stays included."""
    fits = fitting(view, room, tail)
    made = plan_of(view, fits.ranges, fits.summaries, rule=fits.rule, over=fits.over)
    return [(s.first, s.last) for s in made.segments if isinstance(s, Keep)]


def test_what_does_not_fit_goes_from_the_old_end_and_the_last_step_never() -> None:
    view = session().view
    each = tokens(view)
    assert shown(view, view.total) == [(0, 8)]
    assert shown(view, least(view) + each[7]) == [(0, 1), (5, 5), (7, 8)]
    assert shown(view, least(view) + each[7] - 1) == [(0, 1), (5, 5), (8, 8)]
    assert not fitting(view, least(view)).over
    least_list = fitting(view, least(view) - 1)
    assert least_list.over
    assert list(least_list.ranges) == [(8, 8)]


def test_the_cut_is_nowhere_while_everything_fits_and_only_moves_on() -> None:
    one, room = trial_of(said(("system", 5))), 4_096
    first = []
    for row in said(*[("assistant", 96)] * 120)[1:]:
        one.add([row])
        first.append(shown(one.view, room)[-1][0])
        assert (first[-1] == 0) == (one.view.total <= room)
        if first[-1]:
            at = one.view.atom(first[-1])
            left = room - one.view.atom(0).tokens - (one.view.total - at.start)
            assert 0 <= left < one.view.atom(first[-1] - 1).tokens, "no room for one more"
    assert first == sorted(first)


def test_a_tail_that_is_covered_shows_what_stays_and_the_summary_that_fits() -> None:
    one = session()
    one.compact(6, 8, "[20] what was said")
    assert [s.id for s in fitting(one.view, 700).summaries] == [one.view.summaries[0].id]
    assert shown(one.view, 250) == [(0, 1), (5, 5)]
    assert fitting(one.view, 10).over


def test_what_is_left_between_summaries_has_room_with_them() -> None:
    """A user's message that was the newest when what was done for it was summarized stays."""
    rows = said(*[("assistant", 200)] * 4, ("user", 90), *[("assistant", 200)] * 8, ("user", 30))
    one, late = trial_of(rows[:-1]), trial_of(rows)
    one.compact(0, 3, "[40] before")
    one.compact(5, 8, "[40] what was done")
    one.add(rows[-1:])
    for room in (600, 700, 900):
        assert (4, 4) in shown(one.view, room), room
    assert (4, 4) not in shown(one.view, least(one.view) + 60)
    # Where another had come before that summary was committed, it may have been evicted by then.
    late.compact(0, 3, "[40] before")
    late.compact(5, 8, "[40] what was done")
    assert (4, 4) not in shown(late.view, 600)


def test_room_for_the_largest_step_is_kept_free_once_and_for_all() -> None:
    before = trial_of(said(*[("assistant", 100)] * 12))
    after = trial_of(said(("assistant", 500), *[("assistant", 100)] * 12))
    assert settled_room(before.view, 2_000) - settled_room(after.view, 2_000) == 400
    assert settled_room(after.view, 100) >= 0


def test_a_snapshot_says_what_the_view_was() -> None:
    one = session()
    made = snapshot_of(one.view)
    assert (made.view, made.total) == (one.view.total, one.view.total)
    assert made.fixed == tokens(one.view)[0]
    assert made.peak == tokens(one.view)[5]
    assert snapshot_of(one.view, 30).view == made.view - 30
