"""A backup is rehearsed: made while agents write, and served after a crash."""

from __future__ import annotations

import asyncio
from pathlib import Path

from contextengine import AsyncClient
from contextengine import types as t
from contextengine.messages import user
from tests.acceptance.shell import PATIENCE_S, Shell, serving
from tests.databases import ON_SQLITE

SESSION = t.SessionRef(agent_id="main", session_id="s")


@ON_SQLITE
async def test_what_was_acknowledged_before_a_backup_is_there_after_a_crash(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    said = 0
    with serving(tmp_path) as server:
        async with AsyncClient(server.address) as client:

            async def speak() -> None:
                nonlocal said
                while True:
                    await client.ingest(SESSION, user(f"word {said}", id=f"m{said}"))
                    said += 1

            speaking = asyncio.create_task(speak())

            async def more() -> int:
                """How many are acknowledged, once there are some more."""
                before = said
                async with asyncio.timeout(PATIENCE_S):
                    while said < before + 20:
                        assert not speaking.done(), speaking.exception()
                        await asyncio.sleep(0.01)
                return said

            sure = await more()
            found = await asyncio.to_thread(
                shell.run, "backup", "copy.db", "--store", "store.db", "--json"
            )
            backed_up = found.json()["messages"]
            assert backed_up >= sure
            assert await more() > backed_up
            refused = await asyncio.to_thread(
                shell.run, "restore", "copy.db", "--store", "store.db", "--replace", status=1
            )
            assert "in use by process" in refused.err
            assert "stop that server" in refused.err
            server.process.kill()
            server.process.wait(PATIENCE_S)
            await asyncio.gather(speaking, return_exceptions=True)
    shell.run("restore", "copy.db", "--store", "store.db", "--replace")
    with serving(tmp_path) as again:
        async with AsyncClient(again.address) as client:
            assert (await client.get_status(SESSION)).message_count == backed_up
            await client.ingest(SESSION, user(f"word {backed_up}", id=f"m{backed_up}"))
            stored = [part.message async for part in client.sessions.export(SESSION)]
    texts = [one.message.parts[0].text.text for one in stored if one.HasField("message")]
    assert texts == [f"word {at}" for at in range(backed_up + 1)]
