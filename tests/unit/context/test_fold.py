"""Hard cases of the fold, one by one (docs/semantics.md#calls-and-results): each names who speaks,
what is called, what is answered, and what is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.atom import Atom
from contextengine_server.context.carried import FoldState, Reign, shifted
from contextengine_server.context.fold import EntryFacts, NeedsHistory, apply, extend, extended
from contextengine_server.context.message import Form
from contextengine_server.context.view import View
from contextengine_server.testing.engine.random_sessions import call, reasoning, result, text
from contextengine_server.testing.engine.trial import trial_of
from contextengine_server.testing.engine.views import SHAPER, empty, entries_of, items
from contextengine_server.testing.oracle.pairs import CoveredRange, ViewRow

ROLES = {
    "s": pb.ROLE_SYSTEM,
    "u": pb.ROLE_USER,
    "a": pb.ROLE_ASSISTANT,
    "t": pb.ROLE_TOOL,
    "c": pb.ROLE_CUSTOM,
}


def rows(script: str) -> list[ViewRow]:
    """`u`, `a`, `t`, `s` speak; `+x` calls x, `-x` answers x, `~` reasons, `_` says nothing, `!`
    pins, `^` excludes; a letter alone is text. `c` is an entry of the harness's own."""
    made = []
    for number, word in enumerate(script.split(), 1):
        message = pb.Message(id=f"m{number}", role=ROLES[word[0]])
        if word[0] == "c":
            message.custom_role = "note"
        marks = word[1:]
        if "!" in marks:
            message.labels["pinned"] = "true"
            marks = marks.replace("!", "")
        if "^" in marks:
            message.labels["excluded"] = "yes"
            marks = marks.replace("^", "")
        found = (
            [marks[at : at + 2] for at in range(0, len(marks), 2) if marks[at] in "+-"]
            if marks
            else []
        )
        message.parts.extend(
            call(mark[1]) if mark[0] == "+" else result(mark[1], 10, f"r{number}") for mark in found
        )
        if "~" in marks:
            message.parts.insert(0, reasoning(0, 10, f"w{number}"))
        if not marks or marks.endswith("."):
            message.parts.append(text(10, f"w{number}"))
        made.append(ViewRow(number, message, 2 * number))
    return made


def view_of(script: str, *stretches: CoveredRange) -> View:
    view = empty(stretches)
    for entry in entries_of(rows(script)):
        apply(view, extend(view, [entry], SHAPER))
    return view


def shown(atom: Atom) -> str:
    """What an atom shows: sequences, `no x` for a result that was made up, `n:` for a note, and `:`
    for some parts."""
    out = []
    for slot, item in zip(atom.slots, items(atom.slots), strict=True):
        if slot.synthetic:
            out.append(f"no:{item.message.parts[0].tool_result.call_id}")
        elif slot.form == Form.NOTE:
            out.append(f"note:{slot.sequence}")
        elif slot.form == Form.SOME_PARTS:
            out.append(f"{slot.sequence}[{len(item.message.parts)}]")
        else:
            out.append(str(slot.sequence))
    return " ".join(out)


