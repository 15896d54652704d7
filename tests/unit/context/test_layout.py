"""What is shown stands in the order of the session: ranges, what must stay, summaries where what
they cover begins."""

from __future__ import annotations

from contextengine_server.context.layout import everything, lay_out, reshaped, uncovered
from contextengine_server.context.message import Form, Slot
from contextengine_server.context.plan import Keep, Reshaped, Segment, Summarized
from contextengine_server.context.view import View
from contextengine_server.testing.engine.trial import Trial, trial_of
from tests.unit.engines.test_dag_compaction import said


def session(steps: int = 10) -> Trial:
    """Equal steps, alternating; the last user message is the last but one."""
    return trial_of(said(*[("user", 100), ("assistant", 100)] * (steps // 2)))


def named(segments: tuple[Segment, ...]) -> list[str]:
    return [
        one.summary.id if isinstance(one, Summarized) else f"{one.first}-{one.last}"
        for one in segments
    ]


def ids(view: View) -> list[str]:
    return [summary.id for summary in view.summaries]


def test_ranges_that_meet_are_one() -> None:
    view = session().view
    assert view.must_stay() == [8]
    assert named(lay_out(view, [(0, 1), (2, 3)], ())) == ["0-3", "8-8"]
    assert named(lay_out(view, [(0, 1), (3, 4)], ())) == ["0-1", "3-4", "8-8"]
    assert named(lay_out(view, [(5, 7), (9, 9)], ())) == ["5-9"]
    assert named(lay_out(view, [(2, 6), (3, 4)], ())) == ["2-6", "8-8"]
    assert named(lay_out(view, [(7, 9), (0, 0)], ())) == ["0-0", "7-9"]


def test_a_range_says_why_it_is_shown() -> None:
    view = session().view
    assert lay_out(view, [(7, 9)], (), "because") == (Keep(7, 9, "because"),)
    assert lay_out(view, [(7, 9)], ()) == (Keep(7, 9),)
    assert everything(view) == (Keep(0, 9),)
    assert everything(trial_of([]).view) == ()


def test_a_summary_stands_where_what_it_covers_begins() -> None:
    one = session()
    one.compact(0, 1, "[20] first")
    one.compact(4, 5, "[20] second")
    view = one.view
    first, second = ids(view)
    assert uncovered(view) == [(2, 3), (6, 9)]
    assert named(everything(view)) == [first, "2-3", second, "6-9"]
    assert named(lay_out(view, [(6, 9)], view.summaries)) == [first, second, "6-9"]
    # A range that runs over it is parted there.
    assert named(lay_out(view, [(2, 9)], view.summaries)) == [first, "2-3", second, "4-9"]
    assert named(lay_out(view, [(4, 9)], view.summaries)) == [first, second, "4-9"]
    assert named(lay_out(view, [(2, 4)], view.summaries)) == [first, "2-3", second, "4-4", "8-8"]


def slot() -> Slot:
    return Slot(1, Form.PLACEHOLDER, 1, b"", b"")


def test_steps_in_another_form_part_their_range() -> None:
    summary = session()
    summary.compact(0, 1, "[20] first")
    covered = Summarized(summary.view.summaries[0])
    segments: tuple[Segment, ...] = (covered, Keep(2, 6, "kept"), Keep(8, 9, "kept"))
    forms = {at: {at + 1: slot()} for at in (2, 4, 5, 9)}
    made = reshaped(segments, forms, dict.fromkeys(forms, "masked"))
    assert named(made) == [covered.summary.id, "2-2", "3-3", "4-4", "5-5", "6-6", "8-8", "9-9"]
    other = [one for one in made if isinstance(one, Reshaped)]
    assert [(one.first, one.last, one.reason) for one in other] == [
        (at, at, "masked") for at in (2, 4, 5, 9)
    ]
    assert [list(one.slots) for one in other] == [[3], [5], [6], [10]]
    kept = [one for one in made if isinstance(one, Keep)]
    assert {one.reason for one in kept} == {"kept"}
    assert reshaped(segments, {}, {}) == segments
    assert named(reshaped(segments, {7: {8: slot()}}, {7: "masked"})) == named(segments)
