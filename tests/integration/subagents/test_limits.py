"""How deep children may be and how many may live, and what happens when calls come at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import user
from tests.integration.harness import Clock, House
from tests.integration.harness import house as living

from .family import FORK, ISOLATED, SWEPT, Family, refused

LIMIT = ("RESOURCE_EXHAUSTED", "SPAWN_LIMIT", ["parent"])
OVER = ("FAILED_PRECONDITION", "SPAWN_ENDED", ["spawn_token"])


async def line(family: Family, length: int, **more: Any) -> list[t.SessionRef]:
    """A parent, its child, that one's child …: so many below the parent."""
    await family.say(family.parent, "one")
    sessions = [family.parent]
    for depth in range(1, length + 1):
        child = family.session(f"depth{depth}")
        assert (await family.prepare(child, sessions[-1], **more)).depth == depth
        await family.say(child, f"at depth {depth}")
        sessions.append(child)
    return sessions


@pytest.mark.parametrize("mode", [FORK, ISOLATED])
async def test_children_are_five_deep_at_most(house: House, mode: t.ContextMode) -> None:
    family = Family(house, "deep")
    sessions = await line(family, 5, context_mode=mode)
    await house.restart()
    with pytest.raises(ContextEngineError) as caught:
        await family.prepare(family.session("depth6"), sessions[-1], context_mode=mode)
    assert (caught.value.reason, caught.value.metadata) == (
        "SPAWN_LIMIT",
        {"which": "depth", "limit": "5"},
    )
    assert "subagents.max_depth" in str(caught.value)
    assert not await family.there(family.session("depth6"))
    await family.end(sessions[4])
    assert await refused(family.prepare(family.session("depth6"), sessions[-1])) == LIMIT, (
        "depth is for life"
    )


async def test_what_goes_on_in_another_session_is_as_deep(house: House) -> None:
    family = Family(house, "split")
    sessions = await line(family, 5)
    split = family.session("split")
    await house.client.bootstrap(split, continues=sessions[-1])
    assert await refused(family.prepare(family.session("deeper"), split)) == LIMIT


async def test_thirty_two_live_children_a_parent(house: House) -> None:
    family = Family(house, "wide")
    await family.say(family.parent, "one")
    children = [family.session(f"child{number:02}") for number in range(33)]
    first, *others = [await family.prepare(child) for child in children[:32]]
    with pytest.raises(ContextEngineError) as caught:
        await family.prepare(children[32])
    assert caught.value.metadata == {"which": "children", "limit": "32"}
    assert not await family.there(children[32])
    assert (await house.client.get_status(family.parent)).live_child_count == 32
    assert await family.prepare(family.session("below"), children[0]), (
        "another parent's are not counted"
    )
    assert await family.roll_back(others[0].spawn_token)
    await family.prepare(children[32])
    assert await refused(family.prepare(children[1])) == LIMIT
    await family.end(children[0], spawn_token=first.spawn_token)
    await family.prepare(children[1])
    await house.client.sessions.delete(children[5])
    await family.prepare(children[5])


async def test_limits_are_settings(tmp_path: Path) -> None:
    settings = {"subagents.max_depth": 1, "subagents.max_children": 2, "subagents.ttl": "90s"}
    clock = Clock()
    async with living(tmp_path, clock=clock, **settings) as house:
        family = Family(house, "set")
        sessions = await line(family, 1)
        assert await refused(family.prepare(family.session("deeper"), sessions[-1])) == LIMIT
        second = await family.prepare(family.session("second"))
        assert second.expire_time.ToMilliseconds() == clock.ms + 90_000
        assert await refused(family.prepare(family.session("third"))) == LIMIT
        await house.restart(**{"subagents.max_depth": 0})
        assert await refused(family.prepare(family.session("third"))) == LIMIT


async def test_an_expired_child_makes_room(clocked: House, clock: Clock) -> None:
    family = Family(clocked, "room")
    await family.say(family.parent, "one")
    for number in range(32):
        await family.prepare(family.session(f"child{number}"), ttl=10)
    clock.advance(10)
    await family.prepare(family.session("child0"))


# At once


async def test_one_request_sent_many_times_at_once_prepares_one_child(house: House) -> None:
    family = Family(house, "many")
    await family.say(family.parent, "one")
    replies = await asyncio.gather(
        *(family.prepare(context_mode=FORK, request_id="r1") for _ in range(12))
    )
    assert len({reply.spawn_token for reply in replies}) == 1
    assert (await house.client.get_status(family.parent)).live_child_count == 1
    assert await family.shown() == ["one"]
    said = await refused(family.prepare(context_mode=ISOLATED, request_id="r1"))
    assert said == ("ALREADY_EXISTS", "REQUEST_ID_REUSED", ["request_id"])
    assert await refused(
        family.prepare(family.session("other"), request_id="r1", context_mode=FORK)
    )


