"""Inspect over the wire: what a summary covers, from its row and the rows below it."""

from __future__ import annotations

import pytest

from contextengine import ContextEngineError
from contextengine.messages import user
from tests.integration.harness import House, problem, ref

from .asking import S, covered, deep, work, write


async def test_a_leaf_says_what_it_covers(house: House) -> None:
    await write(house, S, *work(1), *work(2), *work(3), user("the end"))
    made = await covered(house, S, 1, 8, "two parts were read")
    found = await house.client.recall.inspect(S, summary_id=made.id)
    assert found.summary == made
    assert (made.depth, made.first_sequence, made.last_sequence, made.message_count) == (0, 1, 8, 8)
    assert dict(found.messages_by_role) == {"user": 2, "assistant": 4, "tool": 2}
    assert dict(found.tool_calls) == {"read_file": 2}
    assert found.text == "two parts were read"
    assert not found.children


async def test_a_deeper_one_lists_what_it_was_made_of(house: House) -> None:
    every = await deep(house)
    top = every[-1]
    found = await house.client.recall.inspect(S, summary_id=top.id)
    by_id = {one.id: one for one in every}
    # From the sources down, not from the summary up: the way by which one drills.
    assert [child.id for child in found.children] == list(top.children)
    assert max(child.depth for child in found.children) == top.depth - 1
    for child in found.children:
        assert child.message_count == by_id[child.id].message_count
    assert sum(found.messages_by_role.values()) == top.message_count
    assert found.tool_calls["read_file"] == found.messages_by_role["tool"]


async def test_a_text_comes_without_secrets(house: House) -> None:
    key = "sk-proj-" + "abcDEF123456" * 4
    await write(house, S, *work(1), *work(2), *work(3))
    made = await covered(house, S, 1, 8, f"the key is {key}, keep it")
    found = await house.client.recall.inspect(S, summary_id=made.id)
    assert key not in found.text
    assert found.text.startswith("the key is ")


async def test_what_is_not_this_sessions_is_not_there(house: House) -> None:
    await write(house, S, *work(1), *work(2), *work(3))
    made = await covered(house, S, 1, 4, "one part")
    await write(house, ref("other"), *work(1))
    for session, name in ((S, "s9-nothing"), (ref("other"), made.id)):
        with pytest.raises(ContextEngineError) as caught:
            await house.client.recall.inspect(session, summary_id=name)
        assert problem(caught.value)[:2] == ("NOT_FOUND", "ROW_NOT_FOUND")
        assert name in str(caught.value)
    with pytest.raises(ContextEngineError) as caught:
        await house.client.recall.inspect(S, summary_id="")
    assert problem(caught.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["summary_id"])


async def test_a_summary_that_left_the_view_can_be_inspected(house: House) -> None:
    """By a harness; not by the model's tool, which stays in the view."""
    await write(house, S, *work(1), *work(2), *work(3))
    made = await covered(house, S, 1, 8, "two parts")
    await house.client.reset_session(S)
    found = await house.client.recall.inspect(S, summary_id=made.id)
    assert found.summary.message_count == 8
    assert sum(found.messages_by_role.values()) == 8
    reply = await house.client.call_tool(
        S, name="ctx_inspect", arguments_json=b'{"summary_id": "%s"}' % made.id.encode()
    )
    assert reply.is_error


async def test_pinned_messages_are_in_no_summary(house: House) -> None:
    pinned = user("always do this", labels={"pinned": "true"})
    await write(house, S, *work(1), pinned, *work(2), *work(3))
    made = await covered(house, S, 1, 9, "two parts")
    found = await house.client.recall.inspect(S, summary_id=made.id)
    assert dict(found.messages_by_role) == {"user": 2, "assistant": 4, "tool": 2}
