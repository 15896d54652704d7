"""How the writer writes: durably, many commits to a transaction, each failing alone; and what a
full disk does."""

from __future__ import annotations

import asyncio
import re
import resource
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace
from structlog.testing import capture_logs

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import DuplicateHostIds, StoreUnavailable
from contextengine_server.store.sqlite import SqliteStore
from contextengine_server.store.sqlite import writer as writer_module
from contextengine_server.store.sqlite.kind import KIND as SQLITE
from tests.unit.store.writing import commit, held, writer_of


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "store.db")
    await opened.open()
    yield opened
    await opened.close()


async def test_what_is_acknowledged_is_on_disk(store: SqliteStore) -> None:
    def pragmas(db: sqlite3.Connection) -> list[object]:
        return [
            db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "fullfsync")
        ]

    mode, synchronous, _ = await writer_of(store).submit(pragmas, lambda result: None)
    assert (mode, synchronous) == ("wal", 2)  # FULL: the log is synced at every COMMIT


async def test_where_durability_is_normal_a_commit_leaves_the_disk_to_the_system(
    tmp_path: Path,
) -> None:
    eased = SQLITE.eased(str(tmp_path / "eased.db"))
    assert isinstance(eased, SqliteStore)
    await eased.open()
    try:
        asked = lambda db: db.execute("PRAGMA synchronous").fetchone()[0]  # noqa: E731
        assert await writer_of(eased).submit(asked, lambda result: None) == 1  # NORMAL
        await eased.commit(commit("s1", 1))
        assert await eased.head(Scope("acme", "main", "s1"))
    finally:
        await eased.close()


async def test_commits_that_wait_share_a_transaction(store: SqliteStore) -> None:
    statements: list[str] = []
    writer_of(store)._db.set_trace_callback(statements.append)
    with held(store):
        tasks = [asyncio.ensure_future(store.commit(commit(f"s{n}"))) for n in range(100)]
    await asyncio.gather(*tasks)
    assert statements.count("COMMIT") <= 2  # that of the holder, and theirs
    assert not any("SAVEPOINT" in statement for statement in statements)
    assert (await store.counts())["messages"] == 100


async def test_one_that_fails_costs_one_more_transaction(store: SqliteStore) -> None:
    await store.commit(commit("taken", host_id="a"))
    statements: list[str] = []
    with held(store):
        writer_of(store)._db.set_trace_callback(statements.append)
        tasks = [asyncio.ensure_future(store.commit(commit(f"s{n}"))) for n in range(20)]
        tasks += [
            asyncio.ensure_future(store.commit(commit("taken", 2, host_id="a"))) for _ in range(3)
        ]
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert outcomes[:20] == [None] * 20
    assert all(isinstance(outcome, DuplicateHostIds) for outcome in outcomes[20:])
    assert statements.count("COMMIT") <= 2
    assert statements.count("ROLLBACK") == 1


async def test_a_crowd_of_one_tenant_leaves_others_their_group(store: SqliteStore) -> None:
    """What comes behind thousands of writes of another tenant is in the next group."""
    written: list[str] = []
    with held(store):
        for _ in range(2_000):
            writer_of(store).submit(lambda db: "noisy", written.append, tenant="noisy")
        submit = writer_of(store).submit
        mine = [submit(lambda db: "quiet", written.append, tenant="quiet") for _ in range(3)]
    await asyncio.gather(*mine)
    places = [place for place, who in enumerate(written) if who == "quiet"]
    assert len(places) == 3
    assert places[-1] < 6 < writer_module._GROUP


async def test_a_short_write_is_in_no_transaction_with_a_long_one(store: SqliteStore) -> None:
    statements: list[str] = []
    with held(store):
        writer_of(store)._db.set_trace_callback(statements.append)
        for rows, tenant in ((200, "noisy"), (2, "quiet"), (1, "third"), (200, "noisy")):
            work = partial(_told, tenant)
            writer_of(store).submit(work, lambda _: None, tenant=tenant, rows=rows)
        last = writer_of(store).submit(partial(_told, "last"), lambda _: None, tenant="quiet")
    await last
    async with asyncio.timeout(30):
        while writer_of(store).queued() or statements[-1] != "COMMIT":
            await asyncio.sleep(0.01)
    said = " ".join(statements).split("BEGIN IMMEDIATE")
    groups = [re.findall("SELECT '(.*?)'", one) for one in said]
    assert groups.count(["noisy"]) == 2, statements


def _told(who: str, db: sqlite3.Connection) -> None:
    db.execute(f"SELECT '{who}'")


