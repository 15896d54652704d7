"""Passages that were looked up are kept: they are not read again, what a query asks of them holds
as before, and no more of them is kept than there is room for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.store.search import Lane, Match, SearchSpan
from contextengine_server.store.sqlite import SqliteStore, database, lookups
from contextengine_server.store.sqlite.passages import Numbered
from contextengine_server.testing.store.documents import fill, span
from contextengine_server.testing.store.rows import SCOPE, Pen, message

TEXTS = ("the brown fox", "a brown bear", "the grey wolf", "one brown hare")
LIFE = Numbered(1, "first life")


@pytest.fixture
async def pen(tmp_path: Path) -> AsyncIterator[Pen]:
    """A session of two revisions with two messages each, all indexed."""
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    pen = Pen(store)
    for first in (1, 3):
        rows = [
            message(n, pen.head.revision + 1, role=n % 2 + 1, time_ms=n * 1_000 if n < 4 else None)
            for n in (first, first + 1)
        ]
        await pen.write(messages=rows)
    await fill(pen, *TEXTS)
    yield pen
    await store.close()


class Reader:
    """Looks up on a connection of its own, and counts how often texts were read."""

    def __init__(self, path: Path, kept: lookups.Kept) -> None:
        self.kept, self.reads = kept, 0
        self._db = database.connect_reader(path)
        self._db.set_trace_callback(self._count)

    def find(self, text: str, where: SearchSpan) -> list[Match]:
        return lookups.find(self._db, self.kept, [where], [Lane(text)], 9)

    def _count(self, statement: str) -> None:
        self.reads += "search_documents" in statement

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *unused: object) -> None:
        self._db.close()


def test_a_passage_is_read_once(pen: Pen, tmp_path: Path) -> None:
    with Reader(tmp_path / "store.db", lookups.Kept()) as reader:
        first = reader.find("brown", span())
        assert [(match.place, match.text) for match in first] == [
            (n, TEXTS[n - 1]) for n in (4, 2, 1)
        ]
        assert reader.reads == 1
        assert reader.find("brown", span()) == first
        assert [match.place for match in reader.find("fox", span())] == [1]
        assert reader.reads == 1
        # Another text of those that are known: only it is read, …
        assert [match.place for match in reader.find("the", span())] == [3, 1]
        assert reader.reads == 2
        # … and none is known of another session.
        assert reader.find("brown", span(Scope("acme", "main", "s2"))) == []


async def test_what_is_asked_of_messages_holds_for_kept_ones(pen: Pen, tmp_path: Path) -> None:
    asked = [
        span(),
        span(revision=1),
        span(retired=True),
        span(roles=(1,)),
        span(roles=(2,)),
        span(start_ms=2_000),
        span(end_ms=2_000),
        span(first=2, last=3),
        span(roles=(2,), end_ms=2_000, revision=1),
    ]
    kept = lookups.Kept()
    path = tmp_path / "store.db"

    def compare() -> list[list[int]]:
        places = []
        for where in asked:
            with Reader(path, kept) as warm, Reader(path, lookups.Kept()) as cold:
                found = warm.find("brown", where)
                assert found == cold.find("brown", where), where
                places.append([match.place for match in found])
        return places

    with Reader(path, kept) as reader:
        reader.find("brown", span())
    before = compare()
    assert before == [[4, 2, 1], [2, 1], [4, 2, 1], [4, 2], [1], [2], [1], [2], [1]]
    # What leaves the view is found no more, but by who asks for such, or for the time before.
    await pen.write(retire_after=3)
    assert [4 in places for places in compare()] == [False, False, True] + [False] * 6
    with Reader(path, kept) as reader:
        assert [match.place for match in reader.find("brown", span(revision=2))] == [4, 2, 1]


async def test_nothing_is_kept_of_what_is_erased_or_indexed_anew(pen: Pen) -> None:
    store = pen.store
    assert isinstance(store, SqliteStore)
    kept = store.index._kept  # type: ignore[attr-defined]
    await store.index.find([span()], [Lane("brown")], 9)
    assert kept.size
    await store.index.renew(SCOPE)
    assert not kept.size
    while await store.index.erase():
        pass
    await fill(pen, "a brown owl", *TEXTS[1:])
    found = await store.index.find([span()], [Lane("brown")], 9)
    assert [match.text for match in found] == [TEXTS[3], TEXTS[1], "a brown owl"]
    assert kept.size
    await store.delete(SCOPE, expected_revision=None, cascade=False)
    while await store.index.erase():
        pass
    assert not kept.size


def test_the_session_goes_that_was_used_longest_ago() -> None:
    kept = lookups.Kept(most=2_000)
    scopes = [named(name) for name in "abc"]
    for scope in scopes[:2]:
        since, known = kept.of(scope, LIFE)
        assert not known
        kept.add(scope, LIFE, since, {1: ("x" * 500, 1, None, "", 1)})
    kept.of(scopes[0], LIFE)
    since, _ = kept.of(scopes[2], LIFE)
    kept.add(scopes[2], LIFE, since, {1: ("x" * 500, 1, None, "", 1)})
    assert [bool(kept.of(scope, LIFE)[1]) for scope in scopes] == [True, False, True]
    # What has no room by itself is not kept at all, and nothing is counted twice.
    size = kept.size
    kept.add(scopes[2], LIFE, since, {1: ("x" * 500, 1, None, "", 1)})
    assert kept.size == size
    kept.add(scopes[2], LIFE, since, {2: ("x" * 5_000, 1, None, "", 1)})
    assert kept.size == 0


def test_what_was_read_before_all_was_given_up_is_not_kept() -> None:
    kept = lookups.Kept()
    since, _ = kept.of(SCOPE, LIFE)
    kept.clear()
    kept.add(SCOPE, LIFE, since, {1: ("old", 1, None, "", 1)})
    assert not kept.of(SCOPE, LIFE)[1]


def test_another_life_under_the_same_number_is_another_session() -> None:
    kept = lookups.Kept()
    since, _ = kept.of(SCOPE, LIFE)
    kept.add(SCOPE, LIFE, since, {1: ("old", 1, None, "", 1)})
    assert kept.of(SCOPE, LIFE)[1]
    assert not kept.of(SCOPE, living("second life"))[1]
    assert not kept.of(named("other"), LIFE)[1]


def named(name: str) -> Scope:
    return SCOPE._replace(session=name)


def living(incarnation: str) -> Numbered:
    return LIFE._replace(incarnation=incarnation)
