"""A full disk: health says it, reads are answered on, and what they owe is recorded later."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from contextengine import types as t
from contextengine.messages import user
from contextengine_server.health import readiness
from tests.databases import ON_SQLITE
from tests.integration.harness import PATIENCE_S, House, budget, house, ref

SERVING = health_pb2.HealthCheckResponse.SERVING


@contextmanager
def full_disk(directory: Path) -> Iterator[None]:
    """No file may grow further than the log of the database: the operating system refuses it."""
    [log] = directory.glob("*.db-wal")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def serving(at: House, service: str = "") -> bool:
    stub: Any = health_pb2_grpc.HealthStub(at.channel)
    reply = await stub.Check(health_pb2.HealthCheckRequest(service=service))
    return bool(reply.status == SERVING)


async def until_serving(at: House, wanted: bool) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await serving(at) != wanted:
            await asyncio.sleep(0.02)


@ON_SQLITE
async def test_reads_go_on_and_health_says_that_writes_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "PAUSE_S", 0.02)
    async with house(tmp_path) as at:
        said = [user(f"u{n} " + "more words to say " * 200, id=f"m{n}") for n in range(12)]
        await at.client.ingest_batch(ref(), said)
        assert await serving(at)
        with full_disk(tmp_path):
            await until_serving(at, False)
            assert await serving(at, "contextengine.v1.Recall")
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await at.stub.Ingest(
                    t.IngestRequest(session=ref(), message=user("lost", id="lost"))
                )
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
            # Above its threshold: a compaction is owed.
            reply = await at.client.assemble(ref(), budget=budget(6_000))
            assert reply.items
        await until_serving(at, True)
        await at.client.ingest(ref(), user("found", id="found"))
        await at.client.assemble(ref(), budget=budget(6_000))
        async with asyncio.timeout(PATIENCE_S):
            while not (await at.client.get_status(ref())).compaction_count:
                await asyncio.sleep(0.02)
        assert len(await at.rows(ref())) == 13
