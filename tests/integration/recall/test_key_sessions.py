"""Search over the conversations that a host had under one session key: whose rows are found, by the
call and by the model's tools, and who may not ask."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from tests.integration.harness import House, problem, ref

from .asking import find, write

KEY = "chat:ann"


def talk(name: str, key: str = KEY) -> t.SessionRef:
    return t.SessionRef(agent_id=ref("x").agent_id, session_id=name, session_key=key)


async def told(house: House) -> None:
    """Three conversations under one key, one under another, one under none."""
    for number, name in enumerate(("first", "second", "now")):
        await write(house, talk(name), "good morning", f"the zebra of day {number}")
    await write(house, talk("bobs", "chat:bob"), "the zebra of Bob")
    await write(house, ref("loose"), "the zebra of nobody")


def places(found: t.SearchResponse) -> list[tuple[str, int]]:
    return sorted((hit.session_id, hit.origin.sequence) for hit in found.hits)


async def use(house: House, name: str, session: t.SessionRef, **arguments: Any) -> Any:
    given = json.dumps(arguments).encode()
    reply = await house.client.call_tool(session, name, arguments_json=given)
    return json.loads(reply.result_json)


async def test_all_conversations_of_the_key_are_searched_and_no_others(house: House) -> None:
    await told(house)
    by_key = t.SessionRef(agent_id=ref("x").agent_id, session_key=KEY)
    for session in (talk("now"), ref("now"), by_key):
        found = await find(house, "zebra", session, key_sessions=True)
        assert places(found) == [("", 2), ("first", 2), ("second", 2)]
        assert found.total_count == 3
    # The key's current session alone, unless it is asked for.
    assert places(await find(house, "zebra", by_key)) == [("", 2)]
    # From an earlier one the later ones are found as well.
    found = await find(house, "zebra", ref("first"), key_sessions=True)
    assert places(found) == [("", 2), ("now", 2), ("second", 2)]
    pattern = await find(
        house, "z.bra", by_key, key_sessions=True, mode=t.SEARCH_MODE_REGEX, limit=9
    )
    assert places(pattern) == [("", 2), ("first", 2), ("second", 2)]


async def test_pages_go_through_all_of_them_and_belong_to_their_question(house: House) -> None:
    await told(house)
    here, found, token = talk("now"), list[tuple[str, int]](), ""
    while True:
        page = await find(house, "zebra", here, key_sessions=True, limit=1, page_token=token)
        found += places(page)
        token = page.next_page_token
        if not token:
            break
        with pytest.raises(ContextEngineError) as caught:
            await find(house, "zebra", here, all_sessions=True, limit=1, page_token=token)
        assert problem(caught.value)[2] == ["page_token"]
    assert sorted(found) == [("", 2), ("first", 2), ("second", 2)]


async def test_a_session_without_a_key_is_searched_alone(house: House) -> None:
    await told(house)
    await write(house, ref("other"), "another zebra of nobody")
    found = await find(house, "zebra", ref("loose"), key_sessions=True)
    assert places(found) == [("", 1)]


async def test_a_child_may_not_ask_for_them(house: House) -> None:
    await told(house)
    child = ref("child")
    await house.client.prepare_subagent_spawn(talk("now"), child)
    with pytest.raises(ContextEngineError) as caught:
        await house.client.recall.search(child, query="zebra", key_sessions=True)
    assert problem(caught.value)[::2] == ("PERMISSION_DENIED", ["key_sessions"])
    for name, arguments in (
        ("ctx_search", {"query": "zebra", "key_sessions": True}),
        ("ctx_expand", {"sequences": [2], "session_id": "first"}),
    ):
        said = await use(house, name, child, **arguments)
        assert said["error"]["code"] == "permission_denied"


async def test_the_models_tools_find_and_read_earlier_conversations(house: House) -> None:
    await told(house)
    here = talk("now")
    for name in ("first", "second", "now"):  # until all is indexed
        await find(house, "zebra", ref(name))
    alone = await use(house, "ctx_search", here, query="zebra")
    assert [hit["sequence"] for hit in alone["hits"]] == [2]
    found = await use(house, "ctx_search", here, query="zebra", key_sessions=True)
    assert {hit.get("session_id") for hit in found["hits"]} == {None, "first", "second"}
    read = await use(house, "ctx_expand", here, sequences=[2], session_id="first")
    assert "day 0" in read["items"][0]["text"]
    # What is under another key, or none, is not there.
    for name in ("bobs", "loose", "nowhere"):
        said = await use(house, "ctx_expand", here, sequences=[1], session_id=name)
        assert said["error"]["code"] == "not_found"
    said = await use(house, "ctx_expand", ref("loose"), sequences=[1], session_id="bobs")
    assert said["error"]["code"] == "not_found"
    for more in ({"first_sequence": 1}, {"last_sequence": 1}):
        said = await use(house, "ctx_search", here, query="zebra", key_sessions=True, **more)
        assert said["error"]["code"] == "contradictory_arguments"