CASES = [
    ("every other message is an atom", "u a u", "1 | 2 | 3"),
    ("a call stands with its result", "u a+x t-x u", "1 | 2 3 | 4"),
    ("several results in one message", "a+x+y t-x-y u", "1 2 | 3"),
    ("results in any order", "a+x+y t-y t-x u", "1 2 3 | 4"),
    ("ids that are used again", "a+x t-x a+x t-x", "1 2 | 3 4"),
    ("one id twice in a message", "a+x+x t-x t-x", "1 2 3"),
    ("an abandoned call gets a result at its end", "a+x+y t-y u", "1 2 no:x | 3"),
    ("whatever follows abandons", "a+x s a", "1 no:x | 2 | 3"),
    ("an empty message abandons as well", "a+x u_ t-x", "1 3 | 2"),
    ("a late result takes its place", "a+x+y u t-y t-x", "1 4 3 | 2"),
    ("the newest abandoned call is answered first", "a+x u a+x u t-x", "1 no:x | 2 | 3 5 | 4"),
    ("and then the one before", "a+x u a+x u t-x t-x", "1 6 | 2 | 3 5 | 4"),
    ("a second result is not shown", "a+x t-x t-x u", "1 2 | 4"),
    ("a result without a call is not shown", "u t-x a", "1 | 3"),
    ("an orphan does not part a call from its result", "a+x t-z t-x", "1 3"),
    ("a late result does not part a call from its result", "a+z u a+x t-z t-x", "1 4 | 2 | 3 5"),
    ("a user's message that carries results and speaks", "a+x+y u-x. u", "1 2 no:y | 3"),
    ("a user's message that carries results alone", "a+x+y u-x u-y u", "1 2 3 | 4"),
    ("a user's message with an orphan shows the rest", "u a u-x.", "1 | 2 | 3[1]"),
    (
        "a user's message with a late result is shown in two places",
        "a+x u u-x.",
        "1 3[1] | 2 | 3[1]",
    ),
    ("a message with an orphan among results shows the rest", "a+x t-x-z u", "1 2[1] | 3"),
    ("reasoning stands with what it produced", "u a~ a+x t-x u", "1 | 2 3 4 | 5"),
    ("reasoning upon reasoning as well", "a~ a~ a u", "1 2 3 | 4"),
    ("reasoning that produced nothing stands alone", "a~ u a", "1 | 2 | 3"),
    ("reasoning with words stands alone", "a~. a", "1 | 2"),
    ("a call that its own message answers", "a+x-x. u", "1 | 2"),
    ("a message that answers and calls", "a+x a-x+y t-y", "1 2[1] | 2[1] 3"),
    ("a call of a user's message", "u+x a", "1 no:x | 2"),
    ("an orphan that comes first keeps its place in the account", "t-x s u", " | 2 | 3"),
    ("what the harness excludes is not shown", "u c^ a c", "1 | 3 | 4"),
    ("nor does it part a call from its result", "a+x c^ t-x", "1 3"),
    ("nor reasoning from what it produced", "a~ c^ a+x t-x", "1 3 4"),
    ("what is excluded opens a session without leading it", "c^ s u", " | 2 | 3"),
    ("to exclude outweighs to pin", "u c^! a", "1 | 3"),
    ("what was said cannot be excluded", "u^ a^", "1 | 2"),
]


@pytest.mark.parametrize(("how", "script", "expected"), CASES, ids=[how for how, _, _ in CASES])
def test_what_is_shown(how: str, script: str, expected: str) -> None:
    assert " | ".join(map(shown, view_of(script).atoms)) == expected


NOTES = [
    ("a late result of a summarized call is a note", "a+x u t-x u", "1 no:x | 2 | note:3 | 4"),
    ("one that was there before the summary took its place", "a+x t-x u u u", "1 2 | 3 | 4 | 5"),
    (
        "a note never parts a call from its result: it stands before",
        "a+x u a+y t-x t-y",
        "1 no:x | 2 | note:4 3 5",
    ),
    ("nor reasoning from what it produced", "a+x u a~ t-x a", "1 no:x | 2 | note:4 3 5"),
    (
        "notes before the same call keep their order",
        "a+x+z u a+y t-x t-z t-y",
        "1 no:x no:z | 2 | note:4 note:5 3 6",
    ),
    ("a note follows what else its message says", "a+x u u-x. a", "1 no:x | 2 | 3[1] note:3 | 4"),
    ("a second late result is no second note", "a+x u t-x t-x u", "1 no:x | 2 | note:3 | 5"),
]


@pytest.mark.parametrize(("how", "script", "expected"), NOTES, ids=[how for how, _, _ in NOTES])
def test_what_is_shown_when_the_first_message_is_summarized(
    how: str, script: str, expected: str
) -> None:
    view = view_of(script, CoveredRange(1, 1, created=5))
    assert " | ".join(map(shown, view.atoms)) == expected
    firsts = [atom.first for atom in view.atoms]
    assert firsts == sorted(set(firsts))
    assert all(view.find(first) is atom for first, atom in zip(firsts, view.atoms, strict=True))


