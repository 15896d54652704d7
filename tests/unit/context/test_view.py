"""What a view answers about itself."""

from __future__ import annotations

from msgspec.structs import replace

from contextengine_server.context.atom import Atom
from contextengine_server.context.message import Form, Slot
from contextengine_server.context.view import Summary, View, top_level
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
