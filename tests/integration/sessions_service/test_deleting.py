"""Delete erases a session and everything derived from it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import pytest

from contextengine import ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, user
from tests.integration.harness import PATIENCE_S, House, budget, problem, ref, texts

SECRET = "xyzzy-the-secret-of-this-session"


async def lived(house: House, session: t.SessionRef) -> None:
    """A session that left traces wherever a session can: rows, summaries, answers, keys, debts, a
    choice of engine."""
    client = house.client
    await client.bootstrap(session, host=t.HostInfo(host_id=SECRET), model="gpt-5")
    long = f" {SECRET} and so on" * 60
    said = [user(f"q{n}" + long) if n % 2 == 0 else assistant(f"a{n}" + long) for n in range(40)]
    await client.ingest_batch(session, said, request_id="r1")
    await client.after_turn(
        session, [user("turn")], advancement_key="k1", usage=t.Usage(input_tokens=3)
    )
    await client.compact(session, force=True, budget=budget(3_000), request_id="c1")
    rewind = t.RecordHostChangeRequest.Rewind(after_sequence=38)
    await client.record_host_change(session, rewind=rewind)
    await client.assemble(session, ingest=[user("more" + long)], budget=budget(1_000))
    await client.engines.assign(scope=session, options_json=b'{"freshTailTurns": 3}')


def traces(house: House, session: str, agent: str = "agent") -> dict[str, int]:
    """How many rows of each table name the session."""
    with closing(sqlite3.connect(house.database)) as db:
        tables = [
            name
            for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if {"agent", "session"}
            <= {column[1] for column in db.execute(f"PRAGMA table_info({name})")}
        ]
        assert {"sessions", "messages", "summaries", "requests", "debts", "assignments"} <= set(
            tables
        )
        query = "SELECT COUNT(*) FROM {} WHERE tenant = 'default' AND agent = ? AND session = ?"
        counts = {
            name: db.execute(query.format(name), (agent, session)).fetchone()[0] for name in tables
        }
    return {name: count for name, count in counts.items() if count}


async def settled(house: House, session: str, gone: bool) -> None:
    """Waits for what follows an acknowledgement in the background: the search index is filled, and
    erased in pieces, and what the session owes is worked off."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            left = traces(house, session)
            if not left if gone else "search_cursors" in left and "debts" not in left:
                return
            await asyncio.sleep(0.05)


async def test_no_row_is_left(house: House) -> None:
    await lived(house, ref("doomed", key="main"))
    await lived(house, ref("spared", key="other"))
    for name in ("doomed", "spared"):
        await settled(house, name, gone=False)
    before = await house.client.sessions.get(ref("doomed"))
    assert {"sessions", "messages", "summaries", "requests", "assignments", "session_keys"} <= set(
        traces(house, "doomed")
    )
    spared = traces(house, "spared")
    reply = await house.client.sessions.delete(ref("doomed"))
    assert (reply.deleted, list(reply.session_ids)) == (True, ["doomed"])
    assert reply.message_count >= 40, "rows that left the view are erased as well"
    assert reply.summary_count >= before.session.summary_count > 0
    await settled(house, "doomed", gone=True)
    assert traces(house, "spared") == spared
    await house.stop()
    assert traces(house, "doomed") == {}
    await house.start()
    for call in (
        house.client.get_status(ref("doomed")),
        house.client.get_status(ref("", key="main")),
        house.rows(ref("doomed"), include_retired=True),
    ):
        with pytest.raises(ContextEngineError) as caught:
            await call
        assert caught.value.reason == "SESSION_NOT_FOUND"


async def test_its_text_is_gone_from_the_file(house: House) -> None:
    await lived(house, ref("doomed"))
    await settled(house, "doomed", gone=False)
    await house.client.sessions.delete(ref("doomed"))
    await settled(house, "doomed", gone=True)
    await house.stop()
    left = [
        path.name
        for path in house.database.parent.iterdir()
        if SECRET.encode() in path.read_bytes()
    ]
    assert left == []
    await house.start()


