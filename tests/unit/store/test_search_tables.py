"""The tables of the search index: made where they can be, made anew where they are wrong, never in
the way of a start."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import MessageRow
from contextengine_server.store.search import (
    Advance,
    Asking,
    Cursor,
    Document,
    DocumentKind,
    Lane,
    SearchSpan,
)
from contextengine_server.store.sqlite import SqliteStore, database, lookups, passages
from contextengine_server.testing.store.documents import counted
from contextengine_server.testing.store.rows import SCOPE, Pen

V1 = Path(__file__).parents[2] / "data" / "store_v1.db"
TEXTS = ("the quick brown fox", "今天天气好", "src/app/main.py")


async def filled(path: Path) -> SqliteStore:
    """An open store with three messages, indexed."""
    store = SqliteStore(path)
    await store.open()
    pen = Pen(store)
    await pen.write(count=len(TEXTS))
    await index(store)
    return store


async def index(store: SqliteStore) -> None:
    progress = await store.index.progress(SCOPE)
    assert progress is not None
    documents = [Document(DocumentKind.MESSAGE, n, 0, text) for n, text in enumerate(TEXTS, 1)]
    after = Cursor(len(TEXTS), 0, 0, progress.revision)
    await store.index.advance(
        [Advance(SCOPE, progress.incarnation, progress.cursor, after, documents)]
    )


async def found(store: SqliteStore, text: str) -> list[int]:
    span = SearchSpan(SCOPE, DocumentKind.MESSAGE, 1, 99, 99)
    return [match.place for match in await store.index.find([span], [Lane(text)], 9)]


def without_fts5(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on an SQLite that was built without FTS5: its tables can be neither made nor opened."""
    told = {
        name: sql.replace("USING fts5", "USING fts5_that_is_not_there")
        for name, sql in passages.TABLES.items()
    }
    monkeypatch.setattr(passages, "TABLES", told)