async def test_who_wrote_nothing_lately_does_not_wait_for_others_to_gather(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop is crowded, so that a group begins some time after the last: not where another
    tenant comes, whose write takes those along that wait."""
    monkeypatch.setattr(writer_module, "_CROWDED", -1.0)
    monkeypatch.setattr(writer_module, "_GATHER_S", 30.0)
    monkeypatch.setattr(writer_module, "_LOOKED_AT_S", 0.0)

    def write(tenant: str) -> asyncio.Future[None]:
        return writer_of(store).submit(lambda db: None, lambda _: None, tenant=tenant)

    for _ in range(2):  # the first finds that the loop is crowded
        await write("noisy")
        await write("other")
    waiting = write("noisy") if "noisy" in writer_of(store)._lately else write("other")
    await asyncio.sleep(0.2)
    assert not waiting.done()
    async with asyncio.timeout(10):
        await write("quiet")
        await waiting


async def test_a_few_large_writes_of_one_tenant_leave_others_their_group(
    store: SqliteStore,
) -> None:
    """By what they cost, not by how many they are."""
    written: list[str] = []
    with held(store):
        submit = writer_of(store).submit
        for _ in range(12):
            submit(lambda db: "noisy", written.append, tenant="noisy", rows=200)
        mine = [submit(lambda db: "quiet", written.append, tenant="quiet") for _ in range(3)]
    await asyncio.gather(*mine)
    assert [place for place, who in enumerate(written) if who == "quiet"][-1] <= 5


async def test_large_writes_of_one_tenant_alone_stay_together(store: SqliteStore) -> None:
    groups: list[str] = []
    writer_of(store)._db.set_trace_callback(groups.append)
    with held(store):
        done = [
            writer_of(store).submit(lambda db: None, lambda _: None, tenant="one", rows=200)
            for _ in range(12)
        ]
    await asyncio.gather(*done)
    assert groups.count("COMMIT") <= 2


async def test_large_writes_have_a_transaction_each_while_another_tenant_writes(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who comes next then waits for one of them, and not for all that were there."""
    writer, statements = writer_of(store), list[str]()
    monkeypatch.setattr(writer_module, "PRESENT_S", 3_600.0)  # however slow the machine is
    await writer.submit(lambda db: None, lambda _: None, tenant="quiet")
    with held(store):
        writer._db.set_trace_callback(statements.append)
        many = [
            writer.submit(lambda db: None, lambda _: None, tenant="noisy", rows=200)
            for _ in range(5)
        ]
    await asyncio.gather(*many)
    assert statements.count("BEGIN IMMEDIATE") == 5


def _says(what: tuple[str, int], db: sqlite3.Connection) -> tuple[str, int]:
    return what


async def test_a_tenant_is_written_in_the_order_of_its_calls(store: SqliteStore) -> None:
    written: list[tuple[str, int]] = []
    with held(store):
        done = [
            writer_of(store).submit(partial(_says, (tenant, number)), written.append, tenant=tenant)
            for number in range(600)
            for tenant in ("a", "b", "c")
        ]
    await asyncio.gather(*done)
    for tenant in ("a", "b", "c"):
        assert [number for one, number in written if one == tenant] == list(range(600))


async def test_a_defect_of_one_caller_is_its_own(store: SqliteStore) -> None:
    with held(store):
        good = asyncio.ensure_future(store.commit(commit("good")))
        broken = replace(commit("bad"), messages=[replace(commit("bad").messages[0], tokens=2**63)])
        bad = asyncio.ensure_future(store.commit(broken))
    await good
    with pytest.raises(OverflowError):
        await bad
    assert await store.head(Scope("acme", "main", "bad")) is None
    assert (await store.health()).ok is True


@contextmanager
def disk_full(store: SqliteStore, spare: int):
    """No file may grow further than the log by this many bytes: the operating system itself refuses
    to write."""
    log = store._path.with_name(store._path.name + "-wal")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + spare, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_full_disk_refuses_and_changes_nothing(store: SqliteStore) -> None:
    await store.commit(commit("a"))
    before = await store.head(Scope("acme", "main", "a"))
    with disk_full(store, 0):
        outcomes = await asyncio.gather(
            store.commit(commit("a", 2)), store.commit(commit("b")), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 2
        assert "cannot be written now" in str(outcomes[0])
        health = await store.health()
        assert health.ok is False
        assert "the last write failed" in health.detail
        assert await store.head(Scope("acme", "main", "a")) == before  # from memory
        assert [row.sequence for row in await store.messages(Scope("acme", "main", "a"))] == [1]
        assert await store.head(Scope("acme", "main", "b")) is None
    await store.commit(commit("a", 2))
    await store.commit(commit("b"))
    assert (await store.health()).ok is True
    assert [row.sequence for row in await store.messages(Scope("acme", "main", "a"))] == [1, 2]


async def test_what_does_not_fit_fails_alone(store: SqliteStore) -> None:
    await store.commit(commit("a"))
    with disk_full(store, 400_000):
        with held(store):
            small = [asyncio.ensure_future(store.commit(commit(f"s{n}"))) for n in range(3)]
            large = asyncio.ensure_future(store.commit(commit("large", size=2_000_000)))
            small += [asyncio.ensure_future(store.commit(commit(f"t{n}"))) for n in range(3)]
        await asyncio.gather(*small)
        with pytest.raises(StoreUnavailable):
            await large
    assert await store.head(Scope("acme", "main", "large")) is None
    assert (await store.counts())["messages"] == 7


async def test_who_met_the_failure_is_told_so_and_the_others_got_their_results(
    store: SqliteStore,
) -> None:
    """A group in which one statement fails for want of room, not its own fault: its caller may try
    again later, and nobody else notices."""
    for session in ("a", "b", "large"):
        await store.commit(commit(session))
    writer = writer_of(store)
    pages = await writer.submit(
        lambda db: db.execute("PRAGMA page_count").fetchone()[0], lambda result: None
    )
    limit = f"PRAGMA max_page_count = {pages + 50}"
    await writer.submit(lambda db: db.execute(limit).fetchone(), lambda result: None)
    with held(store):
        group = [
            store.commit(commit("a", 2)),
            store.commit(commit("large", 2, size=1_000_000)),
            store.commit(commit("b", 2)),
        ]
        tasks = [asyncio.ensure_future(one) for one in group]
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None), StoreUnavailable, type(None)]
    assert "full" in str(outcomes[1])
    for session, revision in (("a", 2), ("large", 1), ("b", 2)):
        head = await store.head(Scope("acme", "main", session))
        assert head is not None
        assert head.revision == revision


