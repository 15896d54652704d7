"""Which files open, which are refused and with what words, and what an old one holds afterwards."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.store.debts import Debt
from contextengine_server.store.errors import StoreRefused
from contextengine_server.store.rows import (
    Assignment,
    Commit,
    MessageRow,
    SessionHead,
    StoredReply,
    SummaryRow,
)
from contextengine_server.store.sql import migrations
from contextengine_server.store.sqlite import SqliteStore, database
from contextengine_server.wire.damage import intact, summary_hash

V1 = Path(__file__).parents[2] / "data" / "store_v1.db"
SCOPE = Scope("acme", "main", "s1")


def content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


async def refusal(path: Path) -> str:
    """The words with which a database is refused."""
    before = content(path)
    with pytest.raises(StoreRefused) as refused:
        await SqliteStore(path).open()
    assert content(path) == before  # what is refused is not touched
    return str(refused.value)


async def made(path: Path) -> Path:
    store = SqliteStore(path)
    await store.open()
    head = SessionHead(SCOPE, "i", 1, 500)
    rows = [MessageRow(n, 1, 1, b"h" * 32, b"x" * 900, 1, host_id=f"h{n}") for n in range(1, 501)]
    await store.commit(Commit(head, 0, messages=rows))
    await store.close()
    return path


async def test_every_row_of_the_first_schema_is_there(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    shutil.copy(V1, path)
    store = SqliteStore(path)
    await store.open()
    fork = SCOPE._replace(session="fork")
    assert await store.head(SCOPE) == SessionHead(
        SCOPE,
        "life-1",
        3,
        4,
        session_key="key",
        message_count=3,
        message_tokens=35,
        summary_count=1,
        generation=1,
        ended=True,
        created_ms=1_700_000_000_000,
        updated_ms=1_700_000_000_500,
        model="model-1",
        provider="provider-1",
        state=b'{"note": "\xc3\xa9"}',
    )
    assert await store.head(fork) == SessionHead(
        fork,
        "life-2",
        1,
        4,
        created_ms=1_700_000_000_600,
        updated_ms=1_700_000_000_600,
        parent_session="s1",
        parent_incarnation="life-1",
        parent_revision=3,
        parent_sequence=4,
    )
    assert await store.dependents(SCOPE) == [fork]
    assert await store.current_session("acme", "main", "key") == "s1"
    first, second, third, fourth = await store.messages(SCOPE, retired=True)
    assert first == MessageRow(
        1, 2, 11, b"\x01" * 32, b"\x00\xffbody 1", 1, 0, "h-1", 1_700_000_000_001, True, 0, 0, None
    )
    assert second == MessageRow(
        2, 3, 12, b"\x02" * 32, b"\x00\xffbody 2", 1, 0, "h-2 é", None, False, 1, 11, None
    )
    assert third == MessageRow(
        3, 4, 13, b"\x03" * 32, b"\x00\xffbody 3", 1, 2, "", None, False, 2, 23, None
    )
    assert fourth == MessageRow(
        4, 1, 14, b"\x04" * 32, b"\x00\xffbody 4", 3, 0, "", None, False, 1, None, 2
    )
    assert await store.messages(SCOPE) == [first, second, fourth]
    assert await store.messages(SCOPE, as_of=1) == [first, second, third]
    assert await store.atom_of(SCOPE, 4) == [second, fourth]
    (summary,) = await store.summaries(SCOPE)
    assert [summary] == [
        SummaryRow(
            "sum-1",
            1,
            1,
            2,
            2,
            23,
            6,
            "what was said é",
            2,
            span_end=23,
            before_view=40,
            before_total=50,
            before_fixed=7,
            before_peak=11,
            last_step=1,
            children=("leaf-1", "leaf-2"),
            start_ms=1_700_000_000_001,
            summarizer="extractive",
            fallback=True,
            generation=1,
            origin="host",
            content_hash=summary_hash(summary),
        )
    ]
    assert await store.reply(SCOPE, "r-1") == StoredReply("r-1", b"\x00\x01", b"\xfe\xff")
    assert await store.debts(SCOPE) == [
        Debt(
            SCOPE,
            "compact",
            1_700_000_000_400,
            1_700_000_000_450,
            2,
            "",  # whoever had it is gone
            0,
            False,
            "00-trace",
            "no model",
            b'{"upto":2}',
        )
    ]
    assert await store.assignments("acme") == [Assignment("acme", "main", "", "dag", b'{"tail":8}')]
    assert await store.counts() == {
        "sessions": 2,
        "messages": 4,
        "summaries": 1,
        "debts": 1,
        "agent_facts": 0,
    }
    await store.close()
    with database.connect(path) as db:
        assert db.execute("SELECT version_num FROM alembic_version").fetchall() == [
            (migrations.HEAD,)
        ]
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("what", ["text = CAST(x'ff' AS TEXT)", "children = '{'"])
async def test_a_summary_that_an_upgrade_cannot_read_is_told_apart(
    tmp_path: Path, what: str
) -> None:
    path = tmp_path / "old.db"
    shutil.copy(V1, path)
    with database.connect(path) as db:
        assert db.execute(f"UPDATE summaries SET {what}").rowcount == 1
    store = SqliteStore(path)
    await store.open()
    (summary,) = await store.summaries(SCOPE)
    assert not intact(summary)
    await store.close()


async def test_an_upgrade_is_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next schema, played: a step that works, then one that fails after it has changed the
    tables."""
    scripts = tmp_path / "migrations"
    shutil.copytree(Path(migrations.__file__).parent, scripts)
    monkeypatch.setattr(
        migrations, "config", lambda _=scripts, make=migrations.config: make(scripts)
    )
    following = f"{int(migrations.HEAD) + 1:04}"
    monkeypatch.setattr(database, "HEAD", following)
    monkeypatch.setattr(database, "REVISIONS", (*migrations.REVISIONS, following))
    step = scripts / "versions" / f"v{following}_next.py"
    text = (
        "from alembic import op\nimport sqlalchemy as sa\n"
        f'revision = "{following}"\ndown_revision = "{migrations.HEAD}"\n'
        "def upgrade():\n"
        '    op.add_column("messages", sa.Column("more", sa.Text(), nullable=True))\n'
        '    op.create_table("extra", sa.Column("tenant", sa.Text(), primary_key=True))\n'
    )
    path = tmp_path / "old.db"
    shutil.copy(V1, path)

    step.write_text(text + '    op.drop_table("no such table")\n')
    with pytest.raises(Exception, match="no such table"):
        database.prepare(path)
    with database.connect(path) as db:
        assert db.execute("SELECT version_num FROM alembic_version").fetchall() == [("0001",)]
        assert "more" not in [row[1] for row in db.execute("PRAGMA table_info(messages)")]
        assert db.execute("SELECT name FROM sqlite_master WHERE name = 'extra'").fetchall() == []
        assert db.execute("SELECT COUNT(*) FROM messages").fetchone() == (4,)

    step.write_text(text)
    database.prepare(path)
    with database.connect(path) as db:
        assert db.execute("SELECT version_num FROM alembic_version").fetchall() == [(following,)]
        assert "more" in [row[1] for row in db.execute("PRAGMA table_info(messages)")]
        assert db.execute("SELECT COUNT(*) FROM messages").fetchone() == (4,)


