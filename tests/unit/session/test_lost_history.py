"""Two servers over a database that lost what was committed last, as one that failed over to a
standby may."""

from __future__ import annotations

import copy

import pytest

from contextengine_server.commands.turn.reply_cache import ReplyCache
from tests.unit.commands.house import (
    TENANT,
    Server,
    same_as_cold,
)


async def lose_the_last(server: Server, texts: tuple[str, ...], then: tuple[str, ...]) -> None:
    """Commits, one a text; the database loses them; and others, one each, through a server that
    never saw them."""
    tables = server.store.rows
    before = copy.deepcopy(tables.sessions)
    for text in texts:
        await server.ingest(text)
    await server.assemble()
    tables.sessions = before
    late = Server(server.rows)
    await late.open()
    for text in then:
        await late.ingest(text)
    await late.close()


@pytest.mark.parametrize("then", [("c", "d"), ("c", "d", "e"), ("c",), ()])
async def test_what_was_lost_is_shown_by_nobody(
    server: Server, other: Server, then: tuple[str, ...]
) -> None:
    """Whatever the revisions are by then: as many, more or fewer."""
    await server.ingest("a", "b")
    await lose_the_last(server, ("x", "y"), then)
    assert await server.shown() == ["a", "b", *then]
    await same_as_cold(server, other)


async def test_what_is_written_next_stands_on_what_is_there(server: Server, other: Server) -> None:
    await server.ingest("a", "b")
    await lose_the_last(server, ("x", "y, which is longer"), ("c", "d"))
    await server.ingest("e")
    assert await server.stored() == ["a", "b", "c", "d", "e"]
    await same_as_cold(server, other)


async def test_an_answer_that_stood_on_what_was_lost_is_not_given_again(server: Server) -> None:
    await server.ingest("a")
    kept = ReplyCache(server.store, server.core.selection, 1 << 20)

    async def ask() -> None:
        made = await server.assemble()
        view = made.view
        stands_on = view.incarnation, view.revision, view.commit_id
        kept.keep((TENANT, b"question"), made, stands_on, b"reply", 0)

    tables = server.store.rows
    before = copy.deepcopy(tables.sessions)
    await server.ingest("x")
    await ask()
    await ask()
    assert await kept.again((TENANT, b"question")) is not None
    tables.sessions = before
    late = Server(server.rows)
    await late.open()
    await late.ingest("c")
    await late.close()
    assert await kept.again((TENANT, b"question")) is None
