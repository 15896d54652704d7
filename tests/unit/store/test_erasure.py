"""What was deleted is in no file of the database: not in a row, not in the index, not in the
log."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.debts import Debt
from contextengine_server.store.errors import HasDependents
from contextengine_server.store.model_jobs import ModelJob
from contextengine_server.store.rows import MessageRow, StoredReply
from contextengine_server.store.search import Advance, Cursor, Document, DocumentKind
from contextengine_server.store.sqlite import SqliteStore, database
from contextengine_server.store.sqlite import store as sqlite_store
from contextengine_server.store.sqlite.disk import space
from contextengine_server.testing.store.rows import Pen, summary

TENANT, AGENT = "acme", "main"


def scope(name: str) -> Scope:
    return Scope(TENANT, AGENT, name)


def files(path: Path) -> bytes:
    """All bytes of the database and of what lies beside it, in lower case as the index has them."""
    return b"".join(one.read_bytes() for one in path.parent.glob(path.name + "*")).lower()


def canary(draw: random.Random) -> str:
    """A word that begins like no other, so that the index cannot keep it in parts."""
    return "".join(draw.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=16))


class Secrets:
    """Writes sessions whose every text holds a word that is nowhere else."""

    def __init__(self, store: SqliteStore, seed: int) -> None:
        self.store, self.draw = store, random.Random(seed)
        self.pens: dict[str, Pen] = {}
        self.words: dict[str, list[str]] = {}

    def _word(self, name: str) -> str:
        self.words[name].append(canary(self.draw))
        return self.words[name][-1]

    async def write(self, name: str) -> None:
        """Some messages, a summary, a reply, a debt and a job of a session, all indexed."""
        new = name not in self.pens
        pen = self.pens.setdefault(name, Pen(self.store, scope(name), f"life {name}"))
        words = self.words.setdefault(name, [])
        before = Cursor() if new else Cursor(pen.head.last_sequence, 0, 0, pen.head.revision)
        revision, last = pen.head.revision + 1, pen.head.last_sequence
        texts = {
            last + 1 + at: f"{self._word(name)} " * self.draw.choice([1, 1, 40, 900])
            for at in range(self.draw.randint(1, 12))
        }
        rows = [
            MessageRow(at, 1, 1, b"h", text.encode(), revision, host_id=self._word(name))
            for at, text in texts.items()
        ]
        note = summary(f"s{revision}", last + 1, last + 1, revision)
        await pen.write(
            messages=rows,
            summaries=[replace(note, text=self._word(name))],
            reply=StoredReply(self._word(name), b"d", self._word(name).encode()),
            debt=Debt(pen.scope, "compact", 1, payload=self._word(name).encode()),
        )
        documents = [Document(DocumentKind.MESSAGE, at, 0, text) for at, text in texts.items()] + [
            Document(DocumentKind.SUMMARY, revision - 1, 0, words[-4])
        ]
        after = Cursor(pen.head.last_sequence, 0, 0, revision)
        await self.store.index.advance(
            [Advance(pen.scope, pen.head.incarnation, before, after, documents)]
        )
        job = ModelJob(
            TENANT, f"j{name}{revision}", f"d{name}{revision}", AGENT, name, 1, 9,
            work=self._word(name).encode(),
        )  # fmt: skip
        await self.store.model_leases.offer(job, 1)

    async def delete(self, name: str) -> list[str]:
        """Erases a session; the words that must be gone."""
        del self.pens[name]
        await self.store.delete(scope(name), expected_revision=None, cascade=False)
        return self.words.pop(name)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deletion waits for the overwriting as long as that takes on a busy machine."""
    monkeypatch.setattr(sqlite_store, "_PURGE_S", 60.0)


