"""What a view answers about itself."""

from __future__ import annotations

from msgspec.structs import replace

from contextengine_server.context.atom import Atom
from contextengine_server.context.eviction import CommitSnapshot
from contextengine_server.context.layout import standing, top_level
from contextengine_server.context.message import Form, Slot
from contextengine_server.context.view import Summary, View
from contextengine_server.testing.engine.views import SCOPE


def view_of(*tokens: int, base: int = 0) -> View:
    """Atoms of these sizes, the first at step `base`, a thousand tokens a step before it."""
    atoms, start = [], 1_000 * base
    for number, size in enumerate(tokens):
        atoms.append(Atom(base + number, start, first=10 * (base + number + 1), tokens=size))
        start += size
    return View(SCOPE, atoms=atoms, base=base, total=start)


def summary(first: int, last: int, **fields: object) -> Summary:
    made = Summary(
        id=f"s{first}", depth=0, first_sequence=first, last_sequence=last, first_step=first,
        last_step=last, span_start=0,
        span_end=0, message_count=1, created=1, generation=1, tokens=5,
        show=lambda: Slot(0, Form.VERBATIM, 5, b"", b""),
    )  # fmt: skip
    return replace(made, **fields)


def test_the_cut_is_the_first_step_whose_running_sum_has_reached_the_edge() -> None:
    view = view_of(10, 10, 10)
    assert [view.cut_from(reached, 0) for reached in (-5, 0, 1, 10, 11, 20, 21, 99)] == [
        0,
        0,
        1,
        1,
        2,
        2,
        3,
        3,
    ]
    assert view.cut_from(0, 2) == 2
    window = view_of(10, 10, base=5)
    assert [window.cut_from(reached, 0) for reached in (0, 5_000, 5_001, 5_011)] == [5, 5, 6, 7]


def test_spans_are_differences_of_running_sums() -> None:
    view = view_of(10, 20, 30)
    assert (view.span(0, 2), view.span(1, 1), view.span(2, 1)) == (60, 20, 0)
    assert (view.steps, view.window_start, view.tail_from(2), view.tail_from(9)) == (3, 0, 1, 0)


def test_spans_reach_to_the_atoms_that_are_kept_before_the_window() -> None:
    view = view_of(10, 20, base=5)
    view.anchors = {
        0: Atom(0, 0, first=10, tokens=7),
        4: Atom(4, 4_993, first=50, tokens=7),
    }
    assert (view.span(0, 0), view.span(4, 4), view.span(4, 5)) == (7, 7, 17)
    assert (view.span(0, 4), view.span(5, 6)) == (5_000, 30)


def test_atoms_are_found_by_their_first_sequence_in_the_window_and_among_the_anchors() -> None:
    view = view_of(10, 10, base=5)
    view.anchors[2] = Atom(2, 2_000, first=30, tokens=10)
    assert view.find(60) is view.atoms[0]
    assert view.find(30) is view.anchors[2] is view.atom(2)
    assert view.find(65) is None
    assert [view.holds(step) for step in (1, 2, 5, 6)] == [False, True, True, True]


def test_what_covers_a_step() -> None:
    view = view_of(*[10] * 9)
    view.summaries = [summary(1, 2), summary(5, 6)]
    assert [view.covering(step) and step for step in range(9)] == [
        None,
        1,
        2,
        None,
        None,
        5,
        6,
        None,
        None,
    ]
    assert view.raw_from == 7
    assert view_of(1).raw_from == 0


def test_the_top_level_are_those_that_no_other_lists() -> None:
    low = [summary(1, 2), summary(3, 4), summary(7, 8)]
    high = summary(1, 4, id="high", depth=1, children=("s1", "s3"))
    assert [s.id for s in top_level([low[2], high, *low[:2]])] == ["high", "s7"]


def test_the_first_sequence_of_a_step_is_known_as_far_as_it_is_in_memory() -> None:
    view = view_of(10, 10, base=5)
    view.anchors[2] = Atom(2, 2_000, first=30, tokens=10)
    view.follows[3] = 41
    assert [view.first_of(step) for step in (2, 3, 4, 5, 6, 7)] == [30, 41, None, 60, 70, None]


def leaf(first: int, last: int, **fields: object) -> Summary:
    """A summary of the steps first to last of a view of tens, where step n is sequence n + 1."""
    spans = {"span_start": 10 * first, "span_end": 10 * last + 10}
    sequences = {"first_sequence": first + 1, "last_sequence": last + 1}
    return summary(first, last, **{**spans, **sequences, **fields})


def tens(steps: int, *summaries: Summary) -> View:
    """A view of so many steps of 10 tokens; step n is the message n + 1."""
    view = view_of(*[10] * steps)
    for step, atom in enumerate(view.atoms):
        atom.first = step + 1
    view.summaries = list(summaries)
    return view


def test_a_summary_says_what_it_covers_and_moves_with_what_is_before_it() -> None:
    one = leaf(2, 4, created=7)
    assert (one.covered_tokens, one.stretch) == (30, (3, 5, 7, 0))
    moved = one.shifted(-6)
    assert (moved.span_start, moved.span_end, moved.covered_tokens) == (14, 44, 30)