def test_a_result_that_is_made_up_says_what_it_is() -> None:
    item = items(view_of("a+x u").atoms[0].slots)[1]
    answer = item.message.parts[0].tool_result
    assert item.message.role == pb.ROLE_TOOL
    assert (answer.call_id, answer.name, answer.is_error) == ("x", "look", True)
    assert answer.parts[0].text.text == "No result was recorded for this tool call."
    assert item.origin.synthetic == "no result was recorded"
    assert item.message.id.startswith("ce:")


def test_a_note_is_labelled_data_of_the_users_role() -> None:
    item = items(view_of("a+x u t-x", CoveredRange(1, 1, created=5)).atoms[2].slots)[0]
    assert (item.message.role, item.form, item.origin.sequence) == (pb.ROLE_USER, pb.FORM_NOTE, 3)
    label, opening, body, closing = item.message.parts[0].text.text.split("\n")
    assert label == "[Late result of tool call x (look), which is part of a summary above]"
    assert body == "[10] r3"
    fence = opening.removeprefix("<<<untrusted ")
    assert closing == f"{fence} untrusted>>>"


@pytest.mark.parametrize(
    ("script", "pending"),
    [
        ("a+x", True),
        ("a+x+y t-x", True),
        ("a+x t-x", False),
        ("a+x t-z", True),
        ("a+x u", False),
        ("u", False),
    ],
)
def test_what_is_pending(script: str, pending: bool) -> None:
    assert view_of(script).atoms[-1].pending == pending


@pytest.mark.parametrize(
    ("script", "leading", "user", "pinned"),
    [
        ("s s u", 2, 2, []),
        ("u s", 0, 0, []),
        ("s a+x u-x. a", 1, 1, []),
        ("s a+x u-x a", 1, -1, []),
        ("t-x s u", 2, 2, []),
        ("u! a t!", 0, 0, [0, 2]),
        ("a+x t-x!", 0, -1, [0]),
        ("a+x u t-x!", 0, 1, [0]),
        ("", 0, -1, []),
    ],
)
def test_what_must_be_verbatim(script: str, leading: int, user: int, pinned: list[int]) -> None:
    view = view_of(script)
    assert (view.leading, view.user_step, view.pinned) == (leading, user, pinned)
    assert view.intent() == sorted({*range(leading), *pinned, *([user] if user >= 0 else [])})


def test_a_late_result_moves_what_stands_behind_and_marks_the_epoch() -> None:
    view = view_of("a+x u a")
    change = extend(view, entries_of([ViewRow(4, rows("t-x")[0].message, 8)]), SHAPER)
    [(first, delta)] = change.shifts
    assert first == 1
    assert delta == change.total - view.total
    assert change.late
    before = [atom.start for atom in view.atoms]
    apply(view, change)
    assert [atom.start for atom in view.atoms] == [
        before[0],
        *(start + delta for start in before[1:]),
    ]
    assert view.late_mark == 4


def test_a_view_with_an_extension_leaves_the_original_as_it_is() -> None:
    view = view_of("a+x u a u")
    starts = [atom.start for atom in view.atoms]
    change = extend(view, entries_of([ViewRow(5, rows("t-x")[0].message, 10)]), SHAPER)
    more = extended(view, change)
    assert [shown(atom) for atom in more.atoms] == ["1 5", "2", "3", "4"]
    assert [shown(atom) for atom in view.atoms] == ["1 no:x", "2", "3", "4"]
    assert [atom.start for atom in view.atoms] == starts
    [(_, delta)] = change.shifts
    assert [atom.start for atom in more.atoms] == [0, *(start + delta for start in starts[1:])]
    assert (more.total, more.message_count) == (view.total + delta, 5)
    assert view.message_count == 4


def test_what_an_older_step_than_those_in_memory_needs_is_asked_for() -> None:
    """A result for a call before the window: nothing of what is held before it is changed."""
    whole = view_of("a+x u a u")
    window = replace(
        whole, base=2, atoms=whole.atoms[2:], anchors={step: whole.atoms[step] for step in (0, 1)}
    )
    with pytest.raises(NeedsHistory) as asked:
        extend(window, entries_of([ViewRow(5, rows("t-x")[0].message, 10)]), SHAPER)
    assert asked.value.args == (1,)


