"""Help to be lawful, by example: what no law lets go, the newest steps that fit, the short tail."""

from __future__ import annotations

from contextengine_server.context.lawful import (
    kept_before,
    least,
    newest_within,
    plan_of,
    short_tail,
    steady_cut,
)
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


def test_a_tail_gives_up_its_old_end_and_says_where_it_is_over() -> None:
    view = session().view
    each = tokens(view)
    assert short_tail(view, least(view) + each[7], 6) == ([(7, 8)], False)
    assert short_tail(view, least(view), 6) == ([(8, 8)], False)
    assert short_tail(view, least(view) - 1, 6) == ([(8, 8)], True)
    ranges, over = short_tail(view, least(view) - 1, 6)
    made = plan_of(view, ranges, rule="law budget", over=over)
    shown = [(first, last) for first, last in ((s.first, s.last) for s in made.segments)]  # type: ignore[union-attr]
    assert shown == [(0, 1), (5, 5), (8, 8)], "each at its own place"
    assert (made.cut, made.over) == (8, True)


def test_a_tail_that_is_covered_shows_what_stays_and_nothing_else() -> None:
    one = session()
    one.compact(6, 8, "[20] what was said")
    assert short_tail(one.view, 10_000, 9) == ([], False)
    assert short_tail(one.view, 10, 9) == ([], True)
    assert plan_of(one.view, []).cut == one.view.steps


def test_the_cut_is_nowhere_while_everything_fits_and_only_moves_on() -> None:
    one, room = trial_of(said(("system", 5))), 4_096
    reached = []
    for row in said(*[("assistant", 96)] * 120)[1:]:
        one.add([row])
        reached.append(steady_cut(one.view, room, room))
        assert (reached[-1] == 0) == (one.view.total <= room)
    assert reached == sorted(reached)
    assert {at % (room // 4) for at in reached} == {0}, "in blocks of a quarter of the cell"
