"""`doctor --repair --backup`: one bad row is mended from a copy of the database, and the copy stays
as it is."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from contextengine_proto.v1 import message_pb2 as pb
from contextengine_server.cli.connection import Where
from contextengine_server.cli.doctor import diagnose
from contextengine_server.cli.mend import mended_from
from contextengine_server.cli.output import CommandFailed
from contextengine_server.context.scope import Scope
from contextengine_server.health.checks import ERROR, OK
from contextengine_server.store.rows import MessageRow, SummaryRow
from contextengine_server.store.sqlite import SqliteStore
from contextengine_server.testing.store.rows import Pen, summary
from contextengine_server.wire.damage import intact, summary_hash
from contextengine_server.wire.message import content_hash

DAMAGE = "UPDATE messages SET body = x'ff' WHERE session = '{}' AND sequence = {}"


def said(sequence: int, text: str) -> MessageRow:
    message = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text=text))])
    body = message.SerializeToString()
    return MessageRow(sequence, 1, 5, content_hash(message), body, created_revision=1)


def noted(id: str, at: int) -> SummaryRow:
    row = summary(id, at, at, children=("x",))
    return replace(row, content_hash=summary_hash(row))


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A database with two sessions of three messages."""
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    for session in ("one", "two"):
        pen = Pen(store, Scope("default", "main", session))
        await pen.write(
            messages=[said(at, f"{session} {at}") for at in (1, 2, 3)],
            summaries=[noted("a", 1), noted("b", 2)],
        )
    await store.close()
    return path


def copied(path: Path, name: str = "copy.db") -> Path:
    copy = path.with_name(name)
    with closing(sqlite3.connect(path)) as read, closing(sqlite3.connect(copy)) as write:
        read.backup(write)
    return copy