async def test_an_old_database_gets_an_index_that_has_yet_to_be_filled(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    shutil.copy(V1, path)
    store = SqliteStore(path)
    await store.open()
    assert store.index.available
    assert sorted(await store.index.behind(9)) == [Scope("acme", "main", "fork"), SCOPE]
    progress = await store.index.progress(SCOPE)
    assert progress is not None
    assert (progress.cursor, progress.last_sequence, progress.summaries) == (Cursor(), 4, 1)
    await index(store)
    assert await found(store, "fox") == [1]
    await store.close()


async def test_a_restart_keeps_the_index_and_its_cursor(tmp_path: Path) -> None:
    store = await filled(tmp_path / "store.db")
    await store.close()
    await store.open()
    assert await found(store, "天气") == [2]
    assert await store.index.behind(9) == []
    await store.close()


@pytest.mark.parametrize(
    "wrong",
    ["search_documents", "search_words", "search_grams", "other tokenizer", "damaged", "cut short"],
)
async def test_tables_that_are_not_as_they_should_be_are_made_anew(
    tmp_path: Path, wrong: str
) -> None:
    path = tmp_path / "store.db"
    await (await filled(path)).close()
    with sqlite3.connect(path) as db:
        if wrong == "other tokenizer":
            db.execute("DROP TABLE search_words")
            db.execute("CREATE VIRTUAL TABLE search_words USING fts5(text, content='')")
        elif wrong == "damaged":
            db.execute("UPDATE search_words_config SET v = 99 WHERE k = 'version'")
        elif wrong == "cut short":
            db.execute("DROP TABLE search_grams_config")
        else:
            db.execute(f"DROP TABLE {wrong}")
    store = SqliteStore(path)
    await store.open()
    assert store.index.available
    assert await store.index.behind(9) == [SCOPE]
    assert await found(store, "fox") == []
    await index(store)
    assert await found(store, "main.py") == [3]
    await store.close()


async def test_a_database_without_full_text_search_opens_and_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.db"
    await (await filled(path)).close()
    with monkeypatch.context() as patched:
        without_fts5(patched)
        store = SqliteStore(path)
        await store.open()
        assert not store.index.available
        assert (await store.health()).ok
        pen = Pen(store, Scope("acme", "main", "s2"))
        await pen.write(messages=[MessageRow(1, 1, 1, b"h", b"body", 1)])
        assert await found(store, "fox") == []
        assert await counted(store, [], [Lane("fox")]) == []
        assert await store.index.scan(SearchSpan(SCOPE, DocumentKind.MESSAGE, 1, 9, 9), 9) == (
            [],
            None,
        )
        await store.delete(SCOPE, expected_revision=None, cascade=False)
        assert not await store.index.tidy()
        await store.close()
        with database.connect(path) as db:
            names = {
                name
                for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
            assert "search_documents" not in names, "what could not be erased is not kept"
            assert db.execute("SELECT COUNT(*) FROM search_cursors").fetchone() == (0,)
    store = SqliteStore(path)
    await store.open()
    assert store.index.available
    assert await store.index.behind(9) == [pen.scope]
    await store.close()


async def test_a_new_database_without_full_text_search_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_fts5(monkeypatch)
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    assert not store.index.available
    await Pen(store).write(count=2)
    await store.close()


async def test_an_erasure_that_was_cut_off_goes_on_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    await (await filled(path)).close()
    with database.connect(path) as db:
        names = {"tenant": "acme", "agent": "main", "session": "s1"}
        for table in ("messages", "sessions"):
            db.execute(f"DELETE FROM {table} WHERE tenant = 'acme'")
        db.execute(passages.DOOM, names)
    store = SqliteStore(path)
    await store.open()
    while await store.index.tidy():
        pass
    await store.close()
    with database.connect(path) as db:
        for table in ("search_documents", "search_cursors"):
            assert db.execute(f"SELECT COUNT(*) FROM {table}").fetchone() == (0,)
        assert (
            db.execute("SELECT rowid FROM search_words WHERE search_words MATCH 'fox'").fetchall()
            == []
        )
        assert (
            db.execute("SELECT rowid FROM search_grams WHERE search_grams MATCH 'fox'").fetchall()
            == []
        )


async def test_folding_leaves_few_segments(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    pen = Pen(store)
    await pen.write(count=400)
    for n in range(100):
        progress = await store.index.progress(SCOPE)
        assert progress is not None
        documents = [
            Document(DocumentKind.MESSAGE, n * 4 + k, 0, f"text {n} {k}") for k in range(1, 5)
        ]
        after = Cursor(n * 4 + 4, 0, 0, 1)
        await store.index.advance([Advance(SCOPE, "first life", progress.cursor, after, documents)])
    while await store.index.tidy():
        pass
    await store.close()
    with database.connect(path) as db:
        for table in passages.FTS:
            segments = db.execute(f"SELECT COUNT(DISTINCT segid) FROM {table}_idx").fetchone()[0]
            assert segments <= passages.FOLD_AFTER, table
            db.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")


async def test_an_index_of_before_is_folded_as_now(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = await filled(path)
    await store.close()
    merged = "SELECT v FROM search_grams_config WHERE k = 'usermerge'"
    with database.connect(path) as db:
        db.execute("INSERT INTO search_grams (search_grams, rank) VALUES ('usermerge', 16)")
        assert db.execute(merged).fetchone() == (16,)
    store = SqliteStore(path)
    await store.open()
    assert await found(store, "fox") == [1], "it was not made anew for that"
    await store.close()
    with database.connect(path) as db:
        assert db.execute(merged).fetchone() == (passages.FOLD_AFTER,)


@pytest.mark.parametrize("held", [0, 2, 4_000])
async def test_however_many_passages_are_held_the_same_are_found(
    tmp_path: Path, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookups, "_HELD", held)
    store = await filled(tmp_path / "store.db")
    span = SearchSpan(SCOPE, DocumentKind.MESSAGE, 1, 99, 99)
    counted: list[list[int]] = []

    def asking() -> Asking:
        counted.append((yield [Lane("fox"), Lane("a"), Lane("main"), Lane("fox")]))
        counted.append((yield [Lane("pp/m", True), Lane("row", True)]))
        return [Lane("main", weight=3), Lane("row", True, 2), Lane("pp/m", True), Lane("fox")]

    matches = await store.index.look([span, span], asking(), 9)
    assert counted == [[2, 0, 2, 2], [2, 2]], "each span counts"
    assert [(match.place, match.lanes) for match in matches] == [(3, 5), (1, 10)]
    await store.close()


@pytest.mark.parametrize(
    ("name", "index"),
    [
        (
            "HEAD",
            "sessions USING INDEX sqlite_autoindex_sessions_1 (tenant=? AND agent=? AND session=?)",
        ),
        ("CURSOR", "(tenant=? AND agent=? AND session=? AND incarnation=?)"),
        ("PROGRESS", "search_cursors_1 (tenant=? AND agent=? AND session=? AND incarnation=?)"),
        ("PROGRESS", "messages_1 (tenant=? AND agent=? AND session=?)"),
        ("PROGRESS", "summaries_1 (tenant=? AND agent=? AND session=?)"),
        ("SUMMARIES", "(tenant=? AND agent=? AND session=?)"),
        ("DOOM", "(tenant=? AND agent=? AND session=?)"),
        ("DOOMED", "search_cursors_doomed"),
        ("NEW_NUMBER", "search_cursors_number"),
        ("FORGET", "search_cursors_number"),
        ("PASSAGES", "INTEGER PRIMARY KEY"),
    ],
)
def test_the_index_is_asked_by_keys(tmp_path: Path, name: str, index: str) -> None:
    path = tmp_path / "store.db"
    database.prepare(path)
    with database.connect(path) as db:
        assert passages.prepare(db)
        statement = getattr(passages, name)
        names = dict.fromkeys(
            ("tenant", "agent", "session", "incarnation", "skip", "limit", "number", "low", "high"),
            1,
        )
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}", names)]
    assert any(index in step for step in plan), plan
    assert name != "PROGRESS" or not any(step.startswith("SCAN") for step in plan), plan


async def test_what_is_indexed_takes_room_as_well(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    other = Pen(store, SCOPE._replace(session="other"))
    await Pen(store).write(count=len(TEXTS))
    await other.write(count=1)
    before, besides = await store.size(SCOPE), await store.size(other.scope)
    await index(store)
    assert await store.size(SCOPE) == before + sum(len(text.encode()) for text in TEXTS)
    assert await store.size(other.scope) == besides
    await store.close()
