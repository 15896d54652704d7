"""Retention, erasure, the archive, backup and restoring, rehearsed over one PostgreSQL that two
servers share, with a bucket beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from contextengine import types as t
from contextengine.messages import user
from contextengine_server.commands.sessions.prune import Prune, RetentionRule, erasing
from contextengine_server.wiring.commands import delete_command
from tests import postgres
from tests.integration.archive.colds import (
    DAY_S,
    archive,
    asked,
    is_archived,
    ref,
    scope,
    talk,
)
from tests.integration.harness import Clock, House
from tests.integration.harness import house as living
from tests.object_server import Bucket, object_server

ROUNDS = 12


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A bucket of the test's own."""
    with object_server(monkeypatch) as server:
        yield server.bucket(f"lifetime-{uuid4().hex[:12]}")


def settings(bucket: Bucket, url: str) -> dict[str, object]:
    """What a server is told."""
    rules = [{"after": f"{DAY_S}s"}]
    return {
        **bucket.settings,
        "archive.rules": rules,
        "archive.interval": "off",
        "store.url": url,
    }


@pytest.fixture
async def pair(tmp_path: Path, bucket: Bucket, clock: Clock) -> AsyncIterator[tuple[House, House]]:
    """Two servers over one database and one bucket."""
    postgres.require()
    told = settings(bucket, postgres.place(tmp_path))
    async with AsyncExitStack() as stack:
        one, other = [
            await stack.enter_async_context(living(tmp_path / name, clock=clock, **told))
            for name in ("one", "other")
        ]
        yield one, other


async def test_what_one_archives_either_brings_back(
    pair: tuple[House, House], clock: Clock
) -> None:
    one, other = pair
    await talk(one)
    before = await asked(one)
    assert await asked(other) == before  # both hold it in memory
    for house in (one, other, other, one):
        assert await archive(house, clock) == ["s1"]
        assert await is_archived(one)
        assert await is_archived(other)
        assert await asked(other) == before
        assert await asked(one) == before
    assert one.app.archive.counts.restored + other.app.archive.counts.restored == 4


async def test_writes_at_either_race_with_the_archive_and_none_is_lost(
    pair: tuple[House, House], clock: Clock, bucket: Bucket
) -> None:
    one, other = pair
    await talk(one, turns=1)
    said = ["s1-u0", "s1-a0"]

    async def write(house: House, id: str) -> None:
        await house.client.ingest(ref(), user(f"said {id}", id=id))
        said.append(id)

    went = 0
    for number in range(ROUNDS):
        gone, *_ = await asyncio.gather(
            archive(one, clock),
            archive(other, clock),
            write(one, f"one-{number}"),
            write(other, f"other-{number}"),
            asked(other),
        )
        went += len(gone)
    rows = await one.app.store.messages(scope())
    assert sorted(row.host_id for row in rows) == sorted(said)
    assert [row.sequence for row in rows] == list(range(1, len(said) + 1))
    assert await asked(one) == await asked(other)
    # What was written in vain, or for a session that is back, goes in time.
    assert await archive(one, clock) == ["s1"]
    clock.advance(31 * DAY_S)
    await one.app.archive.clean()
    assert len(bucket.names()) == 1


async def test_retention_and_erasure_reach_the_archive(
    pair: tuple[House, House], clock: Clock, bucket: Bucket
) -> None:
    one, other = pair
    for name in ("old", "pinned", "other"):
        await talk(one, name, turns=2)
    await one.client.ingest(ref("pinned"), user("keep this", id="pin", labels={"pinned": "true"}))
    assert sorted(await archive(one, clock)) == ["old", "other", "pinned"]
    await talk(other, "new", turns=1)
    rules = [RetentionRule(session="o*d", max_age_ms=1), RetentionRule(session="p*", max_age_ms=1)]
    erase = erasing(delete_command(other.app.core))
    done = await Prune(other.app.store, rules, clock, erase).run()
    assert [pruned.head.scope.session for pruned in done] == ["old"]
    assert len(bucket.names()) == 2
    assert await is_archived(one, "pinned")  # it was looked at where it is
    everything = t.DeleteRequest.Everything(tenant="default", agent_id="main")
    gone = await one.client.sessions.delete(everything_of=everything)
    assert sorted(gone.session_ids) == ["new", "other", "pinned"]
    assert bucket.names() == []
    assert not (await other.client.sessions.list()).sessions


async def test_a_dump_brings_back_what_was_there(
    pair: tuple[House, House], clock: Clock, bucket: Bucket, tmp_path: Path
) -> None:
    one, other = pair
    for name in ("here", "cold", "back"):
        await talk(one, name)
    before = {name: await asked(one, name) for name in ("here", "cold", "back")}
    assert sorted(await archive(one, clock)) == ["back", "cold", "here"]
    assert await asked(other, "here") == before["here"]
    cluster = postgres.cluster()
    dump = cluster.root / "dumped"
    cluster.run("pg_dump", "-Fc", "-f", dump, "-d", str(one.settings["store.url"]))

    # Life goes on: one comes back, one goes on, one is deleted.
    assert await asked(other, "back") == before["back"]
    await other.client.ingest(ref("here"), user("after the backup", id="later"))
    await one.client.sessions.delete(session=ref("here"))
    assert not await is_archived(one, "back")

    cluster.execute("CREATE DATABASE restored")
    cluster.run("pg_restore", "--exit-on-error", "-d", cluster.url("restored"), dump)
    told = settings(bucket, cluster.url("restored"))
    async with living(tmp_path / "restored", clock=clock, **told) as again:
        found = {one.session_id for one in (await again.client.sessions.list()).sessions}
        assert found == {"here", "cold", "back"}
        for name in ("cold", "back", "here"):
            assert await asked(again, name) == before[name]
        await again.client.ingest(ref("cold"), user("it goes on", id="on"))