def test_a_late_result_for_a_step_of_the_window_takes_its_place() -> None:
    whole = view_of("u a u a+x u a u")
    window = replace(
        whole, base=2, atoms=whole.atoms[2:], anchors={step: whole.atoms[step] for step in (0, 1)}
    )
    change = extend(window, entries_of([ViewRow(8, rows("t-x")[0].message, 16)]), SHAPER)
    apply(window, change)
    assert [shown(atom) for atom in window.atoms] == ["3", "4 8", "5", "6", "7"]
    assert [shown(window.anchors[step]) for step in (0, 1)] == ["1", "2"]


def test_only_reigns_that_ended_behind_a_late_result_move() -> None:
    before, at, behind = Reign(0, 5, 10), Reign(2, 5, 20), Reign(4, 5, 30)
    assert shifted((before, at, behind), 20, 7) == (before, at, Reign(4, 5, 37))


def test_a_late_result_moves_the_summaries_behind_it_and_no_other() -> None:
    one = trial_of(rows("u a a+x u a u a"))
    one.compact(0, 1, "what was said")
    one.compact(3, 4, "what was said then")
    before, behind = one.view.summaries
    [late] = entries_of([ViewRow(8, rows("t-x")[0].message, 16)])
    change = extend(one.view, [late], SHAPER)
    delta = change.total - one.view.total
    apply(one.view, change)
    spans = [(summary.span_start, summary.span_end) for summary in one.view.summaries]
    assert delta != 0
    assert spans == [
        (before.span_start, before.span_end),
        (behind.span_start + delta, behind.span_end + delta),
    ]


def test_a_result_behind_a_message_that_spoke_is_late() -> None:
    view = view_of("a+x+y u-x. t-y")
    assert shown(view.atoms[0]) == "1 2 3"
    assert view.late_mark == 3


def test_what_a_late_result_would_do_leaves_the_view_as_it_is() -> None:
    view = view_of("a+x u a")
    starts = [atom.start for atom in view.atoms]
    change = extend(view, entries_of([ViewRow(4, rows("t-x")[0].message, 8)]), SHAPER)
    ahead = extended(view, change)
    assert [atom.start for atom in view.atoms] == starts
    assert [atom.start for atom in ahead.atoms] != starts
    assert (view.late_mark, ahead.late_mark) == (0, 4)


def test_a_message_with_late_results_for_several_atoms_is_of_the_newest() -> None:
    for results in ("t-x-y", "t-y-x"):
        view = view_of("a+x u a+y u")
        change = extend(view, entries_of([ViewRow(5, rows(results)[0].message, 10)]), SHAPER)
        assert change.facts[5] == EntryFacts(5, step=2, start=None, late_of=3)


def test_history_that_is_not_in_memory_is_asked_for() -> None:
    whole = view_of("a+x u a a")
    window = View(
        whole.scope, base=2, atoms=whole.atoms[2:], total=whole.total, last_sequence=4,
        fold=FoldState(user_step=1, abandoned=dict(whole.abandoned)),
    )  # fmt: skip
    late = entries_of([ViewRow(5, rows("t-x")[0].message, 10)])
    with pytest.raises(NeedsHistory) as missing:
        extend(window, late, SHAPER)
    assert missing.value.sequence == 1


@pytest.mark.parametrize("script", ["a+x u a t-x", "a+x+y u t-x t-y", "a+x u a+x u t-x t-x"])
def test_a_call_that_is_answered_late_stands_open_no_more(script: str) -> None:
    view = view_of(script)
    assert view.atoms[0].calls
    assert [atom.open for atom in view.atoms] == [[]] * view.steps
    assert view.abandoned == {}


def test_a_call_that_is_not_answered_stands_open() -> None:
    view = view_of("a+x+y u t-y")
    assert [call.id for call in view.atoms[0].open] == ["x"]
    assert list(view.abandoned) == ["x"]
