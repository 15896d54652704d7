"""What the next reply answers (docs/semantics.md#what-the-next-reply-answers)."""

from __future__ import annotations

import pytest

from contextengine_server.context.fold import apply, interpose
from contextengine_server.testing.engine.trial import trial_of
from contextengine_server.testing.engine.views import SHAPER
from tests.unit.context.test_fold import rows


@pytest.mark.parametrize(
    ("script", "waits"),
    [
        ("", 0),
        ("u", 0),
        ("s u", 0),  # what leads is no request
        ("u u", 1),
        ("u a", 0),
        ("u a u", 0),
        ("u a u s", 1),
        ("u a+x", 0),
        ("u a+x t-x", 0),
        ("u a+x t-x u", 1),
        ("u a+x t-x s u c", 3),
        ("u a+x t-x u u u u", 4),
        ("u a+x t-x u u u u u", -1),  # nobody is about to answer
        ("u a+x t-x u u u u u u", -1),
        ("u a+x t-x u u u u u a", 0),
        ("u a+x t-x u u u u u a u", 0),
        ("u a+x u", 1),
        ("u a+x u t-x", 1),  # late: it takes its place
        ("u a+x t-x u t-y", 1),  # not shown
        ("u a~ a. u", 0),
        ("u a~ a+x t-x u", 1),
    ],
)
def test_what_the_next_reply_answers(script: str, waits: int) -> None:
    """The newest step, and these before it."""
    view = trial_of(rows(script)).view
    assert view.fold.waiting.steps == waits
    before = view.atoms[len(view.atoms) - 1 - max(0, waits) : -1]
    assert view.fold.waiting.tokens == sum(atom.tokens for atom in before)
    assert view.unanswered == view.steps - 1 - len(before)
    assert set(view.must_stay()) == {*view.intent(), *(atom.step for atom in before)}
    assert view.waiting_alone().must_stay() == view.intent()


def test_an_item_of_ours_follows_what_is_not_answered_like_a_notice() -> None:
    view = trial_of(rows("u a+x t-x")).view
    apply(view, interpose(view, view.atoms[0].slots[0], 9, SHAPER))
    assert (view.steps, view.unanswered) == (3, 1)


def test_what_a_summary_covers_need_not_stay() -> None:
    one = trial_of(rows("u a u a+x t-x u u"))
    one.compact(0, 3, "told")
    assert (one.view.unanswered, one.view.must_stay()) == (3, [4, 5])


def test_a_request_is_counted_with_what_it_followed() -> None:
    """What the newest step took of every room, and the steps that were shown with it."""
    view = trial_of(rows("u a u a+x t-x s u")).view
    tokens = [atom.tokens for atom in view.atoms]
    newest = view.fold.peaks[-1]
    assert (newest.step, newest.asked) == (tokens[3] + tokens[4], tokens[5])
    assert (newest.at, newest.user_step) == (3, 5)
