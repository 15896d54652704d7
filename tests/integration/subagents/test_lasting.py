"""What is prepared outlives the process, expires by itself, and is no other tenant's."""

from __future__ import annotations

import asyncio

import pytest

from contextengine import types as t
from contextengine.messages import user
from contextengine_server.session import children
from tests.integration.harness import BOB, Clock, House
from tests.integration.sessions_service.test_watching import watching

from .family import FORK, SWEPT, Family, refused

OVER = ("FAILED_PRECONDITION", "SPAWN_ENDED", ["spawn_token"])


async def gone(family: Family, child: t.SessionRef | None = None) -> None:
    """Waits until the service has taken the child back."""
    async with asyncio.timeout(30):
        while await family.there(child):
            await asyncio.sleep(0.02)


async def test_the_token_of_another_tenant_opens_nothing(guarded: House) -> None:
    family, bob = Family(guarded, "tenants"), guarded.client_of(BOB)
    await family.say(family.parent, "one")
    prepared = await family.prepare(grant=t.RecallGrant())
    await bob.ingest(family.parent, user("of bob"))
    unknown = ("NOT_FOUND", "ROW_NOT_FOUND", ["spawn_token"])
    assert await refused(bob.bootstrap(family.child, spawn_token=prepared.spawn_token)) == unknown
    for session in (family.parent, family.child):
        await bob.ingest(session, user("more of bob"))
        assert (
            await refused(bob.recall.search(session, "one", spawn_token=prepared.spawn_token))
            == unknown
        )
    assert not (await bob.rollback_subagent_spawn(prepared.spawn_token, family.parent)).rolled_back
    assert not (await bob.end_subagent(family.child, spawn_token=prepared.spawn_token)).ended
    status = (await guarded.client.get_status(family.child)).spawn
    assert (status.ended, status.used_tokens) == ("", 0)
    assert (await bob.get_status(family.child)).HasField("spawn") is False
    assert (await bob.get_status(family.parent)).live_child_count == 0
    assert (await guarded.client.get_status(family.parent)).live_child_count == 1


async def test_a_restart_changes_nothing(house: House) -> None:
    family = Family(house, "restart")
    fork = await family.fork("one", "two")
    other = await family.prepare(
        family.session("isolated"), grant=t.RecallGrant(max_tokens=50), objective="look"
    )
    before = (await house.client.assemble(family.child)).context_hash
    await house.restart()
    assert (await house.client.assemble(family.child)).context_hash == before
    await house.client.bootstrap(family.child, spawn_token=fork.spawn_token)
    await family.say(family.child, "three")
    found = await house.client.recall.search(
        family.session("isolated"), "two", spawn_token=other.spawn_token, at_least_revision=1
    )
    assert [hit.session_id for hit in found.hits] == [family.parent.session_id]
    used = (await house.client.get_status(family.session("isolated"))).spawn.used_tokens
    assert used > 0
    await house.restart()
    status = await house.client.get_status(family.session("isolated"))
    assert (status.spawn.used_tokens, status.spawn.objective, status.spawn.depth) == (
        used,
        "look",
        1,
    )
    assert await family.shown() == ["one", "two", "three"]
    assert await family.roll_back(other.spawn_token)
    await house.restart()
    assert not await family.roll_back(other.spawn_token)
    assert await family.sessions() == ["child", "parent"]


async def test_a_request_that_is_sent_again_after_a_restart_is_answered_the_same(
    house: House,
) -> None:
    family = Family(house, "again")
    first = await family.fork("one", request_id="r1")
    await family.say(family.parent, "later")
    await house.restart()
    assert await family.prepare(context_mode=FORK, request_id="r1") == first
    assert await family.roll_back(first.spawn_token)
    assert await family.prepare(context_mode=FORK, request_id="r1") == first, (
        "and makes no child anew"
    )
    assert not await family.there()


async def test_a_child_that_never_comes_is_taken_back_by_the_service(
    clocked: House, clock: Clock
) -> None:
    family = Family(clocked, "expiry")
    prepared = await family.fork("one", ttl=60)
    assert prepared.expire_time.ToMilliseconds() == clock.ms + 60_000
    clock.advance(59.9)
    await clocked.app.core.children.expire()
    assert await family.there()
    clock.advance(0.1)
    await gone(family)
    assert not await family.roll_back(prepared.spawn_token), "safe after expiry"
    assert not await family.end(spawn_token=prepared.spawn_token, reason=SWEPT)
    assert (
        await refused(clocked.client.bootstrap(family.child, spawn_token=prepared.spawn_token))
        == OVER
    )
    assert await family.sessions() == ["parent"]
    assert (await clocked.client.sessions.delete(family.parent)).deleted, (
        "nobody stands on it any more"
    )


