"""Too little room is shared so that small messages stand whole and large ones are cut alike."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from contextengine_server.context.budget import LEAST_CHARS, cut_to, level
from contextengine_server.context.message import Form, Slot


@pytest.mark.parametrize(
    ("sizes", "room", "share"),
    [
        ([], 10, 0),
        ([5], 5, 5),
        ([5], 4, 4),
        ([5], 9, 5),
        ([3, 9], 7, 4),  # the small one takes just its share, the large one what is left
        ([9, 3], 7, 4),
        ([2, 9, 9], 12, 5),
        ([9, 9, 9], 12, 4),
        ([1, 2, 30], 33, 30),
        ([1, 2, 30], 32, 29),
        ([4, 4], 0, 0),
        ([4, 4], -3, 0),
        ([4, 4], 1, 0),
    ],
)
def test_the_most_that_each_may_take(sizes: list[int], room: int, share: int) -> None:
    assert level(sizes, room) == share


Show = Callable[[int], Slot | None]


def costing(tokens: int) -> Slot:
    return Slot(1, Form.HEAD_TAIL, tokens, b"", b"")


def by_char(asked: list[int], *, most: int = 10**9, fixed: int = 0) -> Show:
    """Shows a message that costs a token a character, and `fixed` besides; None beyond `most`."""

    def show(chars: int) -> Slot | None:
        asked.append(chars)
        return costing(chars + fixed) if chars <= most else None

    return show


def test_a_message_is_shown_as_it_fits_at_once() -> None:
    asked: list[int] = []
    slot, chars = cut_to(by_char(asked), 300, 300)
    assert slot is not None
    assert (slot.tokens, chars, asked) == (300, 300, [300])


def test_it_is_cut_in_proportion_until_it_fits() -> None:
    asked: list[int] = []
    slot, chars = cut_to(by_char(asked, fixed=50), 1_000, 300)
    assert slot is not None
    assert asked[:2] == [1_000, 1_000 * 300 // 1_050]
    assert (slot.tokens <= 300, chars) == (True, asked[-1])
    assert asked == sorted(set(asked), reverse=True)


def test_one_whose_texts_have_no_more_is_asked_for_half() -> None:
    asked: list[int] = []
    slot, chars = cut_to(by_char(asked, most=100), 400, 300)
    assert (asked, chars) == ([400, 200, 100], 100)
    assert slot is not None
    assert slot.tokens == 100


def test_less_than_says_anything_is_not_shown() -> None:
    asked: list[int] = []
    assert cut_to(by_char(asked), LEAST_CHARS, LEAST_CHARS)[1] == LEAST_CHARS
    assert cut_to(by_char(asked), LEAST_CHARS - 1, 1_000) == (None, 0)
    assert cut_to(by_char(asked, fixed=500), 1_000, 300) == (None, 0)
    assert asked.count(LEAST_CHARS - 1) == 0


def test_it_is_not_tried_for_ever() -> None:
    asked: list[int] = []

    def stubborn(chars: int) -> Slot | None:
        asked.append(chars)
        return costing(301)

    assert cut_to(stubborn, 1_000, 300) == (None, 0)
    assert len(asked) == 8
    # Each try asks for less than the one before, though the shares come to the same.
    assert asked == sorted(set(asked), reverse=True)
