"""Which databases are opened, and what is said of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import StoreRefused
from contextengine_server.store.kinds import Readiness
from contextengine_server.store.postgres import database
from contextengine_server.store.postgres.kind import KIND
from contextengine_server.store.postgres.migrations import HEAD, MARK, script
from contextengine_server.store.postgres.store import PostgresStore
from contextengine_server.testing.store.rows import Pen
from tests import postgres


@pytest.fixture
def empty() -> Iterator[str]:
    """The URL of a database without tables."""
    postgres.require()
    one = postgres.cluster()
    one.execute("CREATE DATABASE empty")
    yield one.url("empty")
    one.execute("DROP DATABASE empty WITH (FORCE)")


async def refused(url: str) -> str:
    with pytest.raises(StoreRefused) as caught:
        await PostgresStore(url).open()
    return str(caught.value)


async def test_servers_that_start_at_once_make_the_tables_once(empty: str) -> None:
    assert (await KIND.outlook(empty)).readiness is Readiness.ABSENT
    stores = [PostgresStore(empty) for _ in range(4)]
    await asyncio.gather(*(store.open() for store in stores))
    for store in stores:
        assert (await store.health()).facts["schema"] == HEAD
        assert await store.head(Scope("acme", "main", "s1")) is None
        await store.close()
    assert (await KIND.outlook(empty)).readiness is Readiness.READY


async def test_a_database_that_is_not_there(empty: str) -> None:
    url = empty.replace("/empty", "/absent")
    said = await refused(url)
    assert said == f"{url} is not there: make it (createdb absent)"
    assert (await KIND.outlook(url)).readiness is Readiness.READY


async def test_a_server_that_is_not_there() -> None:
    said = await refused("postgresql://me:secret@127.0.0.1:1/ce?wait=1")
    assert said.startswith("postgresql://me@127.0.0.1:1/ce cannot be reached (")
    assert "secret" not in said


async def test_a_database_of_another_program_is_left_alone(empty: str) -> None:
    postgres.cluster().execute("CREATE TABLE messages (id int)", name="empty")
    assert await refused(empty) == f"{empty} is a database of another program: name another one"


async def test_tables_of_another_program_beside_ours_do_no_harm(empty: str) -> None:
    postgres.cluster().execute("CREATE TABLE theirs (id int)", name="empty")
    store = PostgresStore(empty)
    await store.open()
    await store.close()


async def test_a_database_of_a_newer_version_is_refused(empty: str) -> None:
    store = PostgresStore(empty)
    await store.open()
    await store.close()
    postgres.cluster().execute(
        "UPDATE alembic_version SET version_num = 'p9999'",
        f"COMMENT ON TABLE alembic_version IS '{MARK}p9999'",
        name="empty",
    )
    said = await refused(empty)
    assert f"has schema p9999, and this program knows none newer than {HEAD}" in said
    assert "run the newer version" in said


async def test_a_step_that_fails_leaves_the_database_as_it_was(
    empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "script", lambda since: script(since) + "SELECT 1 / 0;")
    assert "cannot be opened: division by zero" in await refused(empty)
    monkeypatch.undo()
    assert (await KIND.outlook(empty)).readiness is Readiness.ABSENT


async def test_a_server_works_on_a_newer_schema_that_serves_it(empty: str) -> None:
    """As the version before does, in the middle of a rolling upgrade that expands."""
    store = PostgresStore(empty)
    await store.open()
    await Pen(store, Scope("acme", "main", "s1")).write(count=2)
    postgres.cluster().execute(
        "BEGIN; CREATE TABLE newer (id bigint PRIMARY KEY);"
        " ALTER TABLE sessions ADD COLUMN newer text COLLATE \"C\" NOT NULL DEFAULT '';"
        " ALTER TABLE messages ADD COLUMN newer bigint; CREATE INDEX newer_of ON messages (newer);"
        f" UPDATE alembic_version SET version_num = 'p9999';"
        f" COMMENT ON TABLE alembic_version IS '{MARK}{HEAD}'; COMMIT",
        name="empty",
    )
    # One that was there all along, and one that is started on it.
    again = PostgresStore(empty)
    await again.open()
    for one, name in ((store, "s2"), (again, "s3")):
        await Pen(one, Scope("acme", "main", name)).write(count=2)
        head = await one.head(Scope("acme", "main", "s1"))
        assert head is not None
        assert head.last_sequence == 2
        await one.close()
    assert (await KIND.outlook(empty)).readiness is Readiness.READY
