"""Expand over the wire: what lies under a summary comes back, to the byte, within a token cap, in
pages."""

from __future__ import annotations

from typing import Any

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, tool_call, tool_result, user
from tests.integration.harness import House, problem, ref, texts

from .asking import S, covered, deep, pages, said, sequences_of, summaries_of, work, write


async def test_a_leaf_gives_its_messages_back_to_the_byte(house: House) -> None:
    """Calls with their arguments, and results whole: what summaries leave out."""
    messages = [*work(1), *work(2), *work(3)]
    await write(house, S, *messages)
    made = await covered(house, S, 1, 8, "two parts were read")
    found = await house.client.recall.expand(S, summary_ids=[made.id])
    assert sequences_of(found.items) == [*range(1, 9)]
    assert [item.message.parts for item in found.items] == [
        message.parts for message in messages[:8]
    ]
    stored = {row.sequence: row for row in await house.rows(S)}
    for item in found.items:
        assert item.message == stored[item.origin.sequence].message
        assert item.content_hash == stored[item.origin.sequence].content_hash
    assert found.tokens == sum(item.tokens for item in found.items)
    assert (found.truncated, found.next_page_token, found.missing_count) == (False, "", 0)


async def test_levels_are_opened_as_deep_as_asked(house: House) -> None:
    every = await deep(house)
    top, by_id = every[-1], {one.id: one for one in every}

    async def opened(**more: Any) -> tuple[list[str], list[int]]:
        found = await pages(house, summary_ids=[top.id], max_tokens=50_000, **more)
        items = [item for page in found for item in page.items]
        return summaries_of(items), sequences_of(items)

    assert await opened() == (list(top.children), [])
    below = [one for child in top.children for one in (child, *by_id[child].children)]
    assert (await opened(max_depth=2))[0] == below
    leaves, messages = await opened(max_depth=2_000_000_000, include_messages=True)
    assert set(below) <= set(leaves)
    assert messages == [*range(top.first_sequence, top.last_sequence + 1)]
    assert len(leaves) == len(set(leaves)), "what is reached on two ways is shown once"


async def test_summaries_come_fenced_and_with_their_row(house: House) -> None:
    top = (await deep(house))[-1]
    found = await house.client.recall.expand(S, summary_ids=[top.id])
    for item in found.items:
        assert item.message.role == t.ROLE_USER
        assert item.id.startswith("ce:")
        assert item.summary.id == item.origin.summary_id
        header, *_, footer = texts([item])[0].splitlines()
        assert (
            f"depth={item.summary.depth}, descendant_count={item.summary.message_count}" in header
        )
        assert "trust=untrusted" in header
        assert footer.startswith("[Expand for details about:")


@pytest.mark.parametrize("cap", [256, 300, 1_000, 50_000])
async def test_no_page_is_larger_than_the_cap_and_all_of_them_bring_everything(
    house: House, cap: int
) -> None:
    await write(house, S, *(message for number in range(1, 13) for message in work(number)))
    made = await covered(house, S, 1, 40, "ten parts were read")
    found = await pages(house, summary_ids=[made.id], max_tokens=cap)
    for page in found:
        assert page.items
        assert page.tokens == sum(item.tokens for item in page.items) <= cap
        assert page.truncated == bool(page.next_page_token)
    came = sequences_of(item for page in found for item in page.items)
    assert came == sorted(came)
    assert sorted(set(came)) == [*range(1, 41)]
    # Only what is longer than a page comes more than once, in pieces.
    assert len(came) == 40 or cap == 256


async def test_the_cap_is_clamped_and_has_a_default(house: House) -> None:
    await write(house, S, *["word " * 900] * 70)
    for asked, most in ((0, 4_000), (1_000_000, 50_000)):
        page = await house.client.recall.expand(S, sequences=[*range(1, 71)], max_tokens=asked)
        assert most - 1_000 < page.tokens <= most
        assert page.truncated


