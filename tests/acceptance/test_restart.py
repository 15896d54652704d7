"""Restarts: a server that is stopped under load fails no call that it could still answer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from contextengine import AsyncClient, ContextEngineError
from contextengine import types as t
from contextengine.messages import user
from tests.acceptance.shell import PATIENCE_S
from tests.soak.killing import Child

RESTARTS = 3
CALLERS = 24
PATIENT: dict[str, Any] = {
    "retry_for": PATIENCE_S,
    "timeouts": {"ContextEngine.Ingest": PATIENCE_S},
}
"""A crowded machine takes longer to start a server than clients wait where nobody tells them."""


async def test_a_restart_under_load_fails_no_call(tmp_path: Path) -> None:
    """What had begun is finished, what arrives while the server drains or is gone is UNAVAILABLE,
    which the client repeats until the next server is up, and no message is lost or stored twice.
    Each server goes again a second after it was found."""
    child = Child(tmp_path / "store.db")
    failed: list[str] = []
    said = [0] * CALLERS
    ending = asyncio.Event()

    async def speak(client: AsyncClient, number: int) -> None:
        session = t.SessionRef(agent_id="main", session_id=f"s{number}")
        while not ending.is_set():
            try:
                await client.ingest(session, user("hello", id=f"{number}-{said[number]}"))
            except ContextEngineError as error:
                failed.append(f"{error.code}: {error}")
                return
            else:
                said[number] += 1

    await child.start()
    try:
        async with (
            AsyncClient(f"127.0.0.1:{child.port}", **PATIENT) as client,
            asyncio.TaskGroup() as callers,
        ):
            for number in range(CALLERS):
                callers.create_task(speak(client, number))
            for _ in range(RESTARTS):
                await asyncio.sleep(1)
                await child.end()
                before = sum(said)
                assert child.process is not None
                assert child.process.returncode == 0
                assert "Traceback" not in child.said()
                await child.start()
                async with asyncio.timeout(PATIENCE_S):
                    while sum(said) == before and not failed:
                        await asyncio.sleep(0.05)
            ending.set()
        assert failed == []
        async with AsyncClient(f"127.0.0.1:{child.port}") as client:
            for number, count in enumerate(said):
                session = t.SessionRef(agent_id="main", session_id=f"s{number}")
                status = await client.get_status(session)
                assert status.message_count == count, session.session_id
    finally:
        await child.end()
