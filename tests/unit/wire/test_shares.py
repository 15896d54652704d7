"""A message over its cap, of which each part has its share (docs/semantics.md#large-steps)."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.context.budget import cut_to
from contextengine_server.testing.engine.views import entry_of
from contextengine_server.testing.oracle.bounded import MARKER, dishonest
from contextengine_server.testing.oracle.pairs import ViewRow
from contextengine_server.tokens import TokenCounter
from contextengine_server.wire.bounded import cut_texts
from contextengine_server.wire.slots import WireShaper

SEQUENCE = 7
COUNT = TokenCounter().count_text
SHAPER = WireShaper(COUNT)


def carrier(sizes: list[int], said: str = "") -> pb.Message:
    """Results of so many characters, and what is said behind them, as Anthropic's API wants it."""
    message = pb.Message(role=pb.ROLE_USER)
    for at, size in enumerate(sizes):
        part = message.parts.add(tool_result=pb.ToolResultPart(call_id=f"c{at}"))
        text = part.tool_result.parts.add().text
        text.text = (f"{at}: a line of a log\n" * (size // 19 + 1))[:size]
    if said:
        message.parts.add().text.text = said
    return message


def cut(message: pb.Message, chars: int) -> pb.Message:
    shown = pb.Message()
    shown.CopyFrom(message)
    cut_texts(shown, chars, SEQUENCE)
    return shown


def lengths(message: pb.Message) -> list[int]:
    """The characters of each part, without markers."""
    texts = [
        part.text.text if part.HasField("text") else part.tool_result.parts[0].text.text
        for part in message.parts
    ]
    return [len(MARKER.sub("", text)) for text in texts]


def test_small_results_are_whole_and_large_ones_have_the_same() -> None:
    message = carrier([22_000, 343, 9_000, 21_900])
    assert lengths(cut(message, 9_000)) == [2_885, 343, 2_885, 2_885]


def test_what_a_user_says_beside_results_is_whole() -> None:
    said = "The user sent a new message while you were working:\n" + "stop that " * 100
    shown = cut(carrier([22_000, 343, 21_900], said), 4_000)
    assert shown.parts[-1].text.text == said
    assert lengths(shown)[1] == 343


def test_a_long_request_leaves_results_a_quarter() -> None:
    assert lengths(cut(carrier([22_000], "please " * 2_000), 4_000)) == [1_000, 3_000]
    assert lengths(cut(carrier([500], "please " * 2_000), 4_000)) == [500, 3_500]


def test_of_many_results_that_would_have_next_to_nothing_one_stretch_is_left_out() -> None:
    """Else their markers would be more than what they say."""
    shown = cut(carrier([900] * 40), 2_000)
    assert sum(lengths(shown)) == 2_000
    texts = [part.tool_result.parts[0].text.text for part in shown.parts]
    assert len(MARKER.findall("".join(texts))) == 1


@pytest.mark.parametrize("results", [1, 5, 8, 20, 50])
@pytest.mark.parametrize("text", ["well ", "é漢 ", "x = f(y)\n"])
def test_it_can_be_had_in_any_number_of_tokens(results: int, text: str) -> None:
    """However many share it: a search for the characters ends."""
    message = pb.Message(id="m", role=pb.ROLE_USER)
    for at in range(results):
        part = message.parts.add(tool_result=pb.ToolResultPart(call_id=f"c{at}"))
        part.tool_result.parts.add().text.text = text * (6_000 // len(text))
    entry = entry_of(ViewRow(1, message, 1), COUNT)
    slot, show = SHAPER.whole(entry), partial(SHAPER.head_and_tail, entry)
    for tokens in range(slot.tokens // 8, slot.tokens, slot.tokens // 7):
        shown, _ = cut_to(show, len(slot.frame) * tokens // slot.tokens, tokens)
        assert shown is not None
        assert 0.8 * tokens < shown.tokens <= tokens


@given(
    sizes=st.lists(st.integers(0, 3_000), max_size=8),
    said=st.integers(0, 3_000),
    chars=st.integers(40, 9_000),
)
def test_no_more_is_shown_than_may_be_and_all_of_it_is_true(
    sizes: list[int], said: int, chars: int
) -> None:
    message = carrier(sizes, "as I said " * (said // 10))
    shown = cut(message, chars)
    assert sum(lengths(shown)) <= chars or shown == message
    item = pb.Item(message=shown, origin=pb.Origin(sequence=SEQUENCE))
    assert shown == message or dishonest(item, message) is None