async def test_a_message_longer_than_the_cap_comes_in_pieces(house: House) -> None:
    text = " ".join(f"word{number}" for number in range(3_000)) + " 终 end"
    await write(house, S, "before", text, "after")
    found = await pages(house, sequences=[1, 2, 3], max_tokens=500)
    assert all(page.tokens <= 500 for page in found)
    items = [item for page in found for item in page.items]
    assert said(items)[0] == "before"
    assert said(items)[-1] == "after"
    pieces = items[1:-1]
    bodies = []
    for item in pieces:
        assert item.form == t.FORM_HEAD_TAIL
        assert item.message.role == t.ROLE_USER
        assert item.origin.sequence == 2
        place, opening, *body, closing = said([item])[0].split("\n")
        assert place.startswith("[characters ")
        assert opening.split()[1] == closing.split()[0]
        bodies.append("\n".join(body))
    assert "".join(bodies) == text
    assert len({item.id for item in pieces}) == len(pieces)


async def test_what_is_missing_is_counted(house: House) -> None:
    await write(house, S, *work(1), *work(2), *work(3))
    made = await covered(house, S, 1, 8, "two parts")
    await write(house, ref("other"), *work(7))
    found = await house.client.recall.expand(
        S, summary_ids=["s99", made.id, "s99", "nothing"], sequences=[12, 13, 2**40, 3, 3]
    )
    assert found.missing_count == 4
    assert sequences_of(found.items) == [1, 2, 3, 4, 5, 6, 7, 8, 3, 12]
    nothing = await house.client.recall.expand(ref("other"), summary_ids=[made.id])
    assert (nothing.missing_count, len(nothing.items)) == (1, 0)


async def test_results_that_came_late_come_with_their_call(house: House) -> None:
    late = assistant(tool_calls=[tool_call("slow", "build", {"target": "all"})])
    await write(house, S, "start the build", late, "meanwhile, look here", *work(1), *work(2))
    await write(house, S, tool_result("slow", "built in 90 s"))
    made = await covered(house, S, 1, 7, "a build was started")
    found = await house.client.recall.expand(S, summary_ids=[made.id])
    assert sequences_of(found.items) == [1, 2, 3, 4, 5, 6, 7, 12]
    assert "built in 90 s" in texts(found.items)[-1]


async def test_what_a_summary_covered_comes_back_whatever_became_of_it(house: House) -> None:
    await write(house, S, *work(1), *work(2), *work(3))
    made = await covered(house, S, 1, 8, "two parts")
    await house.client.reset_session(S)
    await write(house, S, user("a new beginning"))
    found = await house.client.recall.expand(S, summary_ids=[made.id])
    assert sequences_of(found.items) == [*range(1, 9)]
    child = ref("child")
    await house.client.bootstrap(child, continues=S)
    await write(house, child, *work(4))
    assert sequences_of((await house.client.recall.expand(child, sequences=[13, 14])).items) == [
        13,
        14,
    ]


@pytest.mark.parametrize(
    ("asked", "reason", "field"),
    [
        ({}, "INVALID_FIELD", "summary_ids"),
        ({"sequences": [1], "max_tokens": 255}, "INVALID_FIELD", "max_tokens"),
        ({"sequences": [1], "max_tokens": -1}, "INVALID_FIELD", "max_tokens"),
        ({"sequences": [-1]}, "INVALID_FIELD", "sequences[0]"),
        ({"sequences": [1], "max_depth": -1}, "INVALID_FIELD", "max_depth"),
        ({"sequences": [1], "page_token": "x"}, "INVALID_FIELD", "page_token"),
        ({"sequences": [1], "page_token": "x" * 1_025}, "INVALID_FIELD", "page_token"),
        ({"summary_ids": [""]}, "INVALID_FIELD", "summary_ids[0]"),
    ],
)
async def test_bad_requests_say_what_is_wrong(
    house: House, asked: dict[str, Any], reason: str, field: str
) -> None:
    await write(house, S, "word")
    with pytest.raises(ContextEngineError) as caught:
        await house.client.recall.expand(S, **asked)
    assert problem(caught.value) == ("INVALID_ARGUMENT", reason, [field])


async def test_a_page_belongs_to_its_request(house: House) -> None:
    await write(house, S, *["word " * 300] * 4)
    token = (
        await house.client.recall.expand(S, sequences=[1, 2, 3, 4], max_tokens=700)
    ).next_page_token
    with pytest.raises(ContextEngineError) as caught:
        await house.client.recall.expand(S, sequences=[1, 2, 3], max_tokens=700, page_token=token)
    assert problem(caught.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["page_token"])
    with pytest.raises(ContextEngineError) as caught:
        await house.client.recall.expand(S, sequences=[1] * 1_001)
    assert problem(caught.value)[:2] == ("RESOURCE_EXHAUSTED", "TOO_LARGE")