def test_what_no_summary_covers_comes_in_ranges_with_its_tokens() -> None:
    view = tens(10, leaf(1, 2), leaf(3, 4), leaf(7, 7))
    assert view.uncovered() == [(0, 0, 10), (5, 6, 20), (8, 9, 20)]
    assert view.uncovered(10) == [(5, 6, 20), (8, 9, 20)]
    assert view.uncovered(51) == [(6, 6, 10), (8, 9, 20)]
    assert view.uncovered(60) == [(6, 6, 10), (8, 9, 20)]
    assert view.uncovered(61) == [(8, 9, 20)]
    assert view.uncovered(95) == []
    assert tens(3).uncovered() == [(0, 2, 30)]
    assert tens(3, leaf(0, 2)).uncovered() == []
    assert tens(0).uncovered() == []


def test_before_the_window_only_what_is_held_is_named() -> None:
    view = tens(10, leaf(2, 3))
    view.anchors = {0: view.atoms[0], 4: view.atoms[4], 5: view.atoms[5]}
    view.atoms, view.base = view.atoms[6:], 6
    assert view.uncovered() == [(0, 1, 20), (4, 9, 60)]
    assert view.uncovered(1) == [(4, 9, 60)]
    assert view.uncovered(41) == [(5, 9, 50)]
    assert view.uncovered(51) == [(6, 9, 40)]
    del view.anchors[5]
    assert view.uncovered(41) == [(6, 9, 40)]


def test_a_view_costs_its_summaries_what_they_leave_and_what_must_stay() -> None:
    assert tens(5).view_tokens() == 50
    assert tens(5).view_tokens(20) == 30
    view = tens(10, leaf(0, 3), leaf(6, 7))
    assert view.view_tokens() == 5 + 5 + 40
    assert view.view_tokens(50) == 5 + 5 + 30
    view.pinned = [1, 9]
    assert view.must_stay() == [1, 9]
    assert view.view_tokens() == 60  # the pinned step that is covered stands besides
    assert view.view_tokens(95) == 5 + 5 + 20
    assert [view.aside(step, 45) for step in (1, 4, 5, 6, 9)] == [True, True, False, True, False]


def test_what_must_stay_comes_once_and_in_order() -> None:
    view = tens(6)
    assert view.must_stay() == []
    view.fold = replace(view.fold, leading=2)
    assert view.must_stay() == [0, 1]
    view.fold = replace(view.fold, leading=2, user_step=1)
    assert view.must_stay() == [0, 1]  # it leads as well
    view.fold = replace(view.fold, leading=2, user_step=2)
    assert view.must_stay() == [0, 1, 2]
    view.pinned = [1, 4]
    assert view.must_stay() == [0, 1, 2, 4]
    view.fold = replace(view.fold, leading=0, user_step=0)
    assert view.must_stay() == [0, 1, 4]
    view.fold = replace(view.fold, user_step=-1)
    assert view.must_stay() == [1, 4]


def test_what_stands_before_the_newest_history() -> None:
    view = tens(10)
    view.fold = replace(view.fold, leading=2)
    assert view.fixed_tokens() == 20
    view.summaries = [leaf(2, 3), leaf(5, 6)]
    assert view.fixed_tokens() == 10 + 20 + 10
    view.summaries = [leaf(0, 1)]
    assert view.fixed_tokens() == 5 + 20  # what leads is shown besides


def test_a_summary_takes_the_place_of_what_it_covers() -> None:
    view = tens(10, leaf(0, 1), leaf(2, 3), leaf(5, 6))
    over = leaf(2, 6, id="over", depth=1, before=CommitSnapshot(view=99, total=100))
    view.place(over)
    assert [one.id for one in view.summaries] == ["s0", "over"]
    assert view.stretches == [over.stretch]
    assert [one.view for one in view.evictions.front] == [99]
    later = leaf(8, 8, created=9)
    view.place(later)
    assert [one.id for one in view.summaries] == ["s0", "over", "s8"]
    assert view.stretches == [over.stretch, (9, 9, 9, 0)]
    before = leaf(7, 7, id="between")
    view.place(before)
    assert [one.id for one in view.summaries] == ["s0", "over", "between", "s8"]


def test_what_was_covered_when_a_message_came() -> None:
    view = tens(10)
    view.stretches = [(3, 5, 7, 0), (8, 9, 4, 6)]
    assert [view.had_covered(first, 8) for first in (2, 3, 5, 6)] == [False, True, True, False]
    assert [view.had_covered(4, created) for created in (6, 7, 8)] == [False, False, True]
    # Undone at 6: what came at 5 came while it was there.
    assert [view.had_covered(8, created) for created in (4, 5, 6, 7)] == [False, True, False, False]


def test_of_those_made_again_the_newest_stands_and_below_what_lists_the_first() -> None:
    first = summary(1, 2, id="a")
    again = summary(1, 2, id="b", remakes="a")
    newest = summary(1, 2, id="c", remakes="b")
    other = summary(3, 4, id="d")
    assert [one.id for one in top_level([first, again, newest, other])] == ["c", "d"]
    over = summary(1, 4, id="over", depth=1, children=("a", "d"))
    assert [one.id for one in top_level([first, again, newest, other, over])] == ["over"]
    assert [one.id for one in top_level([over, newest])] == ["over", "c"]
    assert {id: one.id for id, one in standing([first, again, newest, other]).items()} == {
        "a": "c",
        "b": "c",
        "c": "c",
        "d": "d",
    }
    assert standing([]) == {}
