"""Events are held by tenant: a noisy one pushes nothing of a quiet one out, and wakes nobody
else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from contextengine_server.health.lenders import Lenders
from contextengine_server.runtime.broker import Harnesses
from contextengine_server.runtime.wanted import WantedJobs
from contextengine_server.telemetry.events import GAP, Event, Events, Watched
from contextengine_server.wiring.harnesses import hearing

TENANTS = ("a", "b", "c")
CAPACITY = 12


def events_of(capacity: int = CAPACITY) -> Events:
    return Events("life", lambda: 0, capacity)


async def told(events: AsyncIterator[Event]) -> list[Event]:
    async with aclosing(events) as watching:  # type: ignore[type-var]
        return [event async for event in watching]


@given(st.lists(st.sampled_from(TENANTS), max_size=80))
def test_so_many_are_held_and_only_who_has_the_most_loses_any(emitted: list[str]) -> None:
    events = events_of()
    for tenant in emitted:
        events.emit("message:ingested", tenant)
    held = {tenant: len(one.events) for tenant, one in events._held.items()}
    assert min(len(emitted), CAPACITY // 2) <= sum(held.values()) <= CAPACITY
    for tenant in set(emitted):
        # A tenant that keeps within its share of the room loses nothing.
        share = (CAPACITY - CAPACITY // 8) // len(TENANTS)
        assert held[tenant] >= min(emitted.count(tenant), share)


@given(st.lists(st.sampled_from(TENANTS), max_size=60), st.integers(0, 60), st.integers(1, 30))
def test_behind_a_position_comes_everything_or_a_gap(
    emitted: list[str], seen: int, capacity: int
) -> None:
    """What is told of one tenant behind any position is its newest events without a hole; where any
    of them is missing a gap says so first."""
    events = events_of(capacity)
    numbers = []
    for number, tenant in enumerate(emitted, 1):
        events.emit("message:ingested", tenant)
        numbers += [number] if tenant == "a" else []
    seen = min(seen, len(emitted))
    events.close()
    found = asyncio.run(told(events.watch(Watched("a"), events.position(seen))))
    expected = [number for number in numbers if number > seen]
    given_numbers = [event.number for event in found if event.name != GAP]
    assert given_numbers == expected[len(expected) - len(given_numbers) :]
    assert all(event.name != GAP for event in found[1:])
    if given_numbers != expected:
        assert found[0].name == GAP


async def test_who_watches_is_woken_by_what_he_watches_alone() -> None:
    events = events_of()
    woken: list[int] = []

    async def follow(watched: Watched) -> None:
        async for event in events.watch(watched):
            woken.append(event.number)

    tasks = [
        asyncio.create_task(follow(watched))
        for watched in (Watched("quiet"), Watched("noisy", agent="other"))
    ]
    await asyncio.sleep(0)
    waiting = [one for waiters in events._waiters.values() for one in waiters]
    assert len(waiting) == 2
    for _ in range(10 * CAPACITY):
        events.emit("message:ingested", "noisy", "main")
    assert not any(one.done() for one in waiting)
    # Nothing that was passed over meanwhile is missed.
    events.emit("message:ingested", "noisy", "other")
    events.emit("message:ingested", "quiet", "main")
    last = 10 * CAPACITY
    events.close()
    await asyncio.gather(*tasks)
    assert sorted(woken) == [last + 1, last + 2]


async def test_a_position_of_another_life_is_a_gap() -> None:
    events = events_of()
    events.emit("message:ingested", "a")
    events.close()
    for position in ("other.1", "life.2", "life", "1"):
        found = await told(events.watch(Watched("a"), position))
        assert [event.name for event in found] == [GAP, "message:ingested"]
        assert await told(events.watch(Watched("a"), events.position(found[0].number)))


def test_what_servers_tell_each_other_is_of_no_tenant() -> None:
    """A server of before takes it for an event like others, and shows it to whoever watches the
    tenant."""
    events = Events("life", lambda: 5)
    events.share("feed", 0)
    events.emit("session:created", "acme", "main", "s1")
    events.tell_servers("job_offered", tenant="acme", agent="main")
    with events.unsaid() as (told, _):
        created, offered = told
    assert Watched("acme").wants(created)
    assert (offered.name, offered.tenant) == ("server:job_offered", "")
    assert not Watched("acme").wants(offered)
    assert offered.attributes == {"tenant": "acme", "agent": "main"}


async def test_hearing_takes_what_servers_of_before_tell() -> None:
    heard: list[tuple[str, ...]] = []
    hears = hearing(
        cast(Harnesses, Noting(heard)),
        cast(WantedJobs, Noting(heard)),
        cast(Lenders, Noting(heard)),
    )
    hears(Event(1, "server:job_offered", 5, "acme", "main", "s1"))
    hears(Event(2, "server:job_answered", 5, "acme", attributes={"job": "j1"}))
    hears(Event(3, "server:job_offered", 5, "", attributes={"tenant": "acme", "agent": "main"}))
    hears(Event(4, "server:job_answered", 5, "", attributes={"tenant": "acme", "job": "j1"}))
    assert heard == [("offered", "acme", "main"), ("look", "acme", "j1")] * 2


class Noting:
    """Notes what is called with what."""

    def __init__(self, calls: list[tuple[str, ...]]) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *given: self._calls.append((name, *given))
