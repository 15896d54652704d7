"""Sessions.List and Get: what there is, in pages, newest write first."""

from __future__ import annotations

import base64
import json

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, user
from tests.integration.harness import Clock, House, problem, ref


async def write(house: House, clock: Clock, *names: str, **more) -> None:
    for name in names:
        clock.advance(1)
        await house.client.ingest(ref(name, **more), user("hello"))


async def pages(house: House, size: int, **more) -> list[list[str]]:
    found, token = [], ""
    while True:
        page = await house.client.sessions.list(page_size=size, page_token=token, **more)
        found.append([info.session_id for info in page.sessions])
        token = page.next_page_token
        if not token:
            return found


async def test_newest_write_first(clocked: House, clock: Clock) -> None:
    await write(clocked, clock, "one", "two", "three", "one")
    assert await pages(clocked, 0) == [["one", "three", "two"]]


async def test_pages_hold_every_session_once(clocked: House, clock: Clock) -> None:
    names = [f"s{n:02}" for n in range(23)]
    await write(clocked, clock, *names)
    for size in (1, 5, 22, 23, 24, 1_000, 2**31 - 1):
        found = await pages(clocked, size)
        assert [name for page in found for name in page] == names[::-1]
        assert all(len(page) == size for page in found[:-1])
        assert 0 < len(found[-1]) <= size


async def test_sessions_of_one_moment_are_not_lost_between_pages(clocked: House) -> None:
    names = {f"s{n}" for n in range(7)}
    for name in names:
        await clocked.client.ingest(ref(name), user("hello"))
        await clocked.client.ingest(ref(name, agent="another"), user("hello"))
    found = [name for page in await pages(clocked, 3) for name in page]
    assert len(found) == 14
    assert set(found) == names


async def test_a_page_has_fifty_unless_asked_otherwise(clocked: House) -> None:
    for number in range(51):
        await clocked.client.bootstrap(ref(f"s{number}"))
    assert [len(page) for page in await pages(clocked, 0)] == [50, 1]


async def test_only_of_one_agent_or_key(clocked: House, clock: Clock) -> None:
    await write(clocked, clock, "one", "two", key="main")
    await write(clocked, clock, "three")
    await write(clocked, clock, "four", agent="another", key="main")
    assert await pages(clocked, 0, agent_id="agent") == [["three", "two", "one"]]
    assert await pages(clocked, 1, agent_id="agent", session_key="main") == [["two"], ["one"]]
    assert await pages(clocked, 0, session_key="main") == [["four", "two", "one"]]
    assert await pages(clocked, 0, agent_id="none") == [[]]


async def test_what_is_said_of_a_session(clocked: House, clock: Clock) -> None:
    await clocked.client.bootstrap(ref("s1", key="main"), model="gpt-5", provider="openai")
    created = clock.ms
    clock.advance(5)
    stored = await clocked.client.ingest_batch(ref("s1"), [user("one"), assistant("two")])
    await clocked.client.end_session(ref("s1"))
    (listed,) = (await clocked.client.sessions.list()).sessions
    got = (await clocked.client.sessions.get(ref("", key="main"))).session
    assert listed == got
    assert (got.agent_id, got.session_id, got.session_key, got.current_for_key) == (
        "agent",
        "s1",
        "main",
        True,
    )
    assert (got.message_count, got.last_sequence, got.summary_count, got.revision) == (2, 2, 0, 3)
    assert got.message_tokens == sum(item.tokens for item in stored.stored)
    assert (got.ended, got.model, got.provider, got.encoding) == (
        True,
        "gpt-5",
        "openai",
        "o200k_base",
    )
    assert got.create_time.ToMilliseconds() == created
    assert got.update_time.ToMilliseconds() == clock.ms
    assert got.incarnation
    assert not got.HasField("continues")


async def test_a_session_made_again_has_another_incarnation(house: House) -> None:
    await house.client.ingest(ref(), user("one"))
    before = (await house.client.sessions.get(ref())).session
    await house.client.sessions.delete(ref())
    await house.client.ingest(ref(), user("one"))
    after = (await house.client.sessions.get(ref())).session
    assert after.incarnation != before.incarnation
    assert after.revision == before.revision == 1


async def test_a_child_names_what_it_continues(house: House) -> None:
    await house.client.ingest(ref("parent"), user("one"))
    await house.client.bootstrap(ref("child"), continues=ref("parent"))
    info = (await house.client.sessions.get(ref("child"))).session
    assert (info.continues.agent_id, info.continues.session_id) == ("agent", "parent")


async def test_a_rotated_session_is_not_current(house: House) -> None:
    await house.client.ingest(ref("old", key="main"), user("one"))
    await house.client.ingest(ref("new", key="main"), user("one"))
    current = {
        s.session_id: s.current_for_key for s in (await house.client.sessions.list()).sessions
    }
    assert current == {"old": False, "new": True}


def token(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    "bad",
    [
        "x",
        "!!!!",
        "ü",
        "\x00",
        token([]),
        token({}),
        token(None),
        token([1, "a"]),
        token([1, "a", "b", "c"]),
        token(["x", "a", "b"]),
        token([2**63, "a", "b"]),
        token([-(2**70), "a", "b"]),
        token([None, "a", "b"]),
        token([1e400, "a", "b"]),
        token([1.5, [], {}]),
        token([True, "a", "b"]),
        "A" * 1_000_000,
    ],
    ids=lambda text: text[:16],
)
async def test_a_page_token_that_is_not_ours(house: House, bad: str) -> None:
    with pytest.raises(ContextEngineError) as caught:
        await house.client.sessions.list(page_token=bad)
    assert problem(caught.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["page_token"])


@pytest.mark.parametrize("size", [-1, -(2**31)])
async def test_a_page_of_less_than_nothing(house: House, size: int) -> None:
    with pytest.raises(ContextEngineError) as caught:
        await house.client.sessions.list(page_size=size)
    assert problem(caught.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["page_size"])


async def test_an_empty_store(house: House) -> None:
    assert await house.client.sessions.list() == t.SessionsListResponse()
