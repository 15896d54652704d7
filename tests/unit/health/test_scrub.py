"""Everything that is stored is read in the background and held against its hashes."""

from __future__ import annotations

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
