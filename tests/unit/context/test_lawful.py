"""Help to be lawful, by example: what no law lets go, what fits a room."""

from __future__ import annotations

from contextengine_server.context.lawful import (
    fitting,
    least,
    newest_within,
    plan_of,
    snapshot_of,
)
from contextengine_server.context.plan import Keep
from contextengine_server.context.settled import settled_room
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


def test_a_scrap_before_the_newest_user_message_is_shown_where_it_fits() -> None:
    view = trial_of(
        said(("system", 5), ("user", 20), ("user", 400), ("assistant", 30), ("assistant", 400))
    ).view
    scrap, room = tokens(view)[1], least(view)
    for more in range(scrap):
        assert shown(view, room + more) == [(0, 0), (2, 2), (4, 4)], more
    assert shown(view, room + scrap) == [(0, 2), (4, 4)]


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
    assert snapshot_of(one.view, {5: 30}).view == made.view - 30


def after_a_summary(*scrap: int) -> View:
    """A summary of four answers, what is said before the question, the question, four answers."""
    rows = said(
        *[("assistant", 200)] * 4,
        *(("assistant", size) for size in scrap),
        ("user", 90),
        *[("assistant", 300)] * 4,
    )
    one = trial_of(rows)
    one.compact(0, 3, "[40] before")
    return one.view


def test_a_scrap_before_the_question_is_shown_wherever_it_fits_and_takes_no_steps_place() -> None:
    """Not worth a summary of its own, so it would stay evicted for ever."""
    view = after_a_summary(60, 60)
    each, summary = tokens(view), view.summaries[0].tokens
    scrap, question, answer = each[4] + each[5], each[6], each[7]
    for answers in (1, 2, 3):
        newest = (11 - answers, 10)
        fits = summary + scrap + question + answers * answer
        assert shown(view, fits) == [(4, 6), newest]
        assert shown(view, fits - 1) == [(6, 6), newest]
        assert [one.id for one in fitting(view, fits - 1).summaries] == [view.summaries[0].id]
    assert fitting(view, summary + scrap + question + answer).rule == "cut at step 10"
    # More than a scrap goes like everything else, the oldest first.
    large = after_a_summary(110, 110)
    room = large.summaries[0].tokens + sum(tokens(large)[4:7]) + tokens(large)[10]
    assert shown(large, room) == [(6, 6), (10, 10)]


def test_what_lies_between_summaries_is_shown_the_newest_first() -> None:
    rows = said(
        *[("assistant", 200)] * 3,
        *[("assistant", 150)] * 3,
        *[("assistant", 200)] * 3,
        *[("assistant", 250)] * 6,
    )
    one = trial_of(rows)
    one.compact(0, 2, "[40] first")
    one.compact(6, 8, "[40] second")
    view = one.view
    # Where all of it fitted before there was a summary, all of it is shown.
    assert shown(view, 3 * 204 + view.total) == [(3, 5), (9, 14)]
    assert shown(view, 2_400) == [(5, 5), (9, 14)]
    assert shown(view, 2_000) == [(9, 14)]
    assert [each.first_step for each in fitting(view, 2_000).summaries] == [0, 6]


def test_an_empty_view_fits_any_room_but_less_than_none() -> None:
    empty = trial_of([]).view
    assert not fitting(empty, 0).over
    assert fitting(empty, -1).over
    assert (list(fitting(empty, 0).ranges), list(fitting(empty, 0).summaries)) == ([], [])
    assert fitting(empty, 0).rule == ""


def test_what_stood_in_other_forms_then_had_not_been_evicted() -> None:
    """What forms saved when a summary was committed left room for older steps."""
    one = trial_of(said(*[("assistant", 300)] * 12))
    one.compact(0, 3, "[40] before")
    saved = dict.fromkeys(range(4, 9), 250)
    for room, plain in ((1_500, 8), (2_000, 6)):
        assert list(fitting(one.view, room, 1, saved).ranges) == [(plain, 11)]
        then = fitting(one.view, room, 1, saved, lambda masked: saved)
        assert list(then.ranges) == [(4, 11)]
        # What forms saved by then and do not save now makes no room now.
        gone = fitting(one.view, room, 1, {}, lambda masked: saved)
        assert list(gone.ranges) == [(plain, 11)]


def asked_twice() -> tuple[Trial, Trial]:
    """A session that worked on a long request, and the same once a short one followed."""
    rows = said(("user", 600), *[("assistant", 100)] * 12, ("user", 20))
    return trial_of(rows[:-1]), trial_of(rows)


def test_a_message_that_is_gone_leaves_its_room_to_what_is_added_alone() -> None:
    """What was evicted for the request stays so, until as much has come as it took."""
    before, after = asked_twice()
    each = tokens(before.view)
    room = each[0] + 3 * each[1]
    assert shown(before.view, room) == [(0, 0), (10, 12)]
    assert shown(after.view, room) == [(10, 13)]
    for more in range(1, 6):
        after.add(said(*[("assistant", 100)] * (14 + more))[-1:])
        assert shown(after.view, room)[0] == (10, 13 + more), more
    after.add(said(*[("assistant", 100)] * 24)[-4:])
    assert shown(after.view, room)[-1][0] > 10, "then the list slides on"


def test_a_message_that_exceeds_the_room_took_half_of_it() -> None:
    """One that just fits took all of it."""
    _, after = asked_twice()
    each = tokens(after.view)
    assert shown(after.view, each[0]) == [(13, 13)]
    room = each[0] - 1
    older = (room - room // 2) // each[1]
    assert older == 2
    assert shown(after.view, room) == [(13 - older, 13)]


def test_a_commit_remembers_what_an_earlier_message_took_beyond_what_came() -> None:
    one = trial_of(said(("assistant", 50), ("user", 600), ("user", 20), ("assistant", 30)))
    each = tokens(one.view)
    assert snapshot_of(one.view).peak == each[1] - each[2] - each[3]
    more = trial_of(said(("assistant", 50), ("user", 90), ("user", 80), ("assistant", 300)))
    assert snapshot_of(more.view).peak == tokens(more.view)[2]


def test_a_question_between_summaries_took_no_room_besides_when_one_more_was_made() -> None:
    """It is part of what stood before the newest history, and counted with that."""
    rows = said(
        *[("assistant", 150)] * 8,
        ("user", 200),
        *[("assistant", 50)] * 3,
        ("assistant", 200),
        *[("assistant", 10)] * 4,
    )
    one = trial_of(rows[:12])
    one.compact(9, 11, "[40] what was done")
    one.add(rows[12:])
    room = one.view.view_tokens() - 1
    assert shown(one.view, room) == [(0, 8), (13, 16)]
    one.compact(0, 2, "[40] before")
    assert shown(one.view, room) == [(8, 8), (13, 16)]


def test_of_several_requests_between_summaries_only_the_newest_was_never_evicted() -> None:
    rows = said(*[("assistant", 100)] * 3, ("user", 250), ("user", 20), *[("assistant", 100)] * 10)
    one = trial_of(rows[:3])
    one.compact(0, 2, "[40] before")
    one.add(rows[3:])
    room = one.view.view_tokens() - 300
    before = shown(one.view, room)
    one.compact(5, 8, "[40] what was done")
    assert (before, shown(one.view, room)) == ([(4, 4), (6, 14)], [(4, 4), (9, 14)])