async def test_of_different_requests_for_one_child_one_wins(house: House) -> None:
    family = Family(house, "one")
    await family.say(family.parent, "one")
    done = await asyncio.gather(*(_tried(family.prepare(context_mode=FORK)) for _ in range(8)))
    assert sum(one is not None for one in done) == 1
    assert (await house.client.get_status(family.parent)).live_child_count == 1


async def _tried(call: Any) -> Any:
    try:
        return await call
    except ContextEngineError:
        return None


async def test_many_children_prepared_at_once_stay_within_the_limit(house: House) -> None:
    family = Family(house, "crowd")
    await family.say(family.parent, "one")
    done = await asyncio.gather(
        *(_tried(family.prepare(family.session(f"child{n}"), context_mode=FORK)) for n in range(40))
    )
    assert sum(one is not None for one in done) == 32
    assert len(await family.sessions()) == 33


async def test_preparing_races_rolling_back(house: House) -> None:
    family = Family(house, "race")
    await family.say(family.parent, "one")
    for turn in range(15):
        child = family.session(f"child{turn}")
        first = await family.prepare(child, context_mode=FORK, request_id=f"r{turn}")
        again, *taken = await asyncio.gather(
            family.prepare(child, context_mode=FORK, request_id=f"r{turn}"),
            *(family.roll_back(first.spawn_token) for _ in range(3)),
        )
        assert again == first
        assert taken.count(True) == 1, "once"
        assert not await family.there(child)
    assert (await house.client.get_status(family.parent)).live_child_count == 0


async def test_the_end_of_its_time_races_the_childs_start(clocked: House, clock: Clock) -> None:
    """Either the child starts and stays, or it is gone and is told so."""
    family, core = Family(clocked, "start"), clocked.app.core
    await family.say(family.parent, "one")
    outcomes = set()
    for turn in range(30):
        child = family.session(f"child{turn}")
        token = (await family.prepare(child, context_mode=FORK, ttl=10)).spawn_token
        clock.advance(9.999)

        async def pass_by(turns: int = turn) -> None:
            for _ in range(turns * 3):
                await asyncio.sleep(0)
            clock.advance(0.001)
            await core.children.expire()

        said, _ = await asyncio.gather(
            refused(
                clocked.client.bootstrap(child, spawn_token=token, host=t.HostInfo(host_id="h"))
            ),
            pass_by(),
        )
        outcomes.add(said is None)
        assert said in (None, OVER)
        assert await family.there(child) == (said is None)
        if said is None:
            assert await family.shown(child) == ["one"]
            await family.end(child, reason=SWEPT)
    assert outcomes <= {True, False}


async def test_rolling_back_races_the_childs_first_message(house: House) -> None:
    """What was acknowledged is there, whoever won."""
    family = Family(house, "first")
    await family.say(family.parent, "one")
    for turn in range(15):
        child = family.session(f"child{turn}")
        token = (await family.prepare(child, context_mode=FORK)).spawn_token
        stored, rolled = await asyncio.gather(
            house.client.ingest(child, user("mine")), family.roll_back(token)
        )
        assert rolled
        shown = await family.shown(child)
        assert shown in (["one", "mine"], ["mine"])
        assert stored.stored.sequence == len(shown)
        assert await refused(house.client.bootstrap(child, spawn_token=token)) == OVER


async def test_a_parent_deleted_while_children_are_prepared_leaves_no_orphan(house: House) -> None:
    for turn in range(10):
        family = Family(house, f"orphan{turn}")
        await family.say(family.parent, "one")
        prepared, *_ = await asyncio.gather(
            _tried(family.prepare(context_mode=FORK)),
            house.client.sessions.delete(family.parent, cascade=True),
        )
        assert not await family.there(family.parent)
        assert not await family.there(), "a fork without its parent would show nothing"
        if prepared is not None:
            assert await refused(
                house.client.bootstrap(family.child, spawn_token=prepared.spawn_token)
            )


async def test_ending_at_once_ends_once(house: House) -> None:
    family = Family(house, "ends")
    token = (await family.fork("one")).spawn_token
    await family.say(family.child, "two")
    done = await asyncio.gather(
        *(family.end(spawn_token=token) for _ in range(5)), *(family.end() for _ in range(5))
    )
    assert any(done)
    status = await house.client.get_status(family.child)
    assert (status.ended, status.spawn.ended) == (True, "completed")
    assert house.app.core.meters.subagents["ended"].value == 1
