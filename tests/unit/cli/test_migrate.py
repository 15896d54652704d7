"""`contextengine migrate` on both stores: what would be done, doing it, and whether it is right."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest
from typer.testing import CliRunner

from contextengine_server.cli.application import app
from contextengine_server.cli.output import CommandFailed
from contextengine_server.store.postgres import database
from contextengine_server.store.postgres.migrations import HEAD, MARK, script
from contextengine_server.store.sql.migrations import HEAD as SQLITE_HEAD
from contextengine_server.store.sqlite import SqliteStore
from tests import postgres

V1 = Path(__file__).parents[2] / "data" / "store_v1.db"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file of the first version."""
    return Path(shutil.copy(V1, tmp_path / "old.db"))


@pytest.fixture
def empty() -> Iterator[str]:
    """The URL of a database without tables."""
    postgres.require()
    one = postgres.cluster()
    one.execute("CREATE DATABASE empty")
    yield one.url("empty")
    one.execute("DROP DATABASE empty WITH (FORCE)")


def migrate(words: str, store: object) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command."""
    done = CliRunner().invoke(app, ["migrate", *words.split(), "--store", str(store)])
    if isinstance(done.exception, CommandFailed):
        return done.exception.status, "", done.exception.text
    return done.exit_code, done.stdout, done.stderr


def test_a_plan_says_each_step_and_changes_nothing(old: Path) -> None:
    status, said, _ = migrate("plan", old)
    assert status == 0
    assert said.startswith(f"-- {old} has schema 0001, this version wants {SQLITE_HEAD}: 16 steps")
    assert "-- 0015: The names of commits." in said
    assert "CREATE TABLE spawns" in said
    assert old.read_bytes() == V1.read_bytes()


def test_the_sql_of_a_plan_makes_the_tables(old: Path, tmp_path: Path) -> None:
    """Run by hand it comes to the same as `apply`, where no step works on rows."""
    _, said, _ = migrate("plan", tmp_path / "new.db")
    with closing(sqlite3.connect(tmp_path / "by_hand.db")) as db:
        db.executescript(said)
        made = set(db.execute("SELECT name FROM sqlite_master"))
    assert migrate("apply", old)[0] == 0
    with closing(sqlite3.connect(old)) as db:
        assert made == set(db.execute("SELECT name FROM sqlite_master"))


def test_apply_and_verify(old: Path) -> None:
    status, _, said = migrate("verify", old)
    assert status == 1
    assert "16 steps: contextengine migrate apply" in said
    status, said, _ = migrate("apply", old)
    assert (status, said) == (0, f"{old} has schema {SQLITE_HEAD}: 16 steps from 0001\n")
    assert migrate("verify", old)[0] == 0
    status, said, _ = migrate("apply", old)
    assert (status, said) == (0, f"{old} has schema {SQLITE_HEAD}, which this version wants\n")
    assert migrate("plan", old)[1] == f"-- {said}"


def test_verify_tells_what_is_not_as_it_must_be(old: Path) -> None:
    migrate("apply", old)
    with closing(sqlite3.connect(old)) as db:
        db.executescript(
            "DROP INDEX sessions_newest; DROP TABLE quotas; CREATE INDEX mine ON costs (model);"
            "ALTER TABLE costs ADD COLUMN spare TEXT;"
            "ALTER TABLE guards RENAME COLUMN state TO states"
        )
    status, said, _ = migrate("verify --json", old)
    assert status == 1
    assert json.loads(said)["faults"] == [
        "column guards.state is missing",
        "column guards.states is not ours and takes no row without a value",
        "table quotas is missing",
        "index sessions_newest is missing",
    ]


def test_what_is_not_there_or_not_ours(tmp_path: Path) -> None:
    absent = tmp_path / "absent.db"
    assert migrate("verify", absent)[0] == 1
    assert not absent.exists()
    text = tmp_path / "text.db"
    text.write_text("no database " * 400)
    for words in ("plan", "apply", "verify"):
        status, _, said = migrate(words, text)
        assert status == (2 if words == "verify" else 1)
        assert f"{text} is not an SQLite database" in said
    status, _, said = migrate("plan", "memory:")
    assert status == 1
    assert "such a store has no schema" in said
    assert migrate("plan --address 127.0.0.1:1", text)[0] == 2


async def test_a_file_that_a_server_has_is_left_to_it(old: Path) -> None:
    store = SqliteStore(old)
    await store.open()
    try:
        status, _, said = await asyncio.to_thread(migrate, "apply", old)
        assert status == 1
        assert "is open in this process" in said
        assert (await asyncio.to_thread(migrate, "verify", old))[0] == 0
    finally:
        await store.close()


def test_postgresql_from_nothing_to_verified(empty: str) -> None:
    status, said, _ = migrate("plan", empty)
    assert status == 0
    assert f"has schema none, this version wants {HEAD}" in said
    assert "-- p0001: " in said
    assert "CREATE TABLE messages" in said
    assert migrate("verify", empty)[0] == 1
    # What is read before is what is done.
    postgres.cluster().execute(f"BEGIN; {said} COMMIT", name="empty")
    assert migrate("verify", empty)[0] == 0
    assert migrate("apply", empty)[1].endswith(f"has schema {HEAD}, which this version wants\n")


def test_postgresql_from_an_older_schema(empty: str) -> None:
    postgres.cluster().execute(script(None, "p0001"), name="empty")
    status, said, _ = migrate("plan --json", empty)
    assert status == 0
    assert next(step["revision"] for step in json.loads(said)["steps"]) == "p0002"
    assert migrate("apply", empty)[0] == 0
    assert migrate("verify", empty)[0] == 0


def test_postgresql_tells_what_is_not_as_it_must_be(empty: str) -> None:
    migrate("apply", empty)
    postgres.cluster().execute(
        "DROP INDEX sessions_newest; ALTER TABLE feed SET LOGGED; DROP TABLE quotas;"
        "CREATE INDEX mine ON costs (model); ALTER TABLE costs ADD COLUMN spare text;"
        "ALTER TABLE guards ALTER COLUMN tenant TYPE varchar(9),"
        ' ADD COLUMN must text COLLATE "C" NOT NULL',
        name="empty",
    )
    status, said, _ = migrate("verify --json", empty)
    assert status == 1
    assert json.loads(said)["faults"] == [
        "table feed is an ordinary table, not unlogged",
        "column guards.tenant is character varying(9) not null, not text collate C not null",
        "column guards.must is not ours and takes no row without a value",
        "table quotas is missing",
        "index sessions_newest is missing",
    ]


def test_a_newer_schema_that_serves_this_version_is_right(empty: str) -> None:
    migrate("apply", empty)
    newer = f"COMMENT ON TABLE alembic_version IS '{MARK}{HEAD}'"
    change = "UPDATE alembic_version SET version_num = 'p9999'"
    postgres.cluster().execute(change, newer, name="empty")
    status, said, _ = migrate("verify", empty)
    assert status == 0
    assert f"has schema p9999, newer than {HEAD}, which serves this version" in said
    postgres.cluster().execute(newer.replace(HEAD, "p9998"), name="empty")
    status, _, said = migrate("verify", empty)
    assert status == 2
    assert "run the newer version that wrote it" in said


def test_a_table_in_use_is_not_waited_for_long(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that waits for a table keeps every later call waiting behind it."""
    postgres.cluster().execute(script(None, "p0001"), name="empty")
    monkeypatch.setattr(database, "_STEP_S", 1)
    monkeypatch.setattr(
        database, "script", lambda since: script(since) + "ALTER TABLE costs ADD COLUMN more text;"
    )

    async def held() -> tuple[int, str, str]:
        raw = await asyncpg.connect(empty)
        try:
            async with raw.transaction():
                await raw.execute("SELECT count(*) FROM costs")
                return await asyncio.to_thread(migrate, "apply", empty)
        finally:
            await raw.close()

    status, _, said = asyncio.run(held())
    assert status == 1
    assert "is not upgraded, and as it was: a table was in use for 1 s" in said
    monkeypatch.undo()
    assert migrate("apply", empty)[0] == 0
