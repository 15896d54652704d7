"""Many messages as calls of a size that servers take."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from contextengine import Message, batches, user
from contextengine.batching import LARGEST, MOST, MOST_BYTES
from contextengine.types import Native


@given(st.lists(st.sampled_from([1, 1_000, MOST_BYTES // 3, MOST_BYTES - 100, MOST_BYTES + 1])))
def test_every_message_is_in_one_batch_in_order_and_no_batch_is_large(sizes: list[int]) -> None:
    messages = [user("x" * size, id=str(at)) for at, size in enumerate(sizes)]
    made = [*batches(messages)]
    assert [one for batch in made for one in batch] == messages
    assert all(len(batch) == 1 or _size(batch) <= MOST_BYTES for batch in made)
    # None is smaller than it need be.
    for batch, following in itertools.pairwise(made):
        assert _size([*batch, following[0]]) > MOST_BYTES


def test_a_batch_has_a_hundred_messages() -> None:
    sizes = [len(batch) for batch in batches([user("x")] * (2 * MOST + 1))]
    assert sizes == [MOST, MOST, 1]


def test_a_message_that_is_too_large_with_its_original_goes_without() -> None:
    large, larger = user("x" * (LARGEST // 3), id="1"), user("x" * (LARGEST // 2), id="2")
    behind_it = user("y", id="3")
    for one in (large, larger):
        one.native.CopyFrom(Native(format="of the host", json=b'"' + b"x" * (LARGEST // 2) + b'"'))
    kept, left, behind = (one for batch in batches([large, larger, behind_it]) for one in batch)
    assert (kept, left, behind) == (large, user("x" * (LARGEST // 2), id="2"), behind_it)
    assert larger.HasField("native")


def _size(batch: list[Message]) -> int:
    return sum(message.ByteSize() for message in batch)
