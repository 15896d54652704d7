"""One bad summary is one bad summary: a label in the place of its text for every reader, what it
covers within reach, and made again where it stands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.compaction.queue import remake_owed
from contextengine_server.context.plan import Summarized
from contextengine_server.health.checks import ERROR, OK
from contextengine_server.recall.expansion import Wanted
from contextengine_server.recall.query import Query
from contextengine_server.session.address import Ref
from contextengine_server.store.rows import SummaryRow
from contextengine_server.wire.damage import DAMAGED_SUMMARY, intact
from tests.unit.commands.house import AGENT, S1, SMALL, TENANT, Rows, Server, same_as_cold, scope

NAME = "session.integrity.summary_hash"

DAMAGE: dict[str, Callable[[SummaryRow], SummaryRow]] = {
    "altered": lambda row: replace(row, text=row.text.replace("saw", "SOLD")),
    "emptied": lambda row: replace(row, text=""),
    "undecodable": lambda row: replace(row, text="\ufffd" + row.text),
    "children": lambda row: replace(row, children=("s0-00000000",)),
    "no children": lambda row: replace(row, text=row.text + "!", children=()),
}


def damage(rows: Rows, id: str, how: str) -> None:
    """What a disk does to a row."""
    summaries = rows.tables.sessions[scope()].summaries
    summaries[id] = DAMAGE[how](summaries[id])


async def compacted(rows: Rows, count: int = 8, times: int = 1) -> Server:
    server = await Server(rows, **SMALL).open()
    for at in range(times):
        await server.talk(1 + at * count, count)
        assert (await server.compact(4_000)).done.summaries
    return server


async def again(rows: Rows, server: Server) -> Server:
    """A server that remembers nothing of the session."""
    await server.close()
    return await Server(rows, **SMALL).open()


async def top(server: Server) -> list[str]:
    assembly = await server.assemble()
    return [one.summary.id for one in assembly.plan.segments if isinstance(one, Summarized)]


@pytest.mark.parametrize("how", ["altered", "emptied", "undecodable"])
async def test_a_bad_summary_is_a_label_and_is_made_again(rows: Rows, how: str) -> None:
    server = await compacted(rows)
    first, *others = await top(server)
    whole = await server.shown()
    old = next(row for row in await server.store.summaries(scope()) if row.id == first)
    damage(rows, first, how)
    server = await again(rows, server)

    said = await server.shown()
    assert DAMAGED_SUMMARY in said[0]
    assert f"descendant_count={old.message_count}" in said[0]
    assert said[1:] == whole[1:]
    [event] = server.events("session:corrupt_row")
    assert event.counts == {"rows": 1, "summaries": 1, "first": old.first_sequence}
    (seen,) = [
        row
        for row in await (await server.sessions.export.run(TENANT, S1)).summaries()
        if not intact(row)
    ]
    assert seen.id == first
    inspected = await server.recall.inspect.run(TENANT, S1, first, "")
    assert inspected.found.row.text == DAMAGED_SUMMARY
    expanded = await server.recall.expand.run(TENANT, S1, Wanted(summary_ids=[first]), "")
    assert "u1 saw file1" in str(expanded)
    checks = {one.name: one for one in await server.engines.doctor.run(TENANT, S1)}
    assert checks[NAME].status == ERROR
    assert first in checks[NAME].found
    assert "CORRUPT_ROW" in checks[NAME].found

    checks = {one.name: one for one in await server.engines.doctor.run(TENANT, S1, repair=True)}
    assert checks[NAME].status == OK
    assert NAME not in {one.name for one in await server.engines.doctor.run(TENANT, S1)}
    after = await top(server)
    assert (after[0] != first, after[1:]) == (True, others)
    now = next(row for row in await server.store.summaries(scope()) if row.id == after[0])
    assert (now.remakes, now.first_sequence, now.last_sequence) == (first, 1, old.last_sequence)
    assert not any(DAMAGED_SUMMARY in text for text in await server.shown())
    server = await again(rows, server)
    assert await top(server) == after
    assert server.events("session:corrupt_row") == []
    # It comes back by no undo: what stands in its place has its generation.
    await server.compact(undo_to_generation=old.generation, force=False)
    assert (await top(server))[0] == after[0]
    await server.close()


@pytest.mark.parametrize("undone", [False, True])
async def test_who_goes_on_from_there_sees_what_was_made_again(rows: Rows, undone: bool) -> None:
    """The one that is made again is newer than where the child stands."""
    server = await compacted(rows)
    first = (await top(server))[0]
    child = Ref(AGENT, "child")
    await server.context.bootstrap.run(TENANT, child, Introduction(continues=S1))
    damage(rows, first, "altered")
    server = await again(rows, server)
    assert DAMAGED_SUMMARY in (await server.shown(ref=child))[0]
    whole = (await server.shown(ref=child))[1:]
    await server.engines.doctor.run(TENANT, S1, repair=True)
    if undone:
        await server.compact(undo_to_generation=0, force=False)
    server = await again(rows, server)
    said = await server.shown(ref=child)
    assert DAMAGED_SUMMARY not in said[0]
    assert "SOLD" not in said[0]
    assert said[1:] == whole
    inspected = await server.recall.inspect.run(TENANT, child, first, "")
    assert inspected.found.row.remakes == first
    assert DAMAGED_SUMMARY not in inspected.found.row.text
    await server.close()


async def test_what_search_finds_holds_no_damaged_text(rows: Rows) -> None:
    server = await compacted(rows)
    first = (await top(server))[0]
    damage(rows, first, "altered")
    server = await again(rows, server)
    held = [row for _, row in await server.store.index.summaries(scope(), 0)]
    assert any("SOLD" in row.text for row in held)
    server.indexer.start()
    await server.indexer.reached(scope(), (await server.head()).revision)
    for text in ("SOLD", "u1 SOLD"):
        found = await server.recall.search.run(TENANT, S1, Query(text), 0, "")
        assert not any("SOLD" in hit.snippet for hit in found.page.hits)
    await server.close()


async def test_a_compaction_owes_what_is_damaged(rows: Rows) -> None:
    server = await compacted(rows)
    damage(rows, (await top(server))[0], "altered")
    server = await again(rows, server)
    async with server.core.sessions.open(scope(), None) as session:
        assert remake_owed(scope(), session.live_summaries, 1) is not None
        bad = [replace(one, origin="host") for one in session.live_summaries]
        assert remake_owed(scope(), bad, 1) is None
    await server.close()


@pytest.mark.parametrize("how", DAMAGE)
async def test_what_was_made_of_others_stays_above_them(rows: Rows, how: str) -> None:
    server = await compacted(rows, count=6, times=8)
    before = await top(server)
    deep = next(row for row in await server.store.summaries(scope()) if row.depth)
    assert deep.id in before
    damage(rows, deep.id, how)
    server = await again(rows, server)
    assert await top(server) == before
    assert (await server.compact(redo=True)).done.error == ""
    after = await top(server)
    assert len(after) == len(before)
    assert DAMAGED_SUMMARY not in " ".join(await server.shown())
    other = await Server(rows, **SMALL).open()
    await same_as_cold(server, other)
    await other.close()
    await server.close()


@settings(max_examples=15, deadline=None)
@given(
    bad=st.lists(st.integers(0, 60), max_size=6),
    how=st.sampled_from(sorted(DAMAGE)),
    budget=st.integers(500, 12_000),
)
def test_whatever_is_damaged_the_rest_is_served(bad: list[int], how: str, budget: int) -> None:
    asyncio.run(_served(bad, how, budget))


async def _served(bad: list[int], how: str, budget: int) -> None:
    rows = Rows()
    server = await compacted(rows, count=6, times=7)
    ids = sorted(rows.tables.sessions[scope()].summaries)
    for at in bad:
        damage(rows, ids[at % len(ids)], how)
    server = await again(rows, server)
    assert not any("SOLD" in text for text in await server.shown(budget))
    await server.compact(budget)
    await server.talk(43, 2)
    assert not any("SOLD" in text for text in await server.shown(budget))
    done = await server.sessions.export.run(TENANT, S1)
    assert len([row async for row in done.messages()]) == 88
    checks = {one.name: one for one in await server.engines.doctor.run(TENANT, S1, repair=True)}
    assert NAME not in checks or checks[NAME].status == OK
    assert not any(DAMAGED_SUMMARY in text for text in await server.shown(budget))
    server = await again(rows, server)
    assert not any(DAMAGED_SUMMARY in text for text in await server.shown(budget))
    assert server.events("session:corrupt_row") == []
    await server.close()
