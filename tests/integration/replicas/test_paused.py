"""A server that stands still (SIGSTOP) for longer than its lease: another does its work, and what
it commits once it goes on is refused."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest

from contextengine import AsyncClient
from contextengine import types as t
from contextengine.messages import user
from tests import postgres
from tests.integration.harness import PATIENCE_S, budget, ref
from tests.integration.summarize.provider import GOOD, Provider, Request, answer, provider
from tests.soak.killing import Child

LATE = f"{GOOD} That was said too late."
MESSAGES = [
    t.Message(
        id=f"m{n}",
        role=t.ROLE_ASSISTANT if n % 2 else t.ROLE_USER,
        parts=[t.Part(text=t.TextPart(text=f"Step {n}. " + "The build went on. " * 60))],
    )
    for n in range(8)
]


def served_by(model: Provider) -> dict[str, str]:
    """The environment of a server whose summaries that model writes."""
    endpoint = {"name": "model", "base_url": model.base_url, "model": "small", "timeout": "5m"}
    return {
        "CONTEXTENGINE_SUMMARIZER__ENDPOINTS": json.dumps([endpoint]),
        "CONTEXTENGINE_SUMMARIZER__ORDER": json.dumps(["endpoints", "extractive"]),
        "CONTEXTENGINE_SUMMARIZER__REMAKE": "false",
        "CONTEXTENGINE_ENGINE__DAG__FRESH_TAIL_TURNS": "1",
    }


async def compacted(client: AsyncClient) -> t.CompactResponse:
    return await client.compact(ref(), budget=budget(4_000), force=True)


async def summaries(client: AsyncClient) -> list[str]:
    """What is stored of them, retired ones as well."""
    found = [part async for part in client.sessions.export(ref(), include_retired=True)]
    return [part.summary.text for part in found if part.WhichOneof("kind") == "summary"]


@pytest.mark.timeout(0)
async def test_what_a_paused_server_commits_late_is_refused(tmp_path: Path) -> None:
    postgres.require()
    url = postgres.place(tmp_path)
    asked, let, told = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def held_back(request: Request, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await let.wait()
        await answer(LATE)(request, writer)
        await writer.drain()
        told.set()

    async with provider(held_back, answer(GOOD)) as model:
        paused, other = (Child(tmp_path / name, url, **served_by(model)) for name in ("a", "b"))
        try:
            await paused.start()
            await other.start()
            async with (
                AsyncClient(f"127.0.0.1:{paused.port}") as its_client,
                AsyncClient(f"127.0.0.1:{other.port}") as client,
                asyncio.timeout(4 * PATIENCE_S),
            ):
                await its_client.ingest_batch(ref(), MESSAGES)
                late = asyncio.create_task(compacted(its_client))
                await asked.wait()
                assert paused.process is not None
                paused.process.send_signal(signal.SIGSTOP)
                done = await compacted(client)  # waits for the lease, which runs out
                assert done.compacted
                before = await client.assemble(ref(), budget=budget(4_000))
                stored = await summaries(client)
                let.set()
                paused.process.send_signal(signal.SIGCONT)
                await late
                assert told.is_set(), "the summary did come to it"
                # Its summary is nowhere: not stored, not shown, by neither of them.
                assert await summaries(its_client) == await summaries(client) == stored
                assert stored
                assert not any("too late" in text for text in stored)
                for one in (its_client, client):
                    after = await one.assemble(ref(), budget=budget(4_000))
                    assert after.context_hash == before.context_hash
                # And it goes on with what is there.
                await its_client.ingest(ref(), user("on", id="m8"))
                shown = await client.assemble(ref(), budget=budget(4_000))
                assert shown.items[-1].message.id == "m8"
        finally:
            for child in (paused, other):
                if child.process is not None and child.process.returncode is None:
                    child.process.send_signal(signal.SIGCONT)
                    await child.kill()
