"""Two servers over one store: what one commits the other catches up with."""

from __future__ import annotations

from contextengine_server.commands.lifecycle.record_host_change import Rewound
from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.session.address import Ref
from contextengine_server.session.receipt import Disposition
from tests.unit.commands.house import (
    AGENT,
    S1,
    TENANT,
    Server,
    assistant,
    incoming,
    request,
    result,
    same_as_cold,
    scope,
    spoken,
    user,
)

S2 = Ref(AGENT, "s2")


# Catching up.


async def test_appends_of_the_other_are_caught_up_with(server: Server, other: Server) -> None:
    await server.ingest("a", "b")
    await other.ingest("c", "d")
    await server.assemble()
    read = server.store.calls["messages"]
    await other.ingest("e", "f")
    assert await server.shown() == ["a", "b", "c", "d", "e", "f"]
    assert server.store.calls["messages"] == read  # and not read again from the first on
    await same_as_cold(server, other)


async def test_what_the_other_appended_is_known_by_its_id(server: Server, other: Server) -> None:
    await server.ingest("a")
    await other.ingest("b")
    done = await server.context.ingest.run(TENANT, S1, spoken("b", "c"), None)
    assert [one.disposition for one in done.stored] == [
        Disposition.DUPLICATE,
        Disposition.STORED,
    ]
    assert await server.stored() == ["a", "b", "c"]
    assert server.store.calls["commit"] == 2  # known beforehand, not by a commit that is refused


async def test_results_of_calls_that_the_other_brings(server: Server, other: Server) -> None:
    await server.context.ingest.run(
        TENANT, S1, incoming(user("a", "1"), assistant("", "2", "c1", "c2")), None
    )
    await other.context.ingest.run(TENANT, S1, incoming(result("c1", "one", "3")), None)
    await server.context.ingest.run(TENANT, S1, incoming(result("c2", "two", "4")), None)
    assert await server.shown() == ["a", "", "one", "two"]
    await same_as_cold(server, other)


async def abandon(server: Server, behind: int = 0) -> None:
    """A call that is given up, and so many messages behind it."""
    await server.context.ingest.run(
        TENANT, S1, incoming(user("a", "1"), assistant("calls", "2", "c1"), user("b", "3")), None
    )
    if behind:
        await server.talk(1, behind)


async def test_a_late_result_that_the_other_took(server: Server, other: Server) -> None:
    await abandon(server)
    await other.context.ingest.run(TENANT, S1, incoming(result("c1", "late", "4")), None)
    assert await server.shown() == ["a", "calls", "late", "b"]
    await same_as_cold(server, other)


async def test_a_late_result_for_what_is_before_the_window(server: Server, other: Server) -> None:
    """It changes rows that this server does not hold, which only reading again shows."""
    await abandon(other, behind=20)
    await server.shown(1_000)
    warm = server.core.cache.find(scope())
    assert warm is not None
    assert warm.view.base > 2
    await other.context.ingest.run(TENANT, S1, incoming(result("c1", "late", "4")), None)
    await same_as_cold(server, other, 1_000)
    assert (await server.shown(100_000))[:4] == ["a", "calls", "late", "b"]


async def test_a_rewind_of_the_other_that_takes_nothing_away(server: Server, other: Server) -> None:
    """No row tells of it: the epoch does."""
    await server.ingest("a", "b")
    before = await server.assemble()
    await other.context.record_host_change.run(TENANT, S1, Rewound(2), request())
    after = await server.assemble()
    assert after.epoch != before.epoch
    await same_as_cold(server, other)


async def test_a_rewind_of_the_other(server: Server, other: Server) -> None:
    await server.ingest("a", "b", "c", "d")
    await other.context.record_host_change.run(TENANT, S1, Rewound(2), request())
    await other.ingest("e")
    assert await server.shown() == ["a", "b", "e"]
    await same_as_cold(server, other)


async def test_a_reset_of_the_other(server: Server, other: Server) -> None:
    await server.ingest("a", "b")
    await other.context.reset_session.run(TENANT, S1, None, None)
    assert await server.shown() == []
    await server.ingest("c")
    assert await other.shown() == ["c"]
    await same_as_cold(server, other)


async def test_a_session_that_the_other_made_go_on_with_another(
    server: Server, other: Server
) -> None:
    """The parent shows nothing and so has no tokens, and still its messages are known here."""
    orphan = incoming(result("c9", "orphan", "orphan"))
    await other.context.ingest.run(TENANT, S2, orphan, None)
    await server.context.bootstrap.run(TENANT, S1, Introduction(model="m"))
    await server.assemble()
    await other.context.bootstrap.run(TENANT, S1, Introduction(continues=S2))
    again = await server.context.ingest.run(
        TENANT, S1, incoming(result("c9", "orphan", "orphan")), None
    )
    assert [one.disposition for one in again.stored] == [Disposition.DUPLICATE]


async def test_a_session_deleted_and_made_again(server: Server, other: Server) -> None:
    await server.ingest("a", "b")
    first = await server.head()
    await other.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)
    await other.ingest("c")
    again = await other.head()
    assert again.revision == first.revision
    assert again.incarnation != first.incarnation
    assert await server.shown() == ["c"]
    await server.ingest("b")
    assert await other.stored() == ["c", "b"]
    await same_as_cold(server, other)


async def test_a_session_deleted_and_grown_past_what_was_known(
    server: Server, other: Server
) -> None:
    """A higher revision of another life is no continuation of what is in memory."""
    await server.ingest("a")
    await other.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)
    await other.ingest("b")
    await other.ingest("c")
    assert await server.shown() == ["b", "c"]


async def test_a_session_deleted_by_the_other_is_gone(server: Server, other: Server) -> None:
    await server.ingest("a")
    await other.sessions.delete.run(TENANT, S1, expected_revision=None, cascade=False)
    assert await server.shown() == []
    assert server.core.cache.find(scope()) is None


async def test_a_compaction_of_the_other(server: Server, other: Server) -> None:
    await server.talk(1, 4)
    done = await other.compact()
    assert done.done.summaries
    await same_as_cold(server, other)
    await same_as_cold(other, server)


async def test_what_is_far_behind_is_read_again(server: Server, other: Server) -> None:
    """A head names the few commits before it: who saw none of them reads."""
    await server.ingest("a")
    await server.assemble()
    for text in "bcdefghijklm":
        await other.ingest(text)
    assert await server.shown() == list("abcdefghijklm")
    await same_as_cold(server, other)


# Time.


async def test_a_heads_time_never_falls(server: Server) -> None:
    await server.ingest("a")
    written = server.clock.ms
    server.clock.advance(-3600)
    await server.ingest("b")
    assert (await server.head()).updated_ms == written
    assert (await server.head()).created_ms == written
    server.clock.advance(7200)
    await server.ingest("c")
    assert (await server.head()).updated_ms == server.clock.ms
    assert (await server.head()).created_ms == written
