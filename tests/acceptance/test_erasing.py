"""An erasure that a crash cuts off is finished by the same command, with or without a server."""

from __future__ import annotations

import asyncio
from pathlib import Path

from contextengine import AsyncClient
from contextengine import types as t
from contextengine.messages import user
from tests.acceptance.shell import PATIENCE_S, Shell, serving, store_of

SECRET = "xyzzy-what-is-to-be-forgotten"
SESSIONS = 30


def holding(directory: Path, word: str) -> list[str]:
    """The files of the store in which a word stands."""
    files = directory.glob("store.db*")
    return [file.name for file in files if word.encode() in file.read_bytes()]


async def test_an_erasure_goes_on_after_a_crash(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    everything = t.DeleteRequest.Everything(tenant="default", agent_id="main", max_sessions=1)
    with serving(tmp_path) as server:
        async with AsyncClient(server.address) as client:
            for number in range(SESSIONS):
                await client.ingest(
                    t.SessionRef(agent_id="main", session_id=f"s{number}"), user(SECRET)
                )
            await client.ingest(t.SessionRef(agent_id="kept", session_id="s"), user("kept"))
            gone = 0

            async def erase() -> None:
                nonlocal gone
                while (await client.sessions.delete(everything_of=everything)).more:
                    gone += 1

            erasing = asyncio.create_task(erase())
            async with asyncio.timeout(PATIENCE_S):
                while gone < 3:
                    await asyncio.sleep(0.001)
            server.process.kill()
            server.process.wait(PATIENCE_S)
            erasing.cancel()
            await asyncio.gather(erasing, return_exceptions=True)
    command = ("delete", "--tenant", "default", "--agent", "main", "--yes", "--json")
    done = shell.run(*command, "--store", store_of(tmp_path)).json()
    assert SESSIONS - gone - 1 <= done["sessions"] <= SESSIONS - gone
    assert not holding(tmp_path, SECRET)
    with serving(tmp_path) as again:
        asking = Shell(tmp_path, again.address)
        assert asking.run(*command).json()["sessions"] == 0
        async with AsyncClient(again.address) as client:
            left = (await client.sessions.list()).sessions
        assert [one.agent_id for one in left] == ["kept"]
        told = asking.run("delete", "--tenant", "default", "--yes").text
        assert told.startswith("erased tenant 'default': 1 sessions, 1 messages, 0 summaries")
        refused = asking.run("delete", "--tenant", "acme", "--yes", status=1)
        assert "another tenant's" in refused.err
