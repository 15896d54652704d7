"""Questions that are asked again: what is kept of them is bounded, and answers nothing else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contextengine_server.commands.turn.reply_cache import (
    CACHE_SHARE,
    MAX_QUESTION_BYTES,
    MAX_QUESTIONS,
    ReplyCache,
)
from contextengine_server.session.assembly.assembly import Assembly
from tests.unit.commands.house import S1, TENANT, Server, scope

ROOM = 20_000
"""Bytes for replies."""


def cache_of(server: Server, room: int = ROOM) -> ReplyCache:
    return ReplyCache(server.store, server.core.selection, room * CACHE_SHARE)


def ask(
    cache: ReplyCache, assembly: Assembly, number: int, reply: bytes, *, times: int = 2
) -> None:
    view = assembly.view
    stands_on = view.incarnation, view.revision, view.commit_id
    for _ in range(times):
        cache.keep((TENANT, b"%d" % number), assembly, stands_on, reply, 7)


async def known(cache: ReplyCache, count: int) -> list[int]:
    """Which of so many questions have an answer."""
    return [at for at in range(count) if await cache.again((TENANT, b"%d" % at)) is not None]


async def test_what_comes_twice_is_answered_from_then_on(server: Server) -> None:
    await server.ingest("a")
    made, cache = await server.assemble(), cache_of(server)
    assert await cache.again((TENANT, b"0")) is None
    ask(cache, made, 0, b"reply", times=1)
    assert await cache.again((TENANT, b"0")) is None
    ask(cache, made, 0, b"reply", times=1)
    kept = await cache.again((TENANT, b"0"))
    assert kept is not None
    assert (kept.reply, kept.reused, kept.tokens) == (b"reply", 7, made.tokens)
    assert (kept.scope, kept.outcome) == (scope(), made.outcome)
    assert await cache.again(("another", b"0")) is None


async def test_replies_take_no_more_than_their_room(server: Server) -> None:
    await server.ingest("a")
    made, cache = await server.assemble(), cache_of(server)
    for number in range(50):
        ask(cache, made, number, bytes(3_000))
    assert await known(cache, 50) == list(range(44, 50))
    ask(cache, made, 49, bytes(ROOM))
    assert await known(cache, 50) == [49]
    ask(cache, made, 48, bytes(ROOM + 1))
    assert await known(cache, 50) == [49], "one that is larger than all of it takes nobody's place"


async def test_questions_are_no_more_than_so_many(server: Server) -> None:
    """However short their answers are."""
    await server.ingest("a")
    made, cache = await server.assemble(), cache_of(server, 3 * MAX_QUESTIONS)
    for number in range(MAX_QUESTIONS + 5):
        ask(cache, made, number, b"r")
    assert await known(cache, 7) == [5, 6]


@pytest.mark.parametrize(("longer", "kept"), [(0, True), (1, False)])
async def test_what_brings_messages_along_is_not_asked_twice(
    server: Server, longer: int, kept: bool
) -> None:
    await server.ingest("a")
    made, cache = await server.assemble(), cache_of(server)
    question = TENANT, bytes(MAX_QUESTION_BYTES + longer)
    view = made.view
    for _ in range(2):
        stands_on = view.incarnation, view.revision, view.commit_id
        cache.keep(question, made, stands_on, b"reply", 0)
    assert (await cache.again(question) is not None) is kept


async def test_what_changes_meanwhile_is_seen(server: Server) -> None:
    await server.ingest("a")
    cache = cache_of(server)
    ask(cache, await server.assemble(), 0, b"reply")
    await server.engines.assign.run(scope(), "legacy", {}, clear=False)
    assert await known(cache, 1) == []
    ask(cache, await server.assemble(), 0, b"by another", times=1)
    assert await known(cache, 1) == [0]
    await server.ingest("b")
    assert await known(cache, 1) == []
    made = await server.assemble()
    ask(cache, made, 0, b"once", times=1)
    assert await known(cache, 1) == [], "of this revision it is asked for the first time"
    ask(cache, made, 0, b"twice", times=1)
    await server.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)
    assert await known(cache, 1) == []
    await server.ingest("a")
    await server.ingest("b")
    head = await server.head()
    assert head.revision == made.view.revision
    assert await known(cache, 1) == [], "a session that was made anew is another"


async def test_what_is_forgotten_is_of_one_session(server: Server) -> None:
    other = replace(S1, session="s2")
    for ref in (S1, other):
        await server.ingest("a", ref=ref)
    cache = cache_of(server)
    ask(cache, await server.assemble(), 0, b"reply")
    ask(cache, await server.assemble(ref=other), 1, b"reply")
    cache.forget(scope())
    assert await known(cache, 2) == [1]
