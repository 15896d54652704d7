"""A store is copied into another and back: what a server says on the copy is what it said before,
byte for byte, and nothing is lost on the way."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from contextengine import assistant, tool_call, tool_result, user
from contextengine import types as t
from contextengine_server.cli.output import CommandFailed
from contextengine_server.cli.store_copy import compare, copy
from contextengine_server.store.sqlite.kind import KIND as SQLITE
from contextengine_server.store.transfer.tables import OF_SESSIONS, WHOLE
from tests import postgres
from tests.databases import ON_SQLITE
from tests.integration.assemble.asking import ask_bytes
from tests.integration.harness import PATIENCE_S, House, budget, house, ref
from tests.integration.replay.playing import airline, coding, no_background, with_ids
from tests.integration.subagents.family import FORK

pytestmark = ON_SQLITE
ODD = "NUL \0, one \1 and \U0001f600"


async def fill(server: House, sample: int = 12) -> list[t.SessionRef]:
    """Sessions as they come to be: talks, a long one that was compacted, a fork, a rewind, facts of
    operators, one without a message."""
    client, made = server.client, []
    for number, talk in enumerate(airline(sample)):
        made.append(ref(f"talk-{number:03}", agent=f"agent-{number % 3}", key=f"key-{number}"))
        await client.ingest_batch(made[-1], with_ids(talk.messages))
    long = ref("long")
    await client.ingest_batch(long, with_ids(coding().messages))
    await client.compact(long, budget=budget(20_000), force=True)
    await client.ingest(long, user(ODD, id="odd"))
    child = ref("child")
    await client.prepare_subagent_spawn(long, child, context_mode=FORK)
    await client.ingest(child, user("and now, child?", id="c1"))
    await client.bootstrap(ref("bare"))
    call = tool_call("t1", "read", {"path": ODD})
    await client.ingest(ref("calls"), assistant(tool_calls=[call], id="a1"))
    await client.ingest(ref("calls"), tool_result("t1", ODD, id="a2"))
    return [*made, long, child, ref("bare"), ref("calls")]


async def answers(server: House, sessions: Sequence[t.SessionRef]) -> list[bytes]:
    """What a server says of each session, at two budgets."""
    said = []
    for session in sessions:
        for room in (6_000, 60_000):
            reply = t.AssembleResponse.FromString(
                await ask_bytes(server, session, budget=budget(room), explain=True)
            )
            # How long it took, and the name of this very call.
            reply.ClearField("metrics")
            reply.ClearField("assembly_id")
            said.append(reply.SerializeToString(deterministic=True))
        exported = await server.export(session)
        said += [one.SerializeToString() for one in (*exported.messages, *exported.summaries)]
    return said


async def hits(server: House) -> list[str]:
    """What a search finds in the long session, whose index is made again from the rows."""
    now = (await server.client.get_status(ref("long"))).revision
    found = await server.client.recall.search(ref("long"), query="test", at_least_revision=now)
    return [hit.id for hit in found.hits]


def counts(path: Path) -> dict[str, int]:
    """Rows of a file, by table."""
    with closing(sqlite3.connect(path)) as db:
        return {
            table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in (*OF_SESSIONS, *WHOLE)
        }


async def counted(url: str) -> dict[str, int]:
    """Rows of a database, by table."""
    raw = await asyncpg.connect(url)
    try:
        return {
            table: await raw.fetchval(f"SELECT count(*) FROM {table}")
            for table in (*OF_SESSIONS, *WHOLE)
        }
    finally:
        await raw.close()


@pytest.fixture
def url(tmp_path: Path) -> str:
    """An empty database of PostgreSQL."""
    postgres.require()
    return postgres.place(tmp_path)


@pytest.fixture
async def stored(tmp_path: Path) -> tuple[Path, list[t.SessionRef], list[bytes]]:
    """A file, what is in it, and what a server says of that."""
    async with house(tmp_path) as server:
        no_background(server)
        sessions = await fill(server)
        said = await answers(server, sessions)
    return tmp_path / "contextengine.db", sessions, said


async def test_there_and_back_a_server_says_the_same(
    stored: tuple[Path, list[t.SessionRef], list[bytes]], url: str, tmp_path: Path
) -> None:
    path, sessions, said = stored
    async with house(tmp_path) as server:
        found = await hits(server)
    assert found
    back = tmp_path / "back" / "contextengine.db"
    await copy(str(path), url, False, False)
    assert await compare(str(path), url, False)
    await copy(url, str(back), False, False)
    assert await compare(str(path), str(back), False)
    assert counts(path) == await counted(url) == counts(back)
    assert counts(path)["summaries"] > 0
    assert counts(path)["spawns"] == 1
    for settings in ({"store.url": url}, {"store.url": str(back)}):
        async with house(tmp_path / "other", **settings) as server:
            no_background(server)
            assert await answers(server, sessions) == said
            assert await hits(server) == found


async def test_it_is_copied_while_a_server_writes_and_again_for_the_rest(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "contextengine.db"
    async with house(tmp_path) as server:
        no_background(server)
        sessions = await fill(server)
        copied = asyncio.create_task(asyncio.to_thread(_run, copy(str(path), url, False, True)))
        for number in range(60):
            await server.client.ingest(ref("long"), user(f"meanwhile {number}", id=f"w{number}"))
        await copied
        await server.client.sessions.delete(sessions[0])
        await server.client.reset_session(sessions[1])
        said = await answers(server, sessions[2:])
    capsys.readouterr()
    await copy(str(path), url, False, True)
    done = json.loads(capsys.readouterr().out)
    assert done["erased"] == 1
    assert 1 <= done["sessions"] <= 3
    assert done["unchanged"] >= len(sessions) - 4
    assert await compare(str(path), url, False)
    async with house(tmp_path / "other", **{"store.url": url}) as server:
        no_background(server)
        assert await answers(server, sessions[2:]) == said


def _run(work: Any) -> None:
    asyncio.run(work)


async def test_what_the_target_holds_is_not_written_over(
    stored: tuple[Path, list[t.SessionRef], list[bytes]], url: str, tmp_path: Path
) -> None:
    path, _, said = stored
    await copy(str(path), url, False, False)
    async with house(tmp_path / "other", **{"store.url": url}) as server:
        with pytest.raises(CommandFailed, match="is in use by a server: stop it first"):
            await copy(str(path), url, False, False)
        await server.client.ingest(ref("long"), user("said on the copy", id="late"))
    with pytest.raises(CommandFailed, match=r"1 session .*written to since: default/agent/long"):
        await copy(str(path), url, False, False)
    other = tmp_path / "other.db"
    async with house(tmp_path / "third", **{"store.url": str(other)}) as server:
        await server.client.ingest(ref("mine"), user("mine", id="m1"))
    with pytest.raises(CommandFailed, match=r"the target is a copy of .*contextengine\.db"):
        await copy(str(other), url, False, False)
    assert not await compare(str(path), url, False)
    await copy(str(path), url, True, False)
    assert await compare(str(path), url, False)
    async with house(tmp_path / "other", **{"store.url": url}) as server:
        no_background(server)
        assert await answers(server, stored[1]) == said


async def test_a_copy_that_was_killed_goes_on(tmp_path: Path, url: str) -> None:
    path = tmp_path / "contextengine.db"
    async with house(tmp_path) as server:
        no_background(server)
        await fill(server, 120)
    words = [sys.executable, "-m", "contextengine_server.cli", "store", "copy", str(path), url]
    kills = 0
    raw = await asyncpg.connect(url)
    try:
        for wanted in (20, 60, 90):
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL)  # noqa: ASYNC220
            async with asyncio.timeout(PATIENCE_S):
                while await raw.fetchval("SELECT count(*) FROM sessions") < wanted:
                    assert process.poll() is None or kills
                    if process.poll() is not None:
                        break
                    await asyncio.sleep(0.002)
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
            process.wait(PATIENCE_S)
            # The database ends what the process began.
            async with asyncio.timeout(PATIENCE_S):
                while await raw.fetchval(
                    "SELECT count(*) FROM pg_stat_activity"
                    " WHERE application_name = 'contextengine-copy'"
                ):
                    await asyncio.sleep(0.01)
    finally:
        await raw.close()
    assert kills
    await copy(str(path), url, False, False)
    assert await compare(str(path), url, False)
    assert counts(path) == await counted(url)


async def test_what_cannot_be_copied(tmp_path: Path) -> None:
    absent, here = tmp_path / "absent.db", tmp_path / "here.db"
    for words, wrong in (
        ((str(absent), str(here)), "no store at"),
        ((str(here), str(here)), "cannot be copied into itself"),
        (("memory:", str(here)), "such a store has no schema"),
        (("nothing:x", str(here)), "the source must name a store that is installed"),
        (("postgresql://", str(here)), "the source must name a database"),
    ):
        with pytest.raises(CommandFailed, match=wrong):
            await copy(*words, False, False)
        assert not here.exists()
    source = tmp_path / "source.db"
    await SQLITE.migrate(str(source))
    async with house(tmp_path) as server:
        with pytest.raises(CommandFailed, match="is open in this process"):
            await copy(str(source), str(server.database), False, False)


async def test_a_damaged_row_is_told(
    stored: tuple[Path, list[t.SessionRef], list[bytes]], tmp_path: Path
) -> None:
    path, *_ = stored
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE messages SET host_id = CAST(x'ff6d' AS TEXT) WHERE host_id = 'odd'")
        db.commit()
    with pytest.raises(CommandFailed, match="cannot be copied: Could not decode to UTF-8"):
        await copy(str(path), str(tmp_path / "copy.db"), False, False)
