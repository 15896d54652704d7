"""Why a store refuses a commit, in words that name what is wrong with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import (
    DuplicateHostIds,
    DuplicateRequest,
    HasDependents,
    ParentGone,
    RevisionConflict,
    StoreError,
    StoreUnavailable,
)
from contextengine_server.store.lineage import parent_of
from contextengine_server.store.memory import MemoryStore, Tables
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Facts, Parent, SessionHead, StoredReply
from contextengine_server.store.sqlite import SqliteStore
from contextengine_server.testing.store.rows import SCOPE, Pen, debt, message, summary

OTHER = SCOPE._replace(session="other")


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made = (
        MemoryStore(Tables()) if request.param == "memory" else SqliteStore(tmp_path / "store.db")
    )
    await made.open()
    yield made
    await made.close()


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"bind_key": True}, "s1: bind_key needs a session key in the head"),
        ({"parent": Parent(OTHER, "")}, "s1: a parent needs a scope and an incarnation"),
        (
            {"parent": Parent(Scope("acme", "main", ""), "x")},
            "s1: a parent needs a scope and an incarnation",
        ),
        ({"debt": debt(OTHER)}, "s1: a debt of another session, other"),
    ],
)
async def test_a_commit_at_odds_with_itself(store: Store, wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(StoreError) as refused:
        await store.commit(Pen(store).next(count=1, **wrong))
    assert str(refused.value) == text
    assert await store.head(SCOPE) is None


async def test_a_scope_that_is_not_complete(store: Store) -> None:
    scope = Scope("acme", "", "s1")
    with pytest.raises(StoreError) as refused:
        await store.commit(Pen(store, scope).next(count=1))
    assert str(refused.value) == f"{scope}: a session needs a tenant, an agent and an id"


NAMED = " rows were named, not all of them are stored"


@pytest.mark.parametrize(
    ("wrong", "memory", "sqlite"),
    [
        (
            {"retire_summaries": ["gone"]},
            "summary gone is to be retired: it is not live",
            f"no such live summary: 1{NAMED}",
        ),
        (
            {"retire_summaries": ["kept", "none"]},
            "summary none is to be retired: it is not live",
            f"no such live summary: 2{NAMED}",
        ),
        (
            {"facts": [Facts(9, 1, 1, None)]},
            "facts of message 9: it is not stored",
            f"facts of a message that is not there: 1{NAMED}",
        ),
        (
            {"messages": [message(2, 2), message(7, 2)]},
            "messages 2 to 7: a sequence among them is stored already",
            "",
        ),
        (
            {"summaries": [summary("new", 1, 1, 2), summary("kept", 1, 1, 2)]},
            "summaries new, kept: an id among them is stored already",
            "",
        ),
    ],
)
async def test_a_commit_at_odds_with_the_rows(
    store: Store, wrong: dict[str, Any], memory: str, sqlite: str
) -> None:
    pen = Pen(store)
    await pen.write(count=2, summaries=[summary("kept", 1, 1), summary("gone", 2, 2)])
    await pen.write(retire_summaries=["gone"])
    with pytest.raises(StoreError) as refused:
        await pen.write(**wrong)
    assert str(refused.value) == (sqlite if isinstance(store, SqliteStore) and sqlite else memory)


async def test_who_lost_a_race_or_came_twice_is_told_by_what(store: Store) -> None:
    pen = Pen(store)
    reply = StoredReply("r1", b"digest", b"reply")
    await pen.write(messages=[message(1, host_id="a"), message(2, host_id="b")], reply=reply)
    with pytest.raises(RevisionConflict) as lost:
        await pen.write(count=1, expected_revision=4)
    assert str(lost.value) == "s1: expected revision 4, found 1"
    with pytest.raises(RevisionConflict) as lost:
        await Pen(store, OTHER).write(count=1, expected_revision=4)
    assert str(lost.value) == "other: expected revision 4, found None"
    twice = [message(3, 2, host_id="a"), message(4, 2, host_id="b")]
    with pytest.raises(DuplicateHostIds) as duplicate:
        await pen.write(messages=twice)
    assert str(duplicate.value) == "2 message ids are stored already"
    with pytest.raises(DuplicateRequest) as answered:
        await pen.write(count=1, reply=reply)
    assert str(answered.value) == "request id 'r1' was answered before"
    with pytest.raises(ParentGone) as gone:
        await Pen(store, OTHER).write(count=1, parent=Parent(SCOPE, "another life"))
    assert str(gone.value) == "s1 is gone, or another session has its name"
    assert gone.value.scope == SCOPE


async def test_who_stands_on_a_session_is_named(store: Store) -> None:
    await Pen(store).write(count=1)
    parent = Parent(SCOPE, "first life")
    for number in range(7):
        pen = Pen(store, SCOPE._replace(session=f"c{number}"))
        stands = {"parent_session": "s1", "parent_incarnation": "first life"}
        await pen.write(head=stands, parent=parent)
    with pytest.raises(HasDependents) as refused:
        await store.delete(SCOPE, expected_revision=None, cascade=False)
    assert str(refused.value) == "7 sessions stand on it: c0, c1, c2, c3, c4"
    assert refused.value.sessions == tuple(f"c{number}" for number in range(7))


async def test_a_closed_store_says_so(store: Store) -> None:
    await store.close()
    with pytest.raises(StoreUnavailable) as refused:
        await store.head(SCOPE)
    assert str(refused.value) == "the store is closed"
    await store.open()


async def test_nothing_is_read_of_a_session_that_is_not_there(store: Store) -> None:
    assert await store.messages(SCOPE) == []
    assert await store.messages_by_host_id(SCOPE, ["a"]) == []
    assert await store.pinned_atoms(SCOPE, 9) == []
    assert await store.atom_of(SCOPE, 1) == []
    assert await store.atom_from(SCOPE, 0) is None
    assert await store.late_results(SCOPE, 1, 9) == []
    assert await store.summaries(SCOPE) == []
    assert await store.index.summaries(SCOPE, 0) == []
    assert await store.changes(SCOPE, 0) is None
    assert await store.reply(SCOPE, "r1") is None
    assert await store.size(SCOPE) == 0
    assert await store.mend(SCOPE, [(1, b"", b"")]) == 0
    assert await store.mend_summaries(SCOPE, [summary("a", 1, 1)]) == 0
    assert await store.stray_replies(SCOPE, 0, erase=True) == 0


async def test_what_a_session_stands_on(store: Store) -> None:
    parent = Pen(store, OTHER)
    await parent.write(count=1)
    head = SessionHead(SCOPE, "i", 1, 0)
    assert await parent_of(store, head) is None
    child = replace(head, parent_session="other", parent_incarnation="first life")
    assert await parent_of(store, child) == parent.head
    assert await parent_of(store, replace(child, parent_incarnation="")) == parent.head
    assert await parent_of(store, replace(child, parent_incarnation="another")) is None
    assert await parent_of(store, replace(child, parent_session="none")) is None


async def test_what_a_session_holds_of_itself_is_summed(store: Store) -> None:
    """Bodies, hashes, host ids, the texts of summaries, and what requests were answered."""
    pen = Pen(store)
    await pen.write(count=1)
    before = await store.size(SCOPE)
    grown = message(2, 2, body=b"x" * 5_000, host_id="é" * 50)
    await pen.write(messages=[grown])
    after = await store.size(SCOPE)
    assert after - before >= 5_000 + 32 + 100
    note = replace(summary("s", 1, 1, 3), text="é" * 3_000)
    await pen.write(summaries=[note], reply=StoredReply("r", b"d" * 100, b"r" * 4_000))
    assert await store.size(SCOPE) - after >= 6_000 + 4_100
