"""What one session says is known in the next of the same agent, and nowhere else: over a real
channel, through ends, resets, deletions and restarts."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from contextengine import AsyncClient, ContextEngineError, assistant, user
from contextengine import types as t
from tests.integration.harness import ALICE, BOB, PATIENCE_S, House, budget, ref

FIRST, NEXT = ref("first"), ref("next")
TOOLS = ["ctx_search", "memory_search"]


async def say(client: AsyncClient, session: t.SessionRef, *texts: str) -> None:
    """Stores what a user says."""
    await client.ingest_batch(session, [user(text) for text in texts])


async def told(client: AsyncClient, session: t.SessionRef, *texts: str) -> None:
    """A session in which a user says this, and that is over."""
    await say(client, session, *texts)
    await client.end_session(session)


async def known(client: AsyncClient, session: t.SessionRef, query: str, **more: Any) -> list[str]:
    """The facts that a search of memory finds."""
    found = await client.recall.search(session, query, scope=t.SEARCH_SCOPE_MEMORY, **more)
    return [f"{hit.fact.kind}: {hit.fact.value}" for hit in found.hits]


async def asked(client: AsyncClient, session: t.SessionRef, **arguments: Any) -> dict[str, Any]:
    """What the tool answers."""
    arguments_json = json.dumps(arguments).encode()
    done = await client.call_tool(session, "memory_search", arguments_json=arguments_json)
    answer = json.loads(done.result_json)
    assert isinstance(answer, dict)
    return answer


async def addition(client: AsyncClient, session: t.SessionRef, **more: Any) -> str:
    """The addition to the system prompt where the model may search memory."""
    more = {"available_tools": TOOLS, "budget": budget(20_000), **more}
    return (await client.assemble(session, **more)).system_prompt_addition


async def test_what_one_session_says_is_known_in_the_next(house: House) -> None:
    client = house.client
    await told(client, FIRST, "Hello", "I prefer dark mode.", "我的生日是6月5日。")
    await say(client, NEXT, "What do you know of me?")
    found = await client.recall.search(NEXT, "which mode do I prefer", scope=t.SEARCH_SCOPE_MEMORY)
    [hit] = found.hits
    assert (hit.fact.kind, hit.fact.value) == ("preference", "I prefer dark mode")
    assert (hit.session_id, hit.origin.sequence, found.total_count) == ("first", 2, 1)
    assert [(one.session_id, one.sequence) for one in hit.fact.sources] == [("first", 2)]
    assert hit.memory_id
    assert "untrusted" in hit.snippet
    assert await known(client, NEXT, "生日") == ["date: 生日: 6月5日"]
    answer = await asked(client, NEXT, query="mode")
    assert [fact["id"] for fact in answer["facts"]] == [hit.memory_id]
    assert answer["facts"][0]["sources"] == [{"session_id": "first", "sequence": 2}]
    assert "I prefer dark mode" in answer["facts"][0]["fact"]
    assert "memory_search" in [tool.name for tool in (await client.list_tools(NEXT)).tools]


async def test_a_day_named_from_today_is_known_by_its_date(house: House) -> None:
    """By when its message was said, however much later it is found."""
    said = user("The demo is next Tuesday.")
    said.timestamp.FromJsonString("2026-03-04T09:00:00Z")
    await house.client.ingest_batch(FIRST, [said, user("The launch is tomorrow.")])
    await house.client.end_session(FIRST)
    await say(house.client, NEXT, "Hello")
    assert await known(house.client, NEXT, "demo launch") == [
        "date: demo: 2026-03-10 (next Tuesday)"
    ]


async def test_another_agent_and_another_tenant_know_nothing(guarded: House) -> None:
    alice, bob = guarded.client_of(ALICE), guarded.client_of(BOB)
    await told(alice, FIRST, "I prefer dark mode.")
    sides = [(alice, ref("next", agent="other")), (bob, ref("next")), (bob, ref("first"))]
    for client, session in sides:
        await say(client, session, "What do you know of me?")
        for mode in (t.SEARCH_MODE_FULL_TEXT, t.SEARCH_MODE_REGEX):
            assert await known(client, session, "mode|prefer|.", mode=mode) == []
        assert (await asked(client, session, query="mode"))["facts"] == []
        assert "dark" not in await addition(client, session)
    await say(alice, NEXT, "And here?")
    assert await known(alice, NEXT, "mode") == ["preference: I prefer dark mode"]


async def test_a_deletion_erases_what_was_found(house: House) -> None:
    client = house.client
    await told(client, FIRST, "I prefer dark mode.", "I prefer tea.")
    await told(client, ref("second"), "I prefer dark mode.")
    await say(client, NEXT, "Hello")
    assert "tea" in await addition(client, NEXT)
    await client.sessions.delete(FIRST)
    assert await known(client, NEXT, "prefer tea mode") == ["preference: I prefer dark mode"]
    [hit] = (await client.recall.search(NEXT, "mode", scope=t.SEARCH_SCOPE_MEMORY)).hits
    assert [one.session_id for one in hit.fact.sources] == ["second"]
    assert "tea" not in await addition(client, NEXT)
    await client.sessions.delete(ref("second"))
    assert await known(client, NEXT, "prefer tea mode") == []
    await house.restart()
    assert await known(house.client, NEXT, "prefer tea mode") == []


async def test_what_contradicts_takes_the_place(house: House) -> None:
    client = house.client
    await told(client, FIRST, "We decided to use PostgreSQL for the database.")
    await told(client, ref("second"), "Actually, use MySQL instead of PostgreSQL.")
    await say(client, NEXT, "Hello")
    assert await known(client, NEXT, "PostgreSQL MySQL") == [
        "decision: use MySQL instead of PostgreSQL"
    ]
    page = await client.recall.search(
        NEXT, "PostgreSQL MySQL", scope=t.SEARCH_SCOPE_MEMORY, include_retired=True
    )
    by_value = {hit.fact.value: hit for hit in page.hits}
    assert set(by_value) == {"use MySQL instead of PostgreSQL", "decided to use PostgreSQL"}
    old, new = by_value["decided to use PostgreSQL"], by_value["use MySQL instead of PostgreSQL"]
    assert (old.fact.superseded_by, new.fact.superseded_by) == (new.memory_id, "")
    answer = await asked(client, NEXT, query="postgresql", include_superseded=True)
    assert [one.get("superseded_by") for one in answer["facts"]].count(new.memory_id) == 1
    await client.sessions.delete(ref("second"))
    assert await known(client, NEXT, "PostgreSQL") == ["decision: decided to use PostgreSQL"]


async def test_a_reset_keeps_facts_and_a_rewind_takes_them_back(house: House) -> None:
    client = house.client
    await say(client, FIRST, "I prefer dark mode.", "I live in Berlin.")
    await client.reset_session(FIRST)
    assert await known(client, FIRST, "dark mode Berlin") == [
        "preference: I prefer dark mode",
        "address: Berlin",
    ]
    await say(client, NEXT, "I prefer tea.", "My name is Alice Chen.")
    await client.end_session(NEXT)
    rewind = t.RecordHostChangeRequest.Rewind(after_sequence=1)
    await client.record_host_change(NEXT, rewind=rewind)
    assert await known(client, NEXT, "Alice tea name") == ["preference: I prefer tea"]


async def test_a_summary_hands_its_facts_over_first(house: House) -> None:
    client = house.client
    await say(client, FIRST, "I prefer dark mode.")
    turns = [
        one
        for at in range(30)
        for one in (user(f"{at}: " + "What of this? " * 60), assistant("Nothing. " * 80))
    ]
    await client.ingest_batch(FIRST, turns)
    assert await known(client, FIRST, "mode") == []
    # Below the hard share, from which on a summary hardly waits for memory.
    assert (await client.compact(FIRST, force=True, budget=budget(20_000))).compacted
    assert await known(client, FIRST, "mode") == ["preference: I prefer dark mode"]


async def test_a_restart_changes_nothing(house: House) -> None:
    client = house.client
    await told(client, FIRST, "I prefer dark mode.", "Call me Sam.")
    await say(client, NEXT, "Hello")
    before = await client.assemble(NEXT, available_tools=TOOLS, budget=budget(20_000))
    assert "I prefer dark mode" in before.system_prompt_addition
    assert "Sam" in before.system_prompt_addition
    await told(client, ref("later"), "I prefer tea.")
    again = await client.assemble(NEXT, available_tools=TOOLS, budget=budget(20_000))
    await house.restart()
    cold = await house.client.assemble(NEXT, available_tools=TOOLS, budget=budget(20_000))
    for reply in (again, cold):
        assert reply.system_prompt_addition == before.system_prompt_addition
        assert reply.context_projection.epoch == before.context_projection.epoch
    await house.client.reset_session(NEXT)
    await say(house.client, NEXT, "Hello again")
    assert "tea" in await addition(house.client, NEXT)


async def test_secrets_are_not_remembered(house: House) -> None:
    client = house.client
    await told(
        client,
        FIRST,
        "My password is hunter2.",
        "I always use sk-abcdefghijklmnopqrstuvwx1234 as a key.",
        "My card number is 4111 1111 1111 1111.",
    )
    await say(client, NEXT, "Hello")
    assert await known(client, NEXT, ".", mode=t.SEARCH_MODE_REGEX) == []
    assert await house.app.store.memory.facts("default", "agent") == []


async def test_a_child_may_not_ask(house: House) -> None:
    client = house.client
    await told(client, FIRST, "I prefer dark mode.")
    await say(client, NEXT, "Do this for me.")
    child = ref("child")
    await client.prepare_subagent_spawn(NEXT, child)
    await say(client, child, "I prefer light mode.")
    await client.end_session(child)
    with pytest.raises(ContextEngineError) as refused:
        await known(client, child, "mode")
    assert refused.value.code.name == "PERMISSION_DENIED"
    assert "error" in await asked(client, child, query="mode")
    assert await addition(client, child) == ""
    assert "memory_search" not in [tool.name for tool in (await client.list_tools(child)).tools]
    assert await known(client, NEXT, "mode") == ["preference: I prefer dark mode"]


async def test_where_memory_is_off_nothing_is_found_or_offered(house: House) -> None:
    await house.restart(**{"memory.enabled": False})
    client = house.client
    await told(client, FIRST, "I prefer dark mode.")
    await say(client, NEXT, "Hello")
    assert await known(client, NEXT, "mode") == []
    assert "error" in await asked(client, NEXT, query="mode")
    assert await addition(client, NEXT) == ""
    assert "memory_search" not in [tool.name for tool in (await client.list_tools(NEXT)).tools]


async def test_large_messages_are_handed_over_a_few_at_a_time(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are: memory is what a server has least of."""
    store, sizes = house.app.core.store, list[int]()
    read = store.messages

    async def messages(*given: Any, **more: Any) -> Any:
        rows = await read(*given, **more)
        sizes.append(sum(len(row.body) for row in rows))
        return rows

    monkeypatch.setattr(store, "messages", messages)  # some are read as soon as they are there
    large = [user(f"{number} " + "words and words " * 200_000) for number in range(8)]
    for message in large:
        await house.client.ingest(FIRST, message)
    await say(house.client, FIRST, "My email is anna@example.org.")
    await house.client.end_session(FIRST)
    assert sum(sizes) > sum(len(message.parts[0].text.text) for message in large)
    assert max(sizes) < 14 << 20  # of 26
    async with asyncio.timeout(PATIENCE_S):  # a compaction in a hurry has it told once more
        while await known(house.client, FIRST, "email") != ["email: anna@example.org"]:
            await asyncio.sleep(0.1)
