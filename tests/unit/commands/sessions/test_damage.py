"""One bad row is one bad row: a labelled gap for every reader, mended by importing the session
again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from contextengine_server.commands.lifecycle.record_host_change import Rewound
from contextengine_server.commands.subagents.prepare_subagent_spawn import SpawnRequest
from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.errors import SessionExists
from contextengine_server.session.address import Ref
from contextengine_server.wire.damage import ABSENT
from tests.unit.commands.house import (
    AGENT,
    S1,
    SMALL,
    TENANT,
    Rows,
    Server,
    request,
    scope,
    spoken,
    turns,
    user,
)
from tests.unit.commands.house import incoming as read_in

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "undecodable": lambda body: b"\xff" + body,
    "emptied": lambda body: b"",
    "altered": lambda body: body.replace(b"w", b"W"),
}


def label(sequence: int) -> str:
    return f"[message {sequence} is damaged in the store and cannot be shown]"


def damage(rows: Rows, sequence: int, how: str) -> None:
    """What a disk does to a row."""
    session = rows.tables.sessions[scope()]
    row = session.messages[sequence]
    session.put(replace(row, body=DAMAGE[how](row.body)))


async def again(rows: Rows, server: Server) -> Server:
    """A server that remembers nothing of the session."""
    await server.close()
    return await Server(rows, **SMALL).open()


@pytest.mark.parametrize("how", DAMAGE)
async def test_a_bad_row_is_a_gap_and_is_mended(rows: Rows, how: str) -> None:
    server = await Server(rows, **SMALL).open()
    said = spoken("a word", "b word", "c word")
    await server.context.ingest.run(TENANT, S1, said, None)
    damage(rows, 2, how)
    server = await again(rows, server)
    assert await server.shown() == ["a word", label(2), "c word"]
    [event] = server.events("session:corrupt_row")
    assert (event.counts["rows"], event.counts["first"]) == (1, 2)
    await server.ingest("d word")
    assert await server.shown() == ["a word", label(2), "c word", "d word"]
    done = await server.sessions.export.run(TENANT, S1)
    assert len([row async for row in done.messages()]) == 4

    with pytest.raises(SessionExists):
        await server.sessions.import_.run(
            TENANT, S1, Introduction(), read_in(user("a word", "a"), user("B word", "b"))
        )
    assert (await server.shown())[1] == label(2)
    told = await server.sessions.import_.run(
        TENANT, S1, Introduction(), spoken("a word", "b word", "c word", "d word")
    )
    assert told.stored == 0
    assert await server.shown() == ["a word", "b word", "c word", "d word"]
    server = await again(rows, server)
    assert await server.shown() == ["a word", "b word", "c word", "d word"]
    assert server.events("session:corrupt_row") == []
    await server.close()


async def test_of_a_fork_of_damaged_messages_it_is_told_as_well(rows: Rows) -> None:
    server = await Server(rows, **SMALL).open()
    await server.context.ingest.run(TENANT, S1, spoken("a word", "b word"), None)
    damage(rows, 2, "altered")
    server = await again(rows, server)
    await server.shown()
    await server.context.prepare_subagent_spawn.run(
        TENANT, SpawnRequest(S1, Ref(AGENT, "child"), fork=True)
    )
    told = server.events("session:corrupt_row")
    assert [event.session for event in told] == [S1.session, "child"]
    assert [event.counts["first"] for event in told] == [2, 2]
    await server.close()


@settings(max_examples=12, deadline=None)
@given(
    bad=st.sets(st.integers(1, 24), max_size=6),
    how=st.sampled_from(sorted(DAMAGE)),
    budget=st.integers(500, 12_000),
)
def test_whatever_is_damaged_the_rest_is_served(bad: set[int], how: str, budget: int) -> None:
    asyncio.run(_served(bad, how, budget))


async def _served(bad: set[int], how: str, budget: int) -> None:
    rows = Rows()
    server = await Server(rows, **SMALL).open()
    await server.context.ingest.run(TENANT, S1, turns(1, 12), None)
    for sequence in bad:
        damage(rows, sequence, how)
    server = await again(rows, server)
    await server.shown(budget)
    await server.compact(budget)
    shown = await server.shown(budget)
    assert not any("saW" in text for text in shown)
    done = await server.sessions.export.run(TENANT, S1)
    assert len([row async for row in done.messages()]) == 24
    await server.close()


def lose(rows: Rows, *sequences: int) -> None:
    """Rows that are not there any more."""
    session = rows.tables.sessions[scope()]
    for sequence in sequences:
        del session.messages[sequence]
        session._sequences.remove(sequence)


@pytest.mark.parametrize("lost", [(1,), (7,), (24,), (2, 3, 11)])
async def test_a_row_that_is_not_there_is_a_gap(rows: Rows, lost: tuple[int, ...]) -> None:
    server = await Server(rows, **SMALL).open()
    await server.context.ingest.run(TENANT, S1, turns(1, 12, 60), None)
    before = await server.shown()
    lose(rows, *lost)
    server = await again(rows, server)
    gaps = {at: f"[message {at} is missing in the store and cannot be shown]" for at in lost}
    expected = [gaps.get(at, text) for at, text in enumerate(before, 1)]
    assert await server.shown() == expected
    [event] = server.events("session:corrupt_row")
    assert (event.counts["rows"], event.counts["first"]) == (len(lost), lost[0])
    done = await server.sessions.export.run(TENANT, S1)
    exported = [row async for _, row in done.messages()]
    assert [row.sequence for row in exported] == list(range(1, 25))
    assert [row.sequence for row in exported if row.content_hash == ABSENT] == list(lost)
    # Whatever part of it is in memory.
    server = await again(rows, server)
    for budget in (400, 100_000):
        shown = await server.shown(budget)
        assert shown == expected[len(expected) - len(shown) :]
    await server.ingest("goes on")
    assert (await server.shown())[-1] == "goes on"
    await server.close()


async def test_what_left_the_view_is_no_gap(rows: Rows) -> None:
    server = await Server(rows, **SMALL).open()
    await server.context.ingest.run(TENANT, S1, spoken("a", "b", "c"), None)
    await server.context.record_host_change.run(TENANT, S1, Rewound(1), request())
    lose(rows, 3)
    server = await again(rows, server)
    assert await server.shown() == ["a"]
    await server.close()
