"""A server that is killed (SIGKILL) while it brings sessions into the archive and others are being
written to: whatever it was at, each acknowledged message is there once, in the store or in the
object that the store relies on.

CONTEXTENGINE_ARCHIVE_KILLS (12) says how often."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import grpc
import pytest

from contextengine import types as t
from contextengine_proto.v1 import context_engine_pb2_grpc
from contextengine_server.store.archives import Stage
from tests.object_server import REGION, Bucket, object_server

from .killing import Child, Load, Told, missing

KILLS = int(os.environ.get("CONTEXTENGINE_ARCHIVE_KILLS", "12"))
SESSIONS = 12
PATIENCE_S = 60
ARCHIVED = "archived "
"""How the line begins that a server writes of each session that went, after its level."""


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A bucket of the test's own."""
    with object_server(monkeypatch) as server:
        yield server.bucket(f"test-{uuid4().hex[:12]}")


class NowAndThen(Load):
    """Writers that rest for about as long as it takes until their session goes."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, SESSIONS)

    async def write_on(self, port: int) -> None:
        """Writes until the server is gone."""
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = context_engine_pb2_grpc.ContextEngineStub(channel)
            await asyncio.gather(*(self._now_and_then(stub, *one) for one in self.told.items()))

    async def _now_and_then(
        self, stub: context_engine_pb2_grpc.ContextEngineAsyncStub, name: str, told: Told
    ) -> None:
        session = t.SessionRef(agent_id="soak", session_id=name)
        while True:
            messages = [self.message() for _ in range(self.random.choice((1, 2, 5)))]
            told.unknown |= {message.id for message in messages}
            try:
                reply = await stub.IngestBatch(
                    t.IngestBatchRequest(session=session, messages=messages)
                )
            except grpc.RpcError:
                return
            for message, item in zip(messages, reply.stored, strict=True):
                told.note(message, item.sequence)
                told.unknown.discard(message.id)
            await asyncio.sleep(self.random.uniform(0.5, 6))


def _objects(store: Path, stage: Stage) -> set[str]:
    """The names of the objects that the store knows of; no server has it open."""
    with contextlib.closing(sqlite3.connect(store)) as db:
        return {
            name for (name,) in db.execute("SELECT name FROM archives WHERE stage = ?", [stage])
        }


async def _more_went(child: Child, count: int) -> None:
    """Waits until the server has brought so many sessions into the archive."""
    async with asyncio.timeout(PATIENCE_S):
        while child.said().count(ARCHIVED) < count:
            await asyncio.sleep(0.005)


@pytest.mark.timeout(0)
async def test_who_is_killed_while_it_archives_loses_and_doubles_nothing(
    tmp_path: Path, bucket: Bucket
) -> None:
    load, chance = NowAndThen(20_261_126), random.Random(20_261_126)
    child = Child(
        tmp_path / "soak.db",
        CONTEXTENGINE_ARCHIVE__URL=f"s3://{bucket.name}/cold",
        CONTEXTENGINE_ARCHIVE__ENDPOINT=bucket.endpoint,
        CONTEXTENGINE_ARCHIVE__REGION=REGION,
        CONTEXTENGINE_ARCHIVE__INTERVAL="1s",
        CONTEXTENGINE_ARCHIVE__RULES=json.dumps([{"after": "1s"}]),
    )
    went = amid = 0
    try:
        await child.start()
        for _ in range(KILLS):
            writing = asyncio.create_task(load.write_on(child.port))
            await _more_went(child, chance.randint(1, 4))
            await asyncio.sleep(chance.uniform(0, 0.1))  # in the middle of the next
            await child.kill()
            await load.stop(writing)
            went += child.said().count(ARCHIVED)
            # One that was written in vain, because somebody else wrote to its session, is erased.
            written = {name.removeprefix("cold/") for name in bucket.names()}
            assert _objects(child.store, Stage.HELD) <= written
            amid = len(_objects(child.store, Stage.RESERVED) & written)
            await child.start()
        problems = await missing(child.port, load)
        assert not problems, "; ".join(problems[:5])
    finally:
        await child.end()
    assert amid > 0, "no kill came while a session was on its way"
    known = sum(len(told.acknowledged) for told in load.told.values())
    print(
        f"\n{KILLS} kills, of which {amid} or more came while a session was on its way: one went"
        f" {went} times, {known} messages acknowledged, none lost, none twice"
    )