async def test_what_is_deleted_before_it_is_indexed_leaves_no_row_either(house: House) -> None:
    for number in range(10):
        await house.client.ingest_batch(ref(f"s{number}"), [user(SECRET) for _ in range(20)])
        await house.client.sessions.delete(ref(f"s{number}"))
    async with asyncio.timeout(PATIENCE_S):
        while await house.app.store.index.behind(1):
            await asyncio.sleep(0.01)
    for number in range(10):
        await settled(house, f"s{number}", gone=True)


async def test_a_deleted_session_begins_anew(house: House) -> None:
    message = user("one", id="m1")
    await house.client.ingest(ref(), message, request_id="r1")
    held = await house.client.assemble(ref())
    await house.client.sessions.delete(ref())
    stored = await house.client.ingest(ref(), message, request_id="r1")
    assert (stored.stored.disposition, stored.stored.sequence, stored.revision) == (1, 1, 1)
    again = await house.client.assemble(ref(), known_epoch=held.context_projection.epoch)
    assert again.context_projection.epoch != held.context_projection.epoch


async def test_deleting_twice_is_safe(house: House) -> None:
    await house.client.ingest(ref(), user("one"))
    first = await house.client.sessions.delete(ref(), request_id="r1")
    again = await house.client.sessions.delete(ref(), request_id="r1")
    assert (first.deleted, again) == (True, first)
    assert not (await house.client.sessions.delete(ref())).deleted
    assert (await house.client.sessions.delete(ref("none"))).deleted is False


async def test_another_revision_than_expected_erases_nothing(house: House) -> None:
    await house.client.ingest(ref(), user("one"))
    with pytest.raises(ContextEngineError) as caught:
        await house.client.sessions.delete(ref(), expected_revision=2)
    assert problem(caught.value) == (
        "FAILED_PRECONDITION",
        "REVISION_MISMATCH",
        ["expected_revision"],
    )
    assert caught.value.metadata == {"expected": "2", "actual": "1"}
    assert texts(await house.rows(ref())) == ["one"]
    assert (await house.client.sessions.delete(ref(), expected_revision=1)).deleted


async def test_a_key_does_not_say_what_to_erase(house: House) -> None:
    await house.client.ingest(ref("s1", key="main"), user("one"))
    with pytest.raises(ContextEngineError) as caught:
        await house.client.sessions.delete(ref("", key="main"))
    assert problem(caught.value) == ("INVALID_ARGUMENT", "INVALID_FIELD", ["session.session_id"])
    assert texts(await house.rows(ref("s1"))) == ["one"]


async def test_a_deletion_among_writers(house: House) -> None:
    """Each write lands in the old session or in a new one, never in between."""

    async def write(number: int) -> None:
        for n in range(10):
            await house.client.ingest(ref(), user(f"{number}/{n}"))

    writers = [asyncio.create_task(write(n)) for n in range(8)]
    for _ in range(5):
        await asyncio.sleep(0.01)
        await house.client.sessions.delete(ref())
    await asyncio.gather(*writers)
    await house.client.ingest(ref(), user("last"))
    rows = await house.rows(ref())
    assert [row.sequence for row in rows] == list(range(1, len(rows) + 1))
    status = await house.client.get_status(ref())
    assert (status.message_count, status.revision) == (len(rows), len(rows))


async def test_a_deletion_that_is_sent_again_erases_no_other_session(house: House) -> None:
    session = ref("again")
    await house.client.ingest(session, user("first"))
    first = await house.client.sessions.delete(session, request_id="d1")
    assert (first.deleted, first.message_count) == (True, 1)
    await house.client.ingest(session, user("another of the name"))
    await house.restart()
    again = await house.client.sessions.delete(session, request_id="d1")
    assert again == first
    assert texts(await house.rows(session)) == ["another of the name"]
    with pytest.raises(ContextEngineError) as reused:
        await house.client.sessions.delete(session, request_id="d1", cascade=True)
    assert reused.value.reason == "REQUEST_ID_REUSED"
    assert (await house.client.sessions.delete(session, request_id="d2")).deleted
    assert not (await house.client.sessions.delete(session, request_id="d3")).deleted
    # The answers are the agent's, and no row names the session.
    await settled(house, "again", True)
