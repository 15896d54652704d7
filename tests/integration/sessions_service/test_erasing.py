"""All of an agent or a tenant is erased: what stands in every table, and what was said in the
file."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from contextengine import AsyncClient, ContextEngineError
from contextengine import types as t
from contextengine.messages import assistant, user
from tests.integration.harness import (
    ALICE,
    BOB,
    RUNTIME,
    TOKENS,
    House,
    budget,
    house,
    problem,
    ref,
)

SECRET = "xyzzy-what-alice-said"
Counts = dict[str, int]


@pytest.fixture
async def lived(tmp_path: Path) -> AsyncIterator[House]:
    """Two tenants with two agents each, which left traces wherever they can."""
    async with house(tmp_path, token=ALICE, **{"auth.tokens": TOKENS}) as made:
        for client, word in ((made.client, SECRET), (made.client_of(BOB), "what-bob-said")):
            for agent in ("agent", "other"):
                for name in ("s1", "s2"):
                    await live(client, ref(name, agent=agent), word)
                await client.engines.assign(
                    scope=t.SessionRef(agent_id=agent), options_json=b'{"freshTailTurns": 4}'
                )
            await client.engines.assign(options_json=b'{"freshTailTurns": 5}')
        yield made


async def live(client: AsyncClient, session: t.SessionRef, word: str) -> None:
    long = f" {word} and so on, my name is {word}" * 20
    said = [user(f"q{n}{long}") if n % 2 == 0 else assistant(f"a{n}{long}") for n in range(12)]
    await client.bootstrap(session, model="gpt-5")
    await client.ingest_batch(session, said, request_id="r1")
    await client.after_turn(
        session,
        [user("turn")],
        advancement_key="k1",
        usage=t.Usage(input_tokens=3, output_tokens=2),
    )
    await client.compact(session, force=True, budget=budget(2_000), request_id="c1")
    await client.engines.assign(scope=session, options_json=b'{"freshTailTurns": 3}')
    await client.sessions.delete(
        t.SessionRef(agent_id=session.agent_id, session_id="never"), request_id=session.session_id
    )
    await client.end_session(session)


def everything(tenant: str = "alice", agent: str = "", most: int = 0) -> Any:
    return t.DeleteRequest.Everything(tenant=tenant, agent_id=agent, max_sessions=most)


def traces(database: Path) -> dict[tuple[str, str], Counts]:
    """How many rows of each table are whose, by tenant and agent."""
    found: dict[tuple[str, str], Counts] = {}
    with closing(sqlite3.connect(database)) as db:
        names = [
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        for table in names:
            columns = {column[1] for column in db.execute(f"PRAGMA table_info({table})")}
            if "tenant" not in columns:
                continue
            agent = "agent" if "agent" in columns else "''"
            query = f"SELECT tenant, {agent}, COUNT(*) FROM {table} GROUP BY 1, 2"
            for tenant, whose, count in db.execute(query):
                found.setdefault((tenant, whose), {})[table] = count
    return found


def assert_kept(
    before: dict[tuple[str, str], Counts], after: dict[tuple[str, str], Counts], whose: Any
) -> None:
    """What nothing in the background changes is there as before."""
    steady = ("sessions", "messages", "assignments", "session_keys", "costs")
    assert [after[whose].get(name, 0) for name in steady] == [
        before[whose].get(name, 0) for name in steady
    ]


def said_in(database: Path, word: str) -> int:
    """How often a word stands in the files of a database."""
    files = database.parent.glob(f"{database.name}*")
    return sum(file.read_bytes().count(word.encode()) for file in files)


async def erased(client: AsyncClient, **asked: Any) -> Counts:
    """Asks until nothing is left; what went."""
    gone: Counter[str] = Counter()
    more = True
    while more:
        reply = await client.sessions.delete(everything_of=everything(**asked))
        more = reply.more
        gone.update(
            sessions=len(reply.session_ids),
            messages=reply.message_count,
            summaries=reply.summary_count,
            rows=reply.other_row_count,
        )
    return gone


async def test_all_of_a_tenant_goes_and_nothing_of_another(lived: House) -> None:
    before = traces(lived.database)
    tables = {name for whose, counts in before.items() if whose[0] == "alice" for name in counts}
    assert {"sessions", "messages", "summaries", "requests", "assignments", "search_cursors"} <= (
        tables
    )
    assert said_in(lived.database, SECRET) > 0
    gone = await erased(lived.client)
    assert gone["sessions"] == 4
    assert gone["messages"] >= 4 * 13
    assert gone["summaries"] >= 1
    assert gone["rows"] >= 3
    assert not (await lived.client.sessions.list()).sessions
    await lived.restart()  # what is erased in the background is by now, or goes on now
    await lived.stop()
    left = traces(lived.database)
    assert not [whose for whose in left if whose[0] == "alice"]
    for agent in ("", "agent", "other"):
        assert_kept(before, left, ("bob", agent))
    assert said_in(lived.database, SECRET) == 0
    assert said_in(lived.database, "what-bob-said") > 0
    await lived.start()
    assert await erased(lived.client) == {"sessions": 0, "messages": 0, "summaries": 0, "rows": 0}


async def test_all_of_an_agent_goes_and_nothing_of_another(lived: House) -> None:
    before = traces(lived.database)
    assert (await erased(lived.client, agent="other", most=1))["sessions"] == 2
    await lived.restart()  # what is erased in the background is by now, or goes on now
    await lived.stop()
    left = traces(lived.database)
    assert ("alice", "other") not in left
    for whose in before.keys() - {("alice", "other")}:
        assert_kept(before, left, whose)
    await lived.start()


async def test_a_part_at_a_time_says_whether_there_is_more(lived: House) -> None:
    first = await lived.client.sessions.delete(everything_of=everything(most=1))
    assert (len(first.session_ids), first.more, first.other_row_count) == (1, True, 0)
    await lived.restart()
    assert (await erased(lived.client, most=2))["sessions"] == 3


@pytest.mark.parametrize(("token", "tenant"), [(RUNTIME, "alice"), (BOB, "alice"), (ALICE, "bob")])
async def test_only_an_operator_of_the_tenant_erases_it(
    lived: House, token: str, tenant: str
) -> None:
    client = lived.client_of(token)
    with pytest.raises(ContextEngineError) as caught:
        await client.sessions.delete(everything_of=everything(tenant))
    assert problem(caught.value)[:2] == ("PERMISSION_DENIED", "PERMISSION_DENIED")
    for each in (ALICE, BOB):
        assert len((await lived.client_of(each).sessions.list()).sessions) == 4


async def test_an_erasure_is_told_without_what_was_said(lived: House) -> None:
    with capture_logs() as logs:
        await erased(lived.client, agent="other")
    [line] = [entry for entry in logs if entry["event"] == "erased"]
    told = {name: line[name] for name in ("tenant", "agent", "sessions", "more", "rpc")}
    assert told == {
        "tenant": "alice",
        "agent": "other",
        "sessions": 2,
        "more": False,
        "rpc": "contextengine.v1.Sessions/Delete",
    }
    assert SECRET not in str(logs)