async def test_an_error_of_the_disk_is_not_the_callers(store: SqliteStore) -> None:
    """As above, where SQLite leaves the transaction as it is."""

    def fails(db: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with held(store):
        tasks = [
            asyncio.ensure_future(store.commit(commit("a"))),
            writer_of(store).submit(fails, lambda result: None),
            asyncio.ensure_future(store.commit(commit("b"))),
        ]
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None), StoreUnavailable, type(None)]
    assert (await store.counts())["sessions"] == 2


async def test_a_damaged_page_is_told_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    await store.open()
    for n in range(1, 400):
        await store.commit(commit("a", n, size=1000))
    await store.close()
    content = bytearray(path.read_bytes())
    pages = len(content) // 4096
    for page in range(pages // 2, pages):  # far behind the schema, so that it opens
        content[page * 4096 : page * 4096 + 200] = b"\xa5" * 200
    path.write_bytes(content)
    await store.open()
    with pytest.raises(StoreUnavailable, match="malformed"):
        await store.messages(Scope("acme", "main", "a"))
    await store.close()


async def test_an_outage_is_logged_once(store: SqliteStore) -> None:
    """However often the workers of a server meet it; and what writes nothing does not end it."""
    await store.commit(commit("a"))
    with capture_logs() as logs:
        with disk_full(store, 0):
            for _ in range(3):
                with pytest.raises(StoreUnavailable):
                    await store.commit(commit("a", 2))
                assert await store.claim_debt("worker", 1, 1) is None
                with pytest.raises(StoreUnavailable):
                    await store.probe()
                assert (await store.health()).ok is False
        await store.probe()
        assert (await store.health()).ok is True
        await store.commit(commit("a", 2))
        await store.commit(commit("a", 3))
    assert [entry["event"] for entry in logs] == [
        "store_cannot_be_written",
        "store_can_be_written_again",
    ]


async def test_reads_that_fail_are_logged_once(store: SqliteStore) -> None:
    def broken(db: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    await store.commit(commit("a"))
    with capture_logs() as logs:
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await store._read(broken)
        for _ in range(2):
            await store.messages(Scope("acme", "main", "a"))
    assert [entry["event"] for entry in logs] == ["store_cannot_be_read", "store_can_be_read_again"]


async def test_usual_commits_of_a_group_are_written_together(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one is for a group in which one fails."""

    def alone(db: sqlite3.Connection, job: object) -> None:
        raise AssertionError("each is written by itself")

    for n in range(5):
        await store.commit(commit(f"s{n}"))
    monkeypatch.setattr(writer_module, "_guard", alone)
    with held(store):
        tasks = [asyncio.ensure_future(store.commit(commit(f"s{n}", 2))) for n in range(5)]
    await asyncio.gather(*tasks)
    assert (await store.counts())["messages"] == 10


class Clock:
    """Stands in for the module `time` in the writer: what its loop took of a processor is said."""

    def __init__(self) -> None:
        self.now, self.taken, self.slept = time.monotonic(), 0.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    def thread_time(self) -> float:
        return self.taken

    def wait(self, seconds: float) -> None:
        """As the event that another tenant writes, which does not come."""
        self.slept.append(seconds)

    def clear(self) -> None:
        """As that event."""

    set = clear

    def passes(self, seconds: float, *, busy: float) -> None:
        self.now += seconds
        self.taken += seconds * busy


async def test_a_group_waits_for_more_only_while_the_loop_has_no_time(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(writer_module, "time", clock)
    writer = writer_of(store)
    monkeypatch.setattr(writer, "_another", clock)

    async def writes() -> list[float]:
        """How long the group of one write was held back."""
        clock.slept.clear()
        await writer.submit(lambda db: None, lambda result: None)
        return clock.slept

    await writes()
    clock.passes(1.0, busy=0.5)
    await writes()
    assert await writes() == []  # right behind another, and not held back
    clock.passes(1.0, busy=1.0)
    await writes()
    clock.passes(0.001, busy=1.0)
    assert await writes() == [pytest.approx(writer_module._GATHER_S - 0.001)]
    clock.passes(1.0, busy=1.0)
    assert await writes() == [0.0]  # the last group was long ago
    clock.passes(1.0, busy=0.1)
    await writes()
    assert await writes() == []
