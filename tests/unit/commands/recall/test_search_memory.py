"""Search of memory by the command: who may ask, what is found first, and in pages."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contextengine_server.errors import InvalidField, PermissionDenied, SessionNotFound
from contextengine_server.memory.search import FactPage, MemoryQuery
from contextengine_server.session.address import Ref
from contextengine_server.session.state import SessionState
from contextengine_server.store.rows import Commit
from tests.unit.commands.house import AGENT, S1, TENANT, Rows, Server

SAID = (
    "I prefer dark mode.",
    "I prefer aisle seats for long flights.",
    "We decided to use PostgreSQL for the database.",
    "My name is Alice Chen.",
    "我喜欢深色模式。",
)


async def remembering(rows: Rows) -> Server:
    """A server whose agent has heard this, each at its own time."""
    server = await Server(rows, remembers=True).open()
    for at, text in enumerate(SAID):
        server.clock.advance(10)
        await server.ingest(f"{text}", ref=Ref(AGENT, f"before {at}"))
        await server.context.end_session.run(TENANT, Ref(AGENT, f"before {at}"), None, None)
    await server.ingest("hello there")
    return server


async def search(server: Server, text: str, **more: object) -> FactPage:
    found = await server.recall.search_memory.run(TENANT, S1, MemoryQuery(text, **more), 0)  # type: ignore[arg-type]
    return found.page


def values(page: FactPage) -> list[str]:
    return [hit.found.fact.value for hit in page.hits]


async def test_what_holds_more_of_the_query_comes_first(rows: Rows) -> None:
    server = await remembering(rows)
    page = await search(server, "which seats do I prefer on long flights")
    assert values(page) == [
        "I prefer aisle seats for long flights",
        "我喜欢深色模式",
        "I prefer dark mode",
    ]
    assert page.hits[0].score > page.hits[1].score == page.hits[2].score > 0
    assert all(0 <= hit.score <= 1 for hit in page.hits)
    assert values(await search(server, "深色")) == ["我喜欢深色模式"]
    assert values(await search(server, "Databases?")) == ["decided to use PostgreSQL"]
    assert values(await search(server, "decisions")) == ["decided to use PostgreSQL"]
    assert values(await search(server, "zebra")) == []


async def test_a_pattern_finds_the_newest_first(rows: Rows) -> None:
    server = await remembering(rows)
    page = await search(server, "^I prefer", regex=True)
    assert values(page) == ["I prefer aisle seats for long flights", "I prefer dark mode"]
    with pytest.raises(InvalidField):
        await search(server, "(", regex=True)


async def test_pages_follow_each_other(rows: Rows) -> None:
    server = await remembering(rows)
    found: list[str] = []
    page = await search(server, ".", regex=True, limit=2)
    while True:
        found += values(page)
        assert page.total == len(SAID)
        if not page.next_page:
            break
        page = await search(server, ".", regex=True, limit=2, page=page.next_page)
    assert len(found) == len({*found}) == len(SAID)
    page = await search(server, ".", regex=True, limit=1)
    with pytest.raises(InvalidField):
        await search(server, "another", page=page.next_page)


async def test_kinds_and_times_narrow_it(rows: Rows) -> None:
    server = await remembering(rows)
    assert values(await search(server, ".", regex=True, kinds=("name",))) == ["Alice Chen"]
    now = server.clock()
    late = await search(server, ".", regex=True, start_ms=now - 10_000)
    assert values(late) == ["我喜欢深色模式", "Alice Chen"]
    assert values(await search(server, ".", regex=True, end_ms=now - 39_999)) == [
        "I prefer dark mode"
    ]


async def test_a_session_that_is_not_there_and_a_child_may_not_ask(rows: Rows) -> None:
    server = await remembering(rows)
    with pytest.raises(SessionNotFound):
        await server.recall.search_memory.run(TENANT, Ref(AGENT, "none"), MemoryQuery("x"), 0)
    head = await server.head()
    state = SessionState.decode(head.state)
    child = {"state": type(state)(depth=1).encode(), "revision": head.revision + 1}
    await server.store.commit(
        Commit(replace(head, ancestors=head.commit_id, **child), head.revision)
    )
    with pytest.raises(PermissionDenied):
        await search(server, "mode")