def run(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            assert db.execute(statement).rowcount


def rows(path: Path) -> list[tuple[str, int, bytes]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT session, sequence, body FROM messages ORDER BY 1, 2").fetchall()


def summaries(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        db.text_factory = bytes
        return db.execute("SELECT * FROM summaries ORDER BY session, id").fetchall()


async def test_a_damaged_row_is_taken_back(path: Path) -> None:
    whole = rows(path)
    copy = copied(path)
    before = copy.read_bytes()
    run(path, DAMAGE.format("one", 2), DAMAGE.format("two", 3))
    assert rows(path) != whole
    checks = await mended_from(Where(store=str(path)), copy, "default", "")
    assert [(check.name, check.status) for check in checks] == [
        ("session.main.two", OK),
        ("session.main.one", OK),
    ]
    assert rows(path) == whole
    assert copy.read_bytes() == before
    (check,) = await mended_from(Where(store=str(path)), copy, "default", "")
    assert check.found == "nothing is damaged"


@pytest.mark.parametrize("what", ["text = CAST(x'ff' AS TEXT)", "text = 'LIES'", "children = '['"])
async def test_a_damaged_summary_is_taken_back(path: Path, what: str) -> None:
    copy = copied(path)
    whole = summaries(path)
    run(path, f"UPDATE summaries SET {what} WHERE session = 'one' AND id = 'a'")
    assert summaries(path) != whole
    store = SqliteStore(path)
    await store.open()
    read = await store.summaries(Scope("default", "main", "one"))
    assert [(row.id, intact(row)) for row in read] == [("a", False), ("b", True)]
    indexed = await store.index.summaries(Scope("default", "main", "one"), 0)
    assert [(row.id, intact(row)) for _, row in indexed] == [("a", False), ("b", True)]
    await store.close()
    (check,) = await mended_from(Where(store=str(path)), copy, "default", "")
    assert (check.name, check.status) == ("session.main.one", OK)
    assert summaries(path) == whole


async def test_a_summary_that_the_backup_has_not_is_told(path: Path) -> None:
    copy = copied(path)
    run(copy, "UPDATE summaries SET text = 'other lies' WHERE id = 'a'")
    run(path, "UPDATE summaries SET text = 'LIES' WHERE session = 'one'")
    (check,) = await mended_from(Where(store=str(path)), copy, "default", "")
    assert (check.status, check.found[:6]) == (ERROR, "1 of 2")


async def test_one_session_alone(path: Path) -> None:
    copy = copied(path)
    run(path, DAMAGE.format("one", 2), DAMAGE.format("two", 3))
    (check,) = await mended_from(Where(store=str(path)), copy, "main", "two")
    assert check.name == "session.main.two"
    assert (("one", 2, b"\xff") in rows(path), ("two", 3, b"\xff") in rows(path)) == (True, False)


async def test_what_the_backup_has_not_is_told(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A backup that is damaged at the same place, or holds another message there, mends nothing."""
    copy = copied(path)
    run(
        copy, DAMAGE.format("one", 1), "UPDATE messages SET content_hash = x'01' WHERE sequence = 2"
    )
    run(path, *(DAMAGE.format("one", at) for at in (1, 2, 3)))
    healthy = await diagnose(Where(store=str(path)), "", "default", True, False, copy, False)
    assert not healthy
    assert "1 of 3 damaged" in " ".join(capsys.readouterr().out.split())
    (check,) = await mended_from(Where(store=str(path)), copy, "default", "")
    assert (check.status, check.found[:6]) == (ERROR, "0 of 2")


async def test_what_cannot_be(path: Path) -> None:
    copy = copied(path)
    where = Where(store=str(path))
    with pytest.raises(CommandFailed, match="needs --repair"):
        await diagnose(where, "", "default", False, False, copy, False)
    with pytest.raises(CommandFailed, match="give --store"):
        await mended_from(Where(address="127.0.0.1:1"), copy, "default", "")
    with pytest.raises(CommandFailed, match="cannot be read"):
        await mended_from(where, path.with_name("none.db"), "default", "")
    store = SqliteStore(path)
    await store.open()
    try:
        with pytest.raises(CommandFailed, match="is open in this process"):
            await mended_from(where, copy, "default", "")
    finally:
        await store.close()


PLACES = [(session, place) for session in ("one", "two") for place in (1, 2, 3, "a", "b")]
PLACE = st.sampled_from(PLACES)


def harm(db: sqlite3.Connection, session: str, place: int | str) -> None:
    """What a disk does to a message or a summary."""
    if isinstance(place, int):
        db.execute(DAMAGE.format(session, place))
    else:
        lies = "UPDATE summaries SET text = CAST(x'ff' AS TEXT) WHERE session = ? AND id = ?"
        db.execute(lies, (session, place))


def contents(path: Path) -> dict[tuple[str, int | str], tuple[object, ...]]:
    """Every message and summary, by its session and place."""
    with closing(sqlite3.connect(path)) as db:
        db.text_factory = bytes
        found = {}
        for table, place in (("messages", "sequence"), ("summaries", "id")):
            for row in db.execute(f"SELECT session, {place}, * FROM {table}"):
                at = row[1].decode() if isinstance(row[1], bytes) else row[1]
                found[row[0].decode(), at] = row
        return found


@given(bad=st.sets(PLACE), gone=st.sets(PLACE))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_a_backup_still_has_comes_back_and_nothing_else_changes(
    path: Path, bad: set[tuple[str, int | str]], gone: set[tuple[str, int | str]]
) -> None:
    """`bad`: what is damaged in the store; `gone`: in the backup."""
    store, backup = copied(path, "store-copy.db"), copied(path, "backup-copy.db")
    for file, harmed in ((store, bad), (backup, gone)):
        with closing(sqlite3.connect(file)) as db, db:
            for session, place in harmed:
                harm(db, session, place)
    whole, harmed_rows, kept = contents(path), contents(store), backup.read_bytes()
    checks = asyncio.run(mended_from(Where(store=str(store)), backup, "default", ""))
    told = {check.name: check for check in checks}
    for session in ("one", "two"):
        mine = {at for at in bad if at[0] == session}
        check = told.get(f"session.main.{session}")
        assert (check is not None) == bool(mine)
        if check is not None:
            assert check.found.startswith(f"{len(mine - gone)} of {len(mine)} ")
            assert check.status == (ERROR if mine & gone else OK)
    after = contents(store)
    assert after == {at: harmed_rows[at] if at in bad & gone else whole[at] for at in whole}
    assert backup.read_bytes() == kept
    for file in (store, backup):
        file.unlink()
