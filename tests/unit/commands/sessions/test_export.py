"""Export: a session's rows as they are stored, now or as of a revision."""

from __future__ import annotations

from typing import Any

import pytest

from contextengine_server.commands.sessions import export
from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.errors import (
    InvalidField,
    RowNotFound,
    SessionNotFound,
    SessionReplaced,
)
from contextengine_server.session.address import Ref
from tests.unit.commands.house import AGENT, S1, TENANT, Server


async def rows(server: Server, ref: Ref = S1, **more: object) -> list[tuple[str, str]]:
    done = await server.sessions.export.run(TENANT, ref, **more)  # type: ignore[arg-type]
    return [(at.session, row.host_id) async for at, row in done.messages()]


async def test_the_rows_of_a_revision(server: Server) -> None:
    await server.ingest("a")
    await server.ingest("b")
    await server.context.reset_session.run(TENANT, S1, None, None)
    await server.ingest("c")
    assert await rows(server) == [("s1", "c")]
    assert await rows(server, as_of=2) == [("s1", "a"), ("s1", "b")]
    assert await rows(server, as_of=1) == [("s1", "a")]
    assert await rows(server, as_of=0) == []
    assert await rows(server, include_retired=True) == [("s1", name) for name in "abc"]
    assert await rows(server, include_retired=True, as_of=3) == [("s1", "a"), ("s1", "b")]


async def test_what_a_session_goes_on_with_comes_first(server: Server) -> None:
    await server.ingest("a", ref=Ref(AGENT, "s2"))
    await server.context.bootstrap.run(TENANT, S1, Introduction(continues=Ref(AGENT, "s2")))
    await server.ingest("b")
    assert await rows(server) == [("s2", "a"), ("s1", "b")]


async def test_summaries_come_along(server: Server) -> None:
    await server.talk(1, 6)
    await server.compact(4_000)
    made = await (await server.sessions.export.run(TENANT, S1)).summaries()
    assert made
    await server.compact(undo_to_generation=0)
    assert await (await server.sessions.export.run(TENANT, S1)).summaries() == []
    retired = await server.sessions.export.run(TENANT, S1, include_retired=True)
    assert [row.id for row in await retired.summaries()] == [row.id for row in made]


async def test_inherited_summaries_come_along_with_retired_ones_too(server: Server) -> None:
    await server.talk(1, 6)
    await server.compact(4_000)
    made = await (await server.sessions.export.run(TENANT, S1)).summaries()
    goes_on = Ref(AGENT, "s2")
    await server.context.bootstrap.run(TENANT, goes_on, Introduction(continues=S1))
    await server.compact(undo_to_generation=0)
    for retired in (False, True):
        exported = await server.sessions.export.run(TENANT, goes_on, include_retired=retired)
        found = await exported.summaries()
        assert [(row.id, row.retired_revision) for row in found] == [(row.id, 0) for row in made]


async def test_it_is_read_as_it_is_sent_and_stays_what_it_was(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that stops has no more of a session in memory than a page; what is written while it
    is read is of another revision."""
    monkeypatch.setattr(export, "PAGE_BYTES", 500)
    names = [f"w{number}" for number in range(20)]
    await server.ingest(*(f"{name} {'x' * 90}" for name in names))
    pages: list[int] = []
    read = server.store.messages

    async def counted(*args: Any, **more: Any) -> Any:
        found = await read(*args, **more)
        pages.append(sum(len(row.body) for row in found))
        return found

    monkeypatch.setattr(server.store, "messages", counted)
    found = (await server.sessions.export.run(TENANT, S1)).messages()
    first = await anext(found)
    assert len(pages) == 1
    await server.context.reset_session.run(TENANT, S1, None, None)
    pages.clear()
    rest = [row async for row in found]
    assert [row.host_id for _, row in (first, *rest)] == names
    assert not any(row.retired_revision for _, row in rest)
    assert max(pages) <= 500 + max(len(row.body) for _, row in rest)


async def test_what_is_not_there(server: Server) -> None:
    with pytest.raises(SessionNotFound):
        await rows(server)
    await server.ingest("a")
    with pytest.raises(RowNotFound):
        await rows(server, as_of=2)
    with pytest.raises(InvalidField):
        await rows(server, as_of=-1)


@pytest.mark.parametrize("again", [False, True])
async def test_a_session_that_is_deleted_meanwhile(server: Server, again: bool) -> None:
    """Half of one session, or rows of another of its name, are no export."""
    await server.ingest("a")

    async def delete() -> None:
        await server.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)
        if again:
            await server.ingest("a stranger's")

    server.store.before_read.append(delete)
    with pytest.raises(SessionReplaced):
        await rows(server)