@pytest.mark.parametrize("seed", range(4))
async def test_no_file_holds_a_word_of_what_was_deleted(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    secrets = Secrets(store, seed)
    for _ in range(150):
        await secrets.write(f"s{secrets.draw.randrange(12)}")
        while secrets.draw.random() < 0.3 and await store.index.tidy():
            pass
    written = files(path)
    assert all(word.encode() in written for word in [one[0] for one in secrets.words.values()])
    for name in secrets.draw.sample(sorted(secrets.pens), 5):
        gone = await secrets.delete(name)
        found = files(path)
        assert [word for word in gone if word.encode() in found] == []
        await secrets.write(secrets.draw.choice(sorted(secrets.pens)))
    kept = sorted(secrets.pens)
    for name in kept:
        messages = await store.messages(scope(name))
        assert [row.sequence for row in messages] == list(
            range(1, secrets.pens[name].head.last_sequence + 1)
        )
    await store.close()
    with database.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        for table in ("search_words", "search_grams"):
            db.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")


async def test_space_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    empty = path.stat().st_size
    secrets = Secrets(store, 1)
    for _ in range(60):
        await secrets.write(f"s{secrets.draw.randrange(5)}")
    for name in sorted(secrets.pens):
        await secrets.delete(name)
    while await store.index.tidy():
        pass
    assert path.stat().st_size < empty + 100_000
    assert path.with_name("store.db-wal").stat().st_size < 10_000
    await store.close()


async def test_what_a_reader_holds_open_is_overwritten_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deletion does not wait for a slow reader for ever, and upkeep goes on with it, also after a
    restart."""
    monkeypatch.setattr(sqlite_store, "_PURGE_S", 0.3)
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    secrets = Secrets(store, 2)
    await secrets.write("a")
    reader = database.connect_reader(path)
    reader.execute("BEGIN")
    reader.execute("SELECT COUNT(*) FROM messages").fetchone()
    async with asyncio.timeout(60):
        gone = await secrets.delete("a")
    assert any(word.encode() in files(path) for word in gone)
    reader.close()
    await store.close()
    store = SqliteStore(path)
    await store.open()
    while await store.index.tidy():
        pass
    assert [word for word in gone if word.encode() in files(path)] == []
    await store.close()


async def test_a_file_of_an_earlier_version_is_made_so_that_space_comes_back(
    tmp_path: Path,
) -> None:
    """And what was deleted from it before is overwritten."""
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    secrets = Secrets(store, 3)
    for name in "abc":
        await secrets.write(name)
    await store.close()
    with database.connect(path) as db:
        db.execute("DROP TABLE search_purges")
        db.execute("PRAGMA auto_vacuum = NONE")
        db.execute("VACUUM")
        assert db.execute("PRAGMA auto_vacuum").fetchone() == (0,)
    store = SqliteStore(path)
    await store.open()
    assert (await store.health()).facts["vacuum"] == "not wanted"
    while await store.index.tidy():
        pass
    await store.close()
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA auto_vacuum").fetchone() == (2,)


async def test_a_large_file_of_an_earlier_version_waits_for_its_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    await store.close()
    with database.connect(path) as db:
        db.execute("PRAGMA auto_vacuum = NONE")
        db.execute("VACUUM")
    monkeypatch.setattr(space, "SMALL", 1000)
    store = SqliteStore(path)
    await store.open()
    assert (await store.health()).facts["vacuum"].startswith("wanted: until")
    await store.vacuum()
    assert (await store.health()).facts["vacuum"] == "not wanted"
    await store.close()


async def test_of_a_large_file_the_index_and_the_log_are_overwritten_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies of rows that SQLite moved are left to the operator, who is told."""
    monkeypatch.setattr(space, "TINY", 0)
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    secrets = Secrets(store, 4)
    for _ in range(40):
        await secrets.write(f"s{secrets.draw.randrange(4)}")
    gone = [*await secrets.delete("s0"), *await secrets.delete("s1")]
    assert (await store.health()).facts["vacuum"].startswith("wanted: copies")
    assert path.with_name("store.db-wal").stat().st_size < 10_000
    assert store.index.available
    await store.vacuum()
    assert [word for word in gone if word.encode() in files(path)] == []
    assert (await store.health()).facts["vacuum"] == "not wanted"
    await store.close()


async def test_what_was_never_indexed_is_overwritten_as_well(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    word = canary(random.Random(5))
    await Pen(store).write(messages=[MessageRow(1, 1, 1, b"h", word.encode(), 1)])
    assert word.encode() in files(path)
    await store.delete(Scope("acme", "main", "s1"), expected_revision=None, cascade=False)
    assert word.encode() not in files(path)
    await store.close()


def test_what_stands_on_a_session_is_named_as_far_as_it_can_be_read() -> None:
    error = HasDependents([f"s{at}" for at in range(7)])
    assert str(error) == "7 sessions stand on it: s0, s1, s2, s3, s4"
    assert error.sessions == tuple(f"s{at}" for at in range(7))


async def test_the_log_is_emptied_once_nobody_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then it is tried again, and others have their turn in between; in the end it is let
    be."""
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    tries: list[bool] = []
    paused: list[float] = []
    sleep = asyncio.sleep

    async def pause(seconds: float) -> None:
        paused.append(seconds)
        await sleep(0)

    def truncated(db: sqlite3.Connection) -> bool:
        tries.append(len(tries) == 3)
        return tries[-1]

    def written_anew(db: sqlite3.Connection) -> None:
        tries.clear()
        paused.clear()

    monkeypatch.setattr(asyncio, "sleep", pause)
    monkeypatch.setattr(space, "vacuum", written_anew)
    monkeypatch.setattr(space, "truncate_log", truncated)
    await store.vacuum()
    assert tries == [False, False, False, True]
    assert len(paused) == 3
    assert all(seconds > 0 for seconds in paused)

    def held_up(db: sqlite3.Connection) -> bool:
        tries.append(False)
        return False

    monkeypatch.setattr(space, "truncate_log", held_up)
    monkeypatch.setattr(sqlite_store, "_LOG_TRIES", 5)
    await store.vacuum()
    assert len(tries) == 5
    await store.close()
