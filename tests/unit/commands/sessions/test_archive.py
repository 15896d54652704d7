"""Sessions go into the archive by rule: who goes when, who stays, and that one which cannot go
keeps no other from it."""

from __future__ import annotations

import pytest

from contextengine_server.archive.cold_room import ColdRoom
from contextengine_server.archive.objects import ObjectsUnavailable
from contextengine_server.commands.sessions.archive import ArchiveRule, ArchiveSessions, Archivist
from contextengine_server.context.scope import Scope
from contextengine_server.session.address import Ref
from tests.unit.archive.shelf import Shelf
from tests.unit.commands.house import TENANT, Rows, Server, incoming, user

HOUR = 3_600_000


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def archiving(server: Server, shelf: Shelf | None, *rules: ArchiveRule) -> ArchiveSessions:
    room = ColdRoom(server.store, shelf, server.clock)
    return ArchiveSessions(server.store, rules, server.clock, room.put_away, room.clean)


async def write(server: Server, session: str, agent: str = "agent") -> None:
    await server.context.ingest.run(TENANT, Ref(agent, session), incoming(user("said")), None)


async def went(work: ArchiveSessions, *, dry_run: bool = False) -> list[str]:
    return [gone.head.scope.session async for gone in work.run(dry_run=dry_run)]


async def test_who_was_idle_for_long_goes(server: Server, shelf: Shelf) -> None:
    await write(server, "old")
    server.clock.ms += 2 * HOUR
    await write(server, "new")
    work = archiving(server, shelf, ArchiveRule(HOUR))
    assert await went(work, dry_run=True) == ["old"]
    assert shelf.held == {}
    assert await went(work) == ["old"]
    assert len(shelf.held) == 1
    assert await went(work) == []
    server.clock.ms += 2 * HOUR
    assert await went(work) == ["new"]


async def test_the_first_rule_that_names_a_session_is_its_own(server: Server, shelf: Shelf) -> None:
    for agent in ("one", "two", "three"):
        await write(server, f"of-{agent}", agent)
    server.clock.ms += 2 * HOUR
    rules = [ArchiveRule(9 * HOUR, agent="one"), ArchiveRule(HOUR, agent="t*", session="*-two")]
    assert await went(archiving(server, shelf, *rules)) == ["of-two"]
    server.clock.ms += 8 * HOUR
    assert await went(archiving(server, shelf, *rules)) == ["of-one"]
    assert await went(archiving(server, shelf)) == []


async def test_more_sessions_than_a_page_holds_go(server: Server, shelf: Shelf) -> None:
    names = [f"s{number:03}" for number in range(230)]
    for name in names:
        await write(server, name)
    server.clock.ms += 2 * HOUR
    assert sorted(await went(archiving(server, shelf, ArchiveRule(HOUR)))) == names
    assert len(shelf.held) == 230


async def test_what_reads_back_as_something_else_takes_no_row(server: Server, shelf: Shelf) -> None:
    await write(server, "old")
    server.clock.ms += 2 * HOUR
    shelf.forgetful = True
    work = archiving(server, shelf, ArchiveRule(HOUR))
    assert await went(work) == []
    assert len(await server.store.messages(Scope(TENANT, "agent", "old"))) == 1
    # What was written in vain is erased in time.
    server.clock.ms += 2 * HOUR
    shelf.forgetful = False
    assert len(shelf.held) == 1
    before = set(shelf.held)
    assert await went(work) == ["old"]
    assert len(shelf.held) == 1
    assert not before & set(shelf.held)


async def test_a_bucket_that_does_not_answer_is_tried_again(
    server: Server, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(server, "old")
    server.clock.ms += 2 * HOUR
    shelf.broken = True
    work = archiving(server, shelf, ArchiveRule(HOUR))
    with pytest.raises(ObjectsUnavailable):
        await went(work)
    archivist = Archivist(work, 60)
    assert await archivist.sweep() == 0  # its log says so
    assert archivist.pause_s() == 60
    shelf.broken = False
    assert await archivist.sweep() == 1


async def test_without_an_archive_nothing_goes(server: Server, rows: Rows) -> None:
    await write(server, "old")
    server.clock.ms += 2 * HOUR
    with pytest.raises(ObjectsUnavailable, match=r"archive\.url"):
        await went(archiving(server, None, ArchiveRule(HOUR)))
    assert len(await server.store.messages(Scope(TENANT, "agent", "old"))) == 1


async def test_who_writes_meanwhile_stays(server: Server, shelf: Shelf) -> None:
    await write(server, "old")
    server.clock.ms += 2 * HOUR
    room = ColdRoom(server.store, shelf, server.clock)
    head = await server.store.head(Scope(TENANT, "agent", "old"))
    assert head is not None

    async def raced(asked: str) -> None:
        if asked == "put":
            await write(server, "old")

    shelf.before = raced
    assert await room.put_away(head) is None
    assert len(await server.store.messages(head.scope)) == 2
    assert room.counts.archived == 0
    assert shelf.held == {}


async def test_what_is_too_large_stays(server: Server, shelf: Shelf) -> None:
    await write(server, "old")
    head = await server.store.head(Scope(TENANT, "agent", "old"))
    assert head is not None
    room = ColdRoom(server.store, shelf, server.clock, max_bytes=3)
    assert await room.put_away(head) is None
    assert shelf.held == {}
