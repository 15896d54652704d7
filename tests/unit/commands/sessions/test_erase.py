"""Erase, command by command: how much a part takes away, and in which order."""

from __future__ import annotations

from contextengine_server.commands.sessions.erase import Erase
from contextengine_server.context.scope import Scope
from contextengine_server.store.memory import MemoryStore
from contextengine_server.store.rows import Assignment, Deleted
from contextengine_server.testing.store.rows import Pen


async def filled(sessions: int) -> MemoryStore:
    """A store with so many sessions of an agent, and a choice of its operator's."""
    store = MemoryStore()
    await store.open()
    for number in range(sessions):
        await Pen(store, Scope("acme", "main", f"s{number}")).write(count=1)
    await store.assign(Assignment("acme", "main", "", "dag"))
    return store


async def test_a_part_that_takes_long_ends_and_says_that_there_is_more() -> None:
    """Others' writes have their turn, and no call runs into its deadline."""
    store, time_s = await filled(5), 0.0

    async def slowly(scope: Scope) -> Deleted:
        nonlocal time_s
        time_s += 3.0
        return await store.delete(scope, expected_revision=None, cascade=True)

    work = Erase(store, slowly, now=lambda: time_s)
    parts = [await work.run("acme", "", 100) for _ in range(3)]
    assert [(len(part.sessions), part.rows, part.more) for part in parts] == [
        (2, 0, True),
        (2, 0, True),
        (1, 1, False),
    ]


async def test_what_stands_beside_sessions_goes_last_and_whoever_knows_it_is_told() -> None:
    store, told = await filled(2), list[str]()

    async def erase(scope: Scope) -> Deleted:
        assert await store.assignments("acme"), "as long as a session is there"
        return await store.delete(scope, expected_revision=None, cascade=True)

    work = Erase(store, erase, told.append)
    first = await work.run("acme", "main", 2)
    assert (first.sessions, first.more, told) == (("s1", "s0"), True, [])
    last = await work.run("acme", "main", 2)
    assert (last.sessions, last.rows, last.more, told) == ((), 1, False, ["acme"])
    assert (await work.run("acme", "main", 2)).rows == 0
