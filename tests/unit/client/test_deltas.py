"""Applying deltas gives the list that the full reply would have been."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextengine.deltas import DeltaMismatch, Held, Holder, extend
from contextengine.types import AssembleResponse, CacheReport, ContextProjection, Item


def items(names: str) -> list[Item]:
    return [Item(id=name, content_hash=name.encode()) for name in names]


def reply(whole: str, reused: int = 0, total: int | None = None) -> AssembleResponse:
    return AssembleResponse(
        items=items(whole[reused:]),
        cache=CacheReport(
            reused_count=reused,
            total_count=len(whole) if total is None else total,
            delta=reused > 0,
        ),
        context_hash=f"hash of {whole}".encode(),
        context_projection=ContextProjection(epoch=f"epoch of {whole[:1]}"),
    )


def ids(held: Held) -> str:
    return "".join(item.id for item in held.items)


@given(st.lists(st.text(alphabet="abc", max_size=6), max_size=8), st.data())
def test_any_chain_of_replies_gives_the_whole_list(lists: list[str], data: st.DataObject) -> None:
    held = Held()
    for whole in lists:
        common = next(
            (i for i, pair in enumerate(zip(ids(held), whole, strict=False)) if pair[0] != pair[1]),
            min(len(held.items), len(whole)),
        )
        held = extend(held, reply(whole, data.draw(st.integers(0, common))))
        assert ids(held) == whole


@pytest.mark.parametrize(
    ("before", "reused", "after"), [("abcd", 2, "ab"), ("abcd", 0, ""), ("abcd", 1, "ax")]
)
def test_a_list_may_shrink(before: str, reused: int, after: str) -> None:
    assert ids(extend(Held(tuple(items(before))), reply(after, reused))) == after


@pytest.mark.parametrize(
    ("held", "response"), [("a", reply("abc", 2)), ("abc", reply("abcd", 3, total=5))]
)
def test_counts_that_do_not_add_up_are_refused(held: str, response: AssembleResponse) -> None:
    with pytest.raises(DeltaMismatch):
        extend(Held(tuple(items(held))), response)


def test_a_handle_names_what_it_holds_and_forgets_what_does_not_fit() -> None:
    holder = Holder()
    held, known = holder.begin(delta=True)
    assert known == {}
    assert [item.id for item in holder.take(held, reply("ab")).items] == ["a", "b"]
    held, known = holder.begin(delta=True)
    assert known == {"known_context_hash": b"hash of ab", "known_epoch": "epoch of a"}
    with pytest.raises(DeltaMismatch):
        holder.take(held, reply("abcd", 3))
    assert holder.begin(delta=True) == (Held(), {})


def test_without_delta_nothing_is_named_and_the_reply_is_still_held() -> None:
    holder = Holder()
    holder.take(holder.begin(delta=True)[0], reply("ab"))
    held, known = holder.begin(delta=False)
    assert known == {}
    holder.take(held, reply("xy"))
    assert holder.begin(delta=True)[1]["known_context_hash"] == b"hash of xy"


def test_overlapping_calls_extend_what_each_of_them_named() -> None:
    holder = Holder()
    holder.take(holder.begin(delta=True)[0], reply("ab"))
    first, _ = holder.begin(delta=True)
    second, _ = holder.begin(delta=True)
    assert len(holder.take(second, reply("abcd", 2)).items) == 4
    assert len(holder.take(first, reply("abc", 2)).items) == 3


def test_what_was_handed_out_does_not_change_later() -> None:
    holder = Holder()
    early = holder.take(holder.begin(delta=True)[0], reply("ab"))
    holder.take(holder.begin(delta=True)[0], reply("abc", 2))
    assert len(early.items) == 2
    assert early.messages == [item.message for item in early.items]