@pytest.mark.parametrize("revisions", [["9999"], [], ["0001", "9999"]])
async def test_a_newer_database_is_refused(tmp_path: Path, revisions: list[str]) -> None:
    path = await made(tmp_path / "store.db")
    with database.connect(path) as db:
        db.execute("DELETE FROM alembic_version")
        db.executemany("INSERT INTO alembic_version VALUES (?)", [(name,) for name in revisions])
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    text = await refusal(path)
    assert f"knows none newer than {migrations.HEAD}" in text
    assert "run the newer version that wrote it, or restore a backup" in text


async def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    for name, table in (("plain", "t"), ("alembic", "alembic_version")):
        path = tmp_path / name
        with sqlite3.connect(path) as db:
            db.execute(f"CREATE TABLE {table} (version_num TEXT)")
            db.execute(f"INSERT INTO {table} VALUES ('{migrations.HEAD}')")
        assert "is a database of another program: give another path" in await refusal(path)


@pytest.mark.parametrize("text", [b"just some text", b"SQLite format 2\0", b"\0" * 5000])
async def test_a_file_that_is_no_database_is_refused(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(text)
    assert "is not an SQLite database: give another path, or restore a backup" in await refusal(
        path
    )


@pytest.mark.parametrize("damage", ["header", "schema page", "cut short"])
async def test_a_damaged_database_is_refused(tmp_path: Path, damage: str) -> None:
    path = await made(tmp_path / "store.db")
    content = bytearray(path.read_bytes())
    if damage == "header":
        content[16:24] = b"\xff" * 8
    elif damage == "schema page":
        content[100:2000] = b"\xa5" * 1900
    else:
        content = content[:300]
    path.write_bytes(content)
    text = await refusal(path)
    assert "is damaged" in text
    assert "restore a backup, or move the file away to begin anew" in text


async def test_a_refused_database_is_not_left_locked(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"not a database")
    await refusal(path)
    path.unlink()
    store = SqliteStore(path)
    await store.open()
    await store.close()


async def test_a_path_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    assert "its directory must exist and be writable" in await refusal(
        tmp_path / "none" / "store.db"
    )
    directory = tmp_path / "directory"
    directory.mkdir()
    assert "cannot be read (Is a directory)" in await refusal(directory)


async def test_odd_paths_open(tmp_path: Path) -> None:
    path = tmp_path / "50% of é?#&mode=ro;.db"
    await made(path)
    assert path.stat().st_size > 100_000


async def test_one_process_opens_it_once(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    (tmp_path / "link").symlink_to(tmp_path)
    assert "is open in this process already" in await refusal(tmp_path / "link" / "store.db")
    await store.close()
    await store.open()
    await store.close()


def test_a_second_process_is_told_to_talk_to_the_first(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    hold = (
        "import asyncio, os, sys, time\n"
        "from contextengine_server.store.sqlite import SqliteStore\n"
        "async def main():\n"
        "    await SqliteStore(sys.argv[1]).open()\n"
        "    if os.fork() == 0:\n"  # a worker that outlives its server must not hold the lock
        "        os.close(1)\n"
        "        time.sleep(20)\n"
        "        os._exit(0)\n"
        "    print('open', flush=True)\n"
        "    time.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, path], stdout=subprocess.PIPE, start_new_session=True
    ) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == b"open\n"
            text = asyncio.run(refusal(path))
            assert (
                f"is in use by process {child.pid}: talk to that server, or stop it first" in text
            )
            child.kill()
            child.wait()
            asyncio.run(made(path))
        finally:
            os.killpg(child.pid, signal.SIGKILL)


def test_opening_an_up_to_date_database_imports_no_migrations(tmp_path: Path) -> None:
    path = asyncio.run(made(tmp_path / "store.db"))
    look = (
        "import asyncio, sys\nfrom contextengine_server.store.sqlite import SqliteStore\nasync def"
        " main():\n    store = SqliteStore(sys.argv[1])\n    await store.open()\n    print((await"
        " store.counts())['messages'], {'alembic', 'sqlalchemy'} & set(sys.modules))\n    await"
        " store.close()\nasyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", look, path], capture_output=True, text=True, timeout=150, check=True
    )
    assert done.stdout == "500 set()\n"


async def test_a_store_says_how_it_is(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    closed = await store.health()
    assert (closed.ok, closed.detail) == (False, "closed")
    assert closed.facts == {"path": str(path), "schema": migrations.HEAD}
    assert "restore a backup" in closed.advice
    await store.open()
    health = await store.health()
    assert (health.ok, health.detail, health.advice) == (True, "open", "")
    assert {name: health.facts[name] for name in ("path", "schema", "journal", "vacuum")} == {
        "path": str(path),
        "schema": migrations.HEAD,
        "journal": "wal",
        "vacuum": "not wanted",
    }
    assert int(health.facts["bytes"]) == path.stat().st_size
    assert int(health.facts["log_bytes"]) == path.with_name("store.db-wal").stat().st_size
    assert int(health.facts["free_bytes"]) > 0
    await store.close()
