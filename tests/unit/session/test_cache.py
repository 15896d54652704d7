"""The sessions in memory: bounded by their bytes, the least recently used leaves first, none that
is in use; and what is held of an assembly."""

from __future__ import annotations

import tracemalloc

import pytest

from contextengine_server.context.work import at_once
from contextengine_server.session.address import Ref
from contextengine_server.session.encoding import Encoding
from contextengine_server.session.session import SESSION_OVERHEAD, Session, survey
from contextengine_server.session.sessions import SessionCache
from contextengine_server.store.rows import SessionHead
from contextengine_server.tokens import TokenCounter
from tests.unit.commands.house import AGENT, Server, scope


def held(cache: SessionCache) -> list[str]:
    return sorted(session.scope.session for session in cache.all())


async def entered(server: Server, *names: str) -> list[Session]:
    """Sessions of 100 bytes in the cache, no more in use."""
    cache = server.core.cache
    for name in names:
        await server.ingest("a", ref=Ref(AGENT, name))
        cache.grown(_in(cache, name), 100)
    return [_in(cache, name) for name in names]


def _in(cache: SessionCache, name: str) -> Session:
    session = cache.find(scope(Ref(AGENT, name)))
    assert session is not None
    return session


async def test_the_least_recently_used_leaves_first(server: Server) -> None:
    cache = server.core.cache
    await entered(server, "s1", "s2", "s3")
    await server.assemble(ref=Ref(AGENT, "s1"))
    for name in ("s1", "s2", "s3"):
        cache.grown(_in(cache, name), 100)
    assert cache.bytes == 300
    cache.capacity = 200
    cache.shrink()
    assert held(cache) == ["s1", "s3"]
    assert cache.bytes == 200
    cache.capacity = 199
    cache.shrink()
    assert held(cache) == ["s1"]
    assert cache.bytes == 100


async def test_what_is_in_use_stays(server: Server) -> None:
    cache = server.core.cache
    await entered(server, "s1", "s2")
    cache.capacity = 0
    async with server.core.sessions.open(scope(Ref(AGENT, "s1"))):
        cache.shrink()
        assert held(cache) == ["s1"]
        assert not cache.drop(scope(Ref(AGENT, "s1")))
    assert held(cache) == []  # and leaves with its last user
    assert cache.bytes == 0


async def test_a_session_stays_until_its_last_user_leaves(server: Server) -> None:
    await entered(server, "s1")
    sessions = server.core.sessions
    at = scope(Ref(AGENT, "s1"))
    async with sessions.open(at):
        async with sessions.open(at):
            pass
        assert not server.core.cache.drop(at)
    assert server.core.cache.drop(at)
    assert not server.core.cache.drop(at)


async def test_sessions_that_are_not_there_take_nothing(server: Server) -> None:
    for at in range(10):
        await server.assemble(ref=Ref(AGENT, f"none{at}"))
    assert len(server.core.cache) == 0
    assert server.core.cache.bytes == 0


async def test_the_cache_counts_what_its_sessions_hold(server: Server) -> None:
    for at in range(3):
        await server.talk(1, 3, Ref(AGENT, f"s{at}"))
        await server.assemble(ref=Ref(AGENT, f"s{at}"))
    cache = server.core.cache
    assert cache.bytes == sum(session.size for session in cache.all()) > 0
    for session in cache.all():
        assert 0.5 < session.size / at_once(survey(session.view)).size < 2


async def test_a_small_cache_serves_all_the_same(server: Server) -> None:
    cache = server.core.cache
    cache.capacity = 30_000
    for turn in range(3):
        for at in range(5):
            await server.talk(1 + turn, 1, Ref(AGENT, f"s{at}"))
    assert cache.bytes <= cache.capacity
    assert 0 < len(cache) < 5
    for at in range(5):
        assert len(await server.shown(ref=Ref(AGENT, f"s{at}"))) == 6


async def test_a_session_that_left_is_read_again_as_it_was(server: Server) -> None:
    await server.talk(1, 3)
    warm = await server.assemble()
    assert server.core.cache.drop(scope())
    cold = await server.assemble()
    assert (cold.epoch, cold.joined.context_hash) == (warm.epoch, warm.joined.context_hash)


def test_a_session_that_grows_is_counted_once() -> None:
    encoding = Encoding(TokenCounter())
    cache = SessionCache(1_000, encoding)
    session = cache.enter(scope())
    cache.grown(session, 100)
    cache.grown(session, 300)
    cache.grown(session, 50)
    assert (cache.bytes, session.size) == (50, 50)


@pytest.mark.parametrize("sessions", [100, 20_000])
def test_room_is_made_without_a_look_at_all_that_is_warm(sessions: int) -> None:
    """What copies the list of all of them takes memory by their number."""
    cache = SessionCache(sessions, Encoding(TokenCounter()))

    def used(name: str) -> None:
        session = cache.enter(scope(Ref(AGENT, name)))
        session.head = SessionHead(session.scope, "life", 1, 0)
        cache.grown(session, 1)
        cache.leave(session)

    for at in range(sessions):
        used(f"s{at}")
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for at in range(10):
            used(f"new{at}")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(cache) == sessions
    assert cache.find(scope(Ref(AGENT, "s9"))) is None
    assert cache.find(scope(Ref(AGENT, "s10"))) is not None
    assert peak - before < 60_000


async def test_a_small_session_counts_for_what_it_takes(server: Server) -> None:
    """Its own weight besides its messages', as soon as it is written."""
    await server.ingest("a")
    written = server.core.cache.bytes
    server.core.cache.drop(scope())
    await server.assemble()
    assert 0.8 < written / server.core.cache.bytes < 1.25
    assert written > SESSION_OVERHEAD


# The joined list.


async def test_an_append_goes_on_with_the_list_that_was_joined(server: Server) -> None:
    await server.ingest("a", "b")
    first = await server.assemble()
    assert first.joined.begun
    await server.ingest("c")
    second = await server.assemble()
    assert not second.joined.begun
    assert second.epoch == first.epoch
    assert second.joined.total == first.joined.total + 1


async def test_the_joined_list_is_that_of_a_cold_server(server: Server, other: Server) -> None:
    for text in "abcdef":
        await server.ingest(text)
        warm = await server.assemble()
    cold = await other.assemble()
    assert warm.joined.context_hash == cold.joined.context_hash
    assert warm.tokens == cold.tokens
