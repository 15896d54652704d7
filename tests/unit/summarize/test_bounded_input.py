"""What a model is given of a long stretch: never more than there is room for, of all of it, and
nothing that a cut could have parted from its sign."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.summarize import SourceMessage
from contextengine_server.summarize.models.bounded_input import (
    CALL_CHARS,
    INPUT_CHARS,
    TEXT_CHARS,
    TEXT_HEAD,
    TEXT_TAIL,
    bounded,
)
from contextengine_server.summarize.request import SourceCall, SourceResult

SECRET = "sk-live-" + "a1b2c3d4" * 5
SIZES = st.lists(st.sampled_from([0, 5, 300, 5_000, 40_000]), max_size=60)


def said(number: int, chars: int, role: str = "user") -> SourceMessage:
    return SourceMessage(role, "x" * chars, number)


def test_what_has_room_is_given_whole() -> None:
    messages = [
        said(1, 4_000),
        SourceMessage(
            "assistant",
            "",
            2,
            calls=(SourceCall("c", "read", '{"path": "a.py"}'),),
            results=(SourceResult("c", "read", "def f(): ...", False),),
        ),
    ]
    given_ = bounded(messages)
    assert [one.sequence for one in given_] == [1, 2]
    assert given_[0].text == messages[0].text
    assert given_[1].text == 'read\n{"path": "a.py"}\ndef f(): ...'


@given(SIZES, st.integers(0, 80_000))
def test_it_is_bounded_and_says_what_it_leaves_out(sizes: list[int], room: int) -> None:
    messages = [said(number, size) for number, size in enumerate(sizes, 1)]
    given_ = bounded(messages, room)
    shown = [one for one in given_ if one.role != "omitted"]
    assert sum(min(sizes[one.sequence - 1], TEXT_CHARS) for one in shown) <= room
    assert [one.sequence for one in given_] == sorted({one.sequence for one in given_})
    numbers = {one.sequence for one in shown}
    told = sum(int(one.text[1:].split()[0]) for one in given_ if one.role == "omitted")
    assert len(numbers) + told == len(messages)
    assert not any(a.role == b.role == "omitted" for a, b in pairwise(given_))


def test_of_a_long_stretch_some_is_given_of_every_part_and_the_newest() -> None:
    messages = [said(number, 3_000) for number in range(1, 2_001)]
    given_ = [one.sequence for one in bounded(messages) if one.role != "omitted"]
    assert len(given_) == INPUT_CHARS // 3_000
    assert given_[0] == 1
    assert given_[-1] == 2_000
    for part in range(8):
        assert any(part * 250 <= number <= (part + 1) * 250 for number in given_)


def test_the_handoff_before_is_always_given() -> None:
    messages = [
        said(1, 20_000, "summary"),
        *(said(number, 3_000) for number in range(2, 200)),
    ]
    given_ = bounded(messages, 60_000)
    assert given_[0].text == messages[0].text
    assert sum(len(one.text) for one in given_ if one.role == "user") <= 40_000


def test_long_texts_are_given_head_and_tail() -> None:
    text = "head " * 2_000 + "tail " * 2_000
    arguments = '{"text": "' + "y" * 5_000 + '"}'
    message = SourceMessage("assistant", text, 1, calls=(SourceCall("c", "write", arguments),))
    given_ = bounded([message])[0].text
    assert given_.startswith(text[:TEXT_HEAD])
    assert text[-TEXT_TAIL:] in given_
    assert given_.count("characters are left out here") == 2
    assert len(given_) < TEXT_CHARS + CALL_CHARS


@pytest.mark.parametrize("parted", range(1, len(SECRET), 4))
def test_no_cut_parts_a_secret_from_its_sign(parted: int) -> None:
    """In the head and in the tail, wherever the cut comes."""
    head = "z " * ((TEXT_HEAD - parted) // 2)
    tail = "z " * ((TEXT_TAIL - parted) // 2)
    text = f"{head}{SECRET} {'z ' * 5_000}{SECRET} {tail}"
    given_ = bounded([SourceMessage("tool", text, 1)])[0].text
    assert "characters are left out here" in given_
    assert "a1b2" not in given_


def test_nor_do_many_of_them() -> None:
    text = f"{SECRET} " * 400
    assert "a1b2" not in bounded([SourceMessage("tool", text, 1)])[0].text
