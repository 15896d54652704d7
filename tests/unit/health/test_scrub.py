"""Everything that is stored is read in the background and held against its hashes."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from msgspec.structs import replace

from contextengine_server.health.checks import ERROR, OK
from contextengine_server.health.scrub import Scrub, looked_through
from contextengine_server.session.address import Ref
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.telemetry.metrics import Metrics
from tests.unit.commands.house import AGENT, SMALL, Rows, Server, scope

SESSIONS = [Ref(AGENT, f"s{at}") for at in range(3)]


async def filled(rows: Rows) -> Server:
    """Three sessions of 24 messages, one of them summarized."""
    server = await Server(rows, **SMALL).open()
    for ref in SESSIONS:
        await server.talk(1, 12, ref=ref)
    await server.compact(ref=SESSIONS[1])
    return server


async def test_what_is_whole_is_said_to_be(rows: Rows) -> None:
    server = await filled(rows)
    seen = await looked_through(server.store)
    assert (seen.messages, seen.damaged, seen.missing) == (72, 0, 0)
    assert seen.summaries
    check = seen.check("store.rows")
    assert check.status == OK
    assert "72 messages" in check.found
    await server.close()


async def test_what_is_damaged_or_gone_is_named_and_counted(rows: Rows) -> None:
    server = await filled(rows)
    tables = rows.tables.sessions
    flipped = tables[scope(SESSIONS[0])].messages[7]
    body = bytes([*flipped.body[:-1], flipped.body[-1] ^ 1])
    tables[scope(SESSIONS[0])].put(replace(flipped, body=body))
    gone = tables[scope(SESSIONS[2])]
    del gone.messages[3]
    gone._sequences.remove(3)
    summarized = tables[scope(SESSIONS[1])].summaries
    name, summary = next(iter(summarized.items()))
    summarized[name] = replace(summary, text=summary.text + ".")
    metrics = Metrics()
    scrub = Scrub(server.store, 10, server.core.events, metrics)
    while await scrub.step():
        assert scrub.pause_s() >= 1
    assert (scrub.seen.damaged, scrub.seen.missing, scrub.seen.rounds) == (2, 1, 1)
    check = scrub.seen.check("scrub")
    assert check.status == ERROR
    for what in ("message 7 of session s0", f"summary {name} of", "message 3 of session s2"):
        assert what in check.found
    assert len(server.events("session:corrupt_row")) == 3
    shown = metrics.snapshot()
    assert [value for key, value in shown.items() if "scrub.found" in key] == [3]
    await server.close()


async def test_it_goes_on_where_it_was(rows: Rows) -> None:
    """After an outage of the store, and it reads what is there by then once a round."""
    server = await filled(rows)
    scrub = Scrub(server.store, 10)
    for _ in range(3):
        await scrub.step()
    before = scrub.seen.messages

    async def away() -> None:
        raise StoreUnavailable("away")

    server.store.before_read.append(away)
    try:
        await scrub.step()
    except StoreUnavailable:
        assert scrub.seen.messages == before
    while await scrub.step():
        pass
    assert scrub.seen.messages == 72
    while await scrub.step():
        pass
    assert (scrub.seen.messages, scrub.seen.rounds) == (144, 2)
    await server.close()


async def test_after_a_restart_it_goes_on_where_it_was(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also within a session, and in a tenant behind others; what is written down is little."""
    server = await filled(rows)
    clock = [100.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: clock[0])
    first = Scrub(server.store, 10)
    for _ in range(4):  # 10, 10 and 4 messages of one session, 10 of the next
        await first.sweep()
        clock[0] += 61
    assert first.seen.messages == 34
    again = Scrub(server.store, 10)
    while not again.seen.rounds:
        await again.sweep()
    assert again.seen.messages == 72 - 34, "some were read twice, or not at all"
    anew = Scrub(server.store, 10)
    while not anew.seen.rounds:
        await anew.sweep()
    assert anew.seen.messages == 72, "a round that is over begins again"
    await server.close()


def _replaced(kept: bytes, _: bytes) -> tuple[bytes, None]:
    return kept, None


async def test_a_place_that_is_gone_or_not_understood_costs_nothing_but_a_look(rows: Rows) -> None:
    server = await filled(rows)
    for kept in (
        b"{",
        b'{"tenant":"zzz","after":null}',
        b'{"tenant":"acme","after":null,"session":["main","gone"],"next":9}',
    ):
        await server.store.guards.change("", partial(_replaced, kept))
        scrub = Scrub(server.store, 10)
        while scrub.seen.rounds < 2:
            await scrub.sweep()
        assert scrub.seen.messages in (72, 144)
    await server.close()


async def test_where_it_is_is_written_down_once_a_minute(rows: Rows) -> None:
    server = await filled(rows)
    scrub = Scrub(server.store, 10)
    for _ in range(4):
        await scrub.sweep()
    assert await server.store.guards.state("") == b""
    await server.close()
