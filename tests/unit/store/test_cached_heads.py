"""What is kept in memory is never older than what was committed."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.cached_heads import LEAST_HEADS, CachedHeads, Remembered
from contextengine_server.store.errors import RevisionConflict, StoreUnavailable
from contextengine_server.store.kinds import store_of
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Commit, SessionHead, Spawn, StoredReply
from contextengine_server.store.sqlite import SqliteStore
from contextengine_server.store.sqlite.kind import KIND as SQLITE

SCOPE = Scope("acme", "main", "s1")
HEAD = SessionHead(SCOPE, "life", 1, 0, session_key="key")
REPLY = StoredReply("r", b"", b"")


class Rows:
    """A read that can be held up."""

    def __init__(self, value: str | None) -> None:
        self.value = value
        self.reads = 0
        self.go = asyncio.Event()
        self.go.set()

    async def read(self) -> str | None:
        self.reads += 1
        found = self.value
        await self.go.wait()
        return found


async def ask(memory: Remembered[str, str], key: str, rows: Rows) -> str | None:
    known = memory.get(key)
    return known if known is not None else await memory.read(key, rows.read())


async def test_a_value_is_read_once() -> None:
    memory: Remembered[str, str] = Remembered(9)
    rows = Rows("v1")
    assert [await ask(memory, "k", rows) for _ in range(3)] == ["v1"] * 3
    assert rows.reads == 1


async def test_what_is_not_there_is_asked_for_again() -> None:
    memory: Remembered[str, str] = Remembered(9)
    rows = Rows(None)
    assert await ask(memory, "k", rows) is None
    rows.value = "v1"
    assert await ask(memory, "k", rows) == "v1"


async def test_what_was_put_is_seen_without_a_read() -> None:
    memory: Remembered[str, str] = Remembered(9)
    rows = Rows("v1")
    memory.put("k", "v2")
    assert await ask(memory, "k", rows) == "v2"
    assert rows.reads == 0


async def test_a_read_from_before_a_commit_does_not_come_back_after_it() -> None:
    for forget in (False, True):
        memory: Remembered[str, str] = Remembered(9)
        rows = Rows("v1")
        rows.go.clear()
        reading = asyncio.create_task(ask(memory, "k", rows))
        await asyncio.sleep(0)
        if forget:
            memory.drop("k")  # deleted; or committed, then pushed out
        else:
            memory.put("k", "v2")
        rows.value = "v2"
        rows.go.set()
        assert await reading == "v1"
        assert await ask(memory, "k", rows) == "v2"


async def test_a_cleared_memory_forgets_reads_under_way() -> None:
    memory: Remembered[str, str] = Remembered(9)
    rows = Rows("v1")
    rows.go.clear()
    reading = asyncio.create_task(ask(memory, "k", rows))
    await asyncio.sleep(0)
    memory.clear()
    rows.value = "v2"
    rows.go.set()
    await reading
    assert await ask(memory, "k", rows) == "v2"


async def test_the_least_recently_used_leaves() -> None:
    memory: Remembered[str, str] = Remembered(2)
    rows = Rows("read")
    memory.put("a", "1")
    memory.put("b", "2")
    assert await ask(memory, "a", rows) == "1"
    memory.put("c", "3")
    assert len(memory) == 2
    assert await ask(memory, "a", rows) == "1"
    assert await ask(memory, "b", rows) == "read"


async def test_a_read_that_fails_leaves_nothing_behind() -> None:
    memory: Remembered[str, str] = Remembered(2)

    async def fails() -> str:
        raise OSError("no disk")

    for _ in range(2):
        with pytest.raises(OSError, match="no disk"):
            await memory.read("k", fails())
    assert memory._reading == {}


class Counted(SqliteStore):
    """Counts what reaches the database."""

    reads = 0

    async def head(self, scope: Scope) -> SessionHead | None:
        self.reads += 1
        return await super().head(scope)

    async def current_session(self, tenant: str, agent: str, session_key: str) -> str | None:
        self.reads += 1
        return await super().current_session(tenant, agent, session_key)


@pytest_asyncio.fixture
async def counted(tmp_path: Path) -> AsyncIterator[Counted]:
    store = Counted(tmp_path / "store.db")
    yield store
    await store.close()


@pytest_asyncio.fixture
async def store(counted: Counted) -> AsyncIterator[CachedHeads]:
    made = CachedHeads(counted)
    await made.open()
    yield made
    await made.close()


async def test_a_commit_is_followed_without_a_read(store: CachedHeads, counted: Counted) -> None:
    await store.commit(Commit(HEAD, 0, bind_key=True))
    assert await store.head(SCOPE) == HEAD
    assert await store.current_session("acme", "main", "key") == "s1"
    assert counted.reads == 0


async def test_what_was_not_written_here_is_read_once(store: CachedHeads, counted: Counted) -> None:
    await store.commit(Commit(HEAD, 0, bind_key=True))
    await store.close()
    await store.open()
    for _ in range(3):
        assert await store.head(SCOPE) == HEAD
        assert await store.current_session("acme", "main", "key") == "s1"
    assert counted.reads == 2


async def test_a_commit_whose_caller_left_is_followed(store: CachedHeads) -> None:
    await store.commit(Commit(HEAD, 0))
    after = replace(HEAD, revision=2)
    waiting = asyncio.ensure_future(store.commit(Commit(after, 1)))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await store.remember(SCOPE._replace(session="none"), REPLY)  # a write that comes after it
    assert await store.head(SCOPE) == after


async def test_a_refused_commit_changes_nothing_in_memory(store: CachedHeads) -> None:
    await store.commit(Commit(HEAD, 0))
    with pytest.raises(RevisionConflict):
        await store.commit(Commit(replace(HEAD, revision=9), 8))
    assert await store.head(SCOPE) == HEAD


async def test_what_was_deleted_is_forgotten(store: CachedHeads) -> None:
    await store.commit(Commit(HEAD, 0, bind_key=True))
    await store.delete(SCOPE, expected_revision=None, cascade=False)
    assert await store.head(SCOPE) is None
    assert await store.current_session("acme", "main", "key") is None


async def test_a_child_is_followed_from_its_spawn_to_its_end(
    store: CachedHeads, counted: Counted
) -> None:
    await store.commit(Commit(HEAD, 0))
    child = SessionHead(SCOPE._replace(session="child"), "child's life", 1, 0)
    spawn = Spawn(
        tenant="acme", token="t", agent="main", session="child", parent_agent="main",
        parent_session="s1", parent_revision=1, parent_sequence=0, fork=False, depth=1,
        created_ms=1, ttl_ms=10, expire_ms=11,
    )  # fmt: skip
    await store.spawns.prepare(spawn, Commit(child, 0), 9)
    assert await store.head(child.scope) == child
    assert counted.reads == 0
    await store.spawns.end("acme", "t", "rolled back", 5, take_back=True)
    assert await store.head(child.scope) is None


async def test_a_closed_store_answers_nothing(store: CachedHeads) -> None:
    await store.commit(Commit(HEAD, 0))
    await store.close()
    with pytest.raises(StoreUnavailable):
        await store.head(SCOPE)


def test_every_method_of_a_store_is_there(counted: Counted) -> None:
    made = CachedHeads(counted)
    wanted = {name for name, _ in inspect.getmembers(Store, callable) if not name.startswith("_")}
    assert {"head", "commit", "list_sessions", "observe"} <= wanted
    assert not [name for name in wanted | set(Store.__annotations__) if not hasattr(made, name)]


async def test_all_else_is_the_stores_own(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    cached = CachedHeads(store)
    taken_over = {name: one for name, one in vars(cached).items() if not name.startswith("_")}
    assert len(taken_over) > 30
    assert taken_over == {name: getattr(store, name) for name in taken_over}


async def test_heads_of_all_that_may_be_warm_are_held(tmp_path: Path) -> None:
    """A call of a warm session reads nothing, however many there are."""
    many = LEAST_HEADS + 500
    store = store_of(SQLITE, str(tmp_path / "store.db"), warm=many)
    assert isinstance(store, CachedHeads)
    for number in range(many):
        scope = Scope("acme", "main", f"s{number}")
        store.committed(Commit(replace(HEAD, scope=scope, session_key=""), 0))
    # The store is not open: what is answered is in memory.
    for number in range(many):
        head = await store.head(Scope("acme", "main", f"s{number}"))
        assert head is not None
        assert head.scope.session == f"s{number}"
