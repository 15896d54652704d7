"""Sessions that nobody uses go to object storage, and are back as they were at the first touch."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path

from contextengine.messages import user
from contextengine_server.store.sqlite.kind import KIND
from tests import databases
from tests.integration.harness import Clock, House
from tests.object_server import Bucket

from .colds import archive, asked, is_archived, ref, scope, talk


async def test_a_cold_session_is_one_object_and_comes_back_whole(
    cold: House, bucket: Bucket, clock: Clock
) -> None:
    await talk(cold)
    before = await asked(cold)
    [listed] = (await cold.client.sessions.list()).sessions
    rows = await cold.app.store.messages(scope(), retired=True)
    assert await archive(cold, clock, dry_run=True) == ["s1"]
    assert bucket.names() == []
    assert await archive(cold, clock) == ["s1"]

    [name] = bucket.names()
    line = gzip.decompress(bucket.read(name)).partition(b"\n")[0]
    manifest = json.loads(line)
    assert (manifest["session"], manifest["messages"], manifest["revision"]) == ("s1", 12, 12)
    assert b"spoon" not in bucket.read(name)  # it is compressed
    assert (await cold.app.store.counts())["messages"] == 0
    # Listed like all others, which brings nothing back; where it is, is all that is said.
    listed.archived = True
    assert list((await cold.client.sessions.list()).sessions) == [listed]
    assert (await cold.client.sessions.get(session=ref())).session == listed
    assert await is_archived(cold)

    assert await asked(cold) == before
    assert not await is_archived(cold)
    assert not (await cold.client.sessions.get(session=ref())).session.archived
    assert await cold.app.store.messages(scope(), retired=True) == rows
    # It goes on like any other.
    stored = await cold.client.ingest(ref(), user("one more", id="more"))
    assert stored.revision == 13


async def test_it_comes_back_to_a_server_that_knows_nothing_of_it(
    cold: House, clock: Clock
) -> None:
    await talk(cold)
    before = await asked(cold)
    assert await archive(cold, clock) == ["s1"]
    await cold.restart()
    assert await is_archived(cold)
    assert await asked(cold) == before


async def test_a_write_is_a_touch(cold: House, clock: Clock) -> None:
    await talk(cold)
    for way in ("warm", "cold"):
        assert await archive(cold, clock) == ["s1"]
        if way == "cold":
            await cold.restart()
        await cold.client.ingest(ref(), user(f"and then {way}", id=way))
        assert not await is_archived(cold)
    found = await cold.app.store.messages(scope())
    assert [row.host_id for row in found[-2:]] == ["warm", "cold"]
    assert [row.sequence for row in found] == list(range(1, 15))


async def test_however_many_touch_it_it_comes_once(cold: House, clock: Clock) -> None:
    await talk(cold)
    before = await asked(cold)
    assert await archive(cold, clock) == ["s1"]
    answers = await asyncio.gather(
        *(asked(cold) for _ in range(20)),
        *(cold.client.sessions.get(session=ref()) for _ in range(5)),
    )
    assert set(answers[:20]) == {before}
    assert cold.app.archive.counts.restored == 1


async def test_a_search_is_a_touch_and_finds_all(cold: House, clock: Clock) -> None:
    await talk(cold, "s1", word="spoon")
    await talk(cold, "s2", word="spoon")
    assert sorted(await archive(cold, clock)) == ["s1", "s2"]
    found = await cold.client.recall.search(session=ref("s1"), query="spoon", limit=50)
    assert len(found.hits) == 12
    assert not await is_archived(cold, "s1")
    # What else the agent has is not brought back by a search of all.
    everywhere = await cold.client.recall.search(
        session=ref("s1"), query="spoon", limit=50, all_sessions=True
    )
    assert len(everywhere.hits) == 12
    assert await is_archived(cold, "s2")


@databases.ON_SQLITE
async def test_a_backup_brings_back_what_was_there(
    cold: House, clock: Clock, tmp_path: Path
) -> None:
    for name in ("back", "cold"):
        await talk(cold, name)
    before = {name: await asked(cold, name) for name in ("back", "cold")}
    assert sorted(await archive(cold, clock)) == ["back", "cold"]
    copy = tmp_path / "copy.db"
    await KIND.back_up(str(cold.database), copy)
    assert await asked(cold, "back") == before["back"]
    await cold.client.ingest(ref("back"), user("after the backup", id="later"))
    await cold.stop()
    await KIND.restore(str(cold.database), copy, replace=True)
    await cold.start()
    for name in ("cold", "back"):
        assert await is_archived(cold, name)
        assert await asked(cold, name) == before[name]
