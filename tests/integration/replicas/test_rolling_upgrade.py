"""Two servers over one database are replaced one after the other, while the schema is upgraded
under them: no call of the shipped client fails."""

from __future__ import annotations

import asyncio
from pathlib import Path

from contextengine import AsyncClient
from contextengine.messages import user
from contextengine_server.store.postgres.migrations import HEAD, MARK
from tests import postgres
from tests.integration.harness import PATIENCE_S, budget, ref
from tests.soak.killing import Child

SESSIONS = 8
EXPAND = (
    "BEGIN; CREATE TABLE newer (id bigint PRIMARY KEY);"
    " ALTER TABLE sessions ADD COLUMN newer text COLLATE \"C\" NOT NULL DEFAULT '';"
    " ALTER TABLE messages ADD COLUMN newer bigint;"
    " CREATE INDEX newer_of ON messages (newer) WHERE newer IS NOT NULL;"
    " UPDATE alembic_version SET version_num = 'p9999';"
    f" COMMENT ON TABLE alembic_version IS '{MARK}{HEAD}'; COMMIT"
)
"""A step as a later version may bring it, which the servers of this one know nothing of."""


async def test_no_call_fails(tmp_path: Path) -> None:
    postgres.require()
    one = postgres.cluster()
    one.execute("CREATE DATABASE rolling")
    url = one.url("rolling")
    children = [Child(tmp_path / f"server-{number}", url) for number in range(2)]
    said = [0] * SESSIONS
    over = asyncio.Event()

    async def talk(number: int) -> None:
        """One harness: it knows both servers, half of them one first and half the other."""
        ports = [child.port for child in children][:: 1 if number % 2 else -1]
        address = "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in ports)
        session = ref(f"s{number}")
        async with AsyncClient(address) as client:
            while not over.is_set():
                text = user(f"text {said[number]}", id=f"m{said[number]}")
                await client.ingest(session, text)
                said[number] += 1
                reply = await client.assemble(session, budget=budget(2_000))
                assert reply.items[-1].message.id == f"m{said[number] - 1}"

    async def more(count: int) -> None:
        """Waits until every session got so much further."""
        wanted = [have + count for have in said]
        async with asyncio.timeout(PATIENCE_S):
            while any(have < want for have, want in zip(said, wanted, strict=True)):
                for task in talks:
                    if task.done():
                        task.result()
                await asyncio.sleep(0.02)

    talks: list[asyncio.Task[None]] = []
    try:
        for child in children:
            await child.start()
        talks += [asyncio.create_task(talk(number)) for number in range(SESSIONS)]
        await more(5)
        await asyncio.to_thread(one.execute, EXPAND, name="rolling")
        for child in children:
            await more(5)
            await child.end()
            await more(5)
            await child.start()
        await more(5)
        over.set()
        await asyncio.gather(*talks)
        async with AsyncClient(f"127.0.0.1:{children[0].port}") as client:
            for number, count in enumerate(said):
                found = [
                    reply.message.message.id
                    async for reply in client.sessions.export(ref(f"s{number}"))
                    if reply.HasField("message")
                ]
                assert found == [f"m{at}" for at in range(count)]
    finally:
        for task in talks:
            task.cancel()
        for child in children:
            await child.end()
        one.execute("DROP DATABASE rolling WITH (FORCE)")