async def test_without_a_ttl_a_day_is_waited(clocked: House, clock: Clock) -> None:
    prepared = await Family(clocked, "day").fork("one")
    assert prepared.expire_time.ToMilliseconds() == clock.ms + 24 * 3_600_000


async def test_what_was_due_while_nothing_ran_is_taken_back_by_the_next_life(
    clocked: House, clock: Clock
) -> None:
    family = Family(clocked, "down")
    await family.fork("one", ttl=60)
    await clocked.stop()
    clock.advance(61)
    await clocked.start()
    await gone(family)


async def test_a_child_that_lives_is_not_taken_back(clocked: House, clock: Clock) -> None:
    family = Family(clocked, "alive")
    writing, introduced = family.session("writing"), family.session("introduced")
    first = await family.fork("one", child=writing, ttl=60)
    second = await family.prepare(introduced, context_mode=FORK, ttl=60)
    clock.advance(30)
    await family.say(writing, "two")
    await clocked.client.bootstrap(
        introduced, spawn_token=second.spawn_token, host=t.HostInfo(host_id="h")
    )
    clock.advance(59)
    await clocked.app.core.children.expire()
    assert await family.shown(writing) == ["one", "two"]
    assert await family.shown(introduced) == ["one"]
    await clocked.client.bootstrap(writing, spawn_token=first.spawn_token)
    clock.advance(61)
    await clocked.app.core.children.expire()
    assert await refused(clocked.client.bootstrap(writing, spawn_token=first.spawn_token)) == OVER
    assert await family.shown(writing) == ["one", "two"], (
        "the token is over, what was stored is not"
    )
    assert (await clocked.client.get_status(family.parent)).live_child_count == 0


async def test_a_token_is_over_at_its_time_even_if_nobody_swept(
    clocked: House, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "SWEEP_S", 3600)
    await clocked.restart()
    await asyncio.sleep(0.05)
    family = Family(clocked, "unswept")
    prepared = await family.fork("one", ttl=60)
    clock.advance(60)
    assert (
        await refused(clocked.client.bootstrap(family.child, spawn_token=prepared.spawn_token))
        == OVER
    )
    assert not await family.there()


async def test_a_life_in_events_and_counters(clocked: House, clock: Clock) -> None:
    family = Family(clocked, "events")
    await family.say(family.parent, "one")
    async with watching(clocked, name_prefixes=["subagent:"]) as seen:
        ended = await family.prepare(family.session("a"), context_mode=FORK)
        await clocked.client.bootstrap(family.session("a"), spawn_token=ended.spawn_token)
        await clocked.client.bootstrap(family.session("a"), spawn_token=ended.spawn_token)
        await family.end(family.session("a"), reason=SWEPT)
        await family.roll_back((await family.prepare(family.session("b"))).spawn_token)
        await family.prepare(family.session("c"), ttl=1)
        clock.advance(2)
        events = await seen.until(lambda event: event.name == "subagent:expired")
    said = [(event.name, event.session_id.removeprefix("events-")) for event in events]
    assert said == [
        ("subagent:prepared", "a"),
        ("subagent:started", "a"),
        ("subagent:ended", "a"),
        ("subagent:prepared", "b"),
        ("subagent:rolled_back", "b"),
        ("subagent:prepared", "c"),
        ("subagent:expired", "c"),
    ]
    assert dict(events[0].attributes) == {
        "mode": "fork",
        "parent_agent": "agent",
        "parent_session": "events-parent",
    }
    assert events[2].attributes["reason"] == "swept"
    assert not any(ended.spawn_token in str(event) for event in events), "a token is a secret"
    counted = clocked.app.metrics.snapshot()
    outcomes = {
        name: value
        for name, value in counted.items()
        if str(name).startswith("contextengine.subagents")
    }
    assert sorted(outcomes.values()) == [1, 1, 1, 1, 1, 2], outcomes


async def test_a_token_is_in_no_log(house: House, capfd: pytest.CaptureFixture[str]) -> None:
    family = Family(house, "logs")
    prepared = await family.fork("one")
    await refused(house.client.bootstrap(family.parent, spawn_token=prepared.spawn_token))
    await house.client.ingest(family.child, user("two"))
    await family.roll_back(prepared.spawn_token)
    await house.stop()
    said = capfd.readouterr()
    assert prepared.spawn_token not in said.out + said.err
    await house.start()
