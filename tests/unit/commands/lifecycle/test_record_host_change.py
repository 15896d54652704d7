"""RecordHostChange: a session follows what its harness did, once."""

from __future__ import annotations

import pytest

from contextengine_server.commands.lifecycle.record_host_change import (
    HostChange,
    HostCompacted,
    NativeCompacted,
    Rewound,
)
from contextengine_server.errors import InvalidField, RequestIdReused, SessionNotFound
from tests.unit.commands.house import (
    S1,
    TENANT,
    Server,
    assistant,
    incoming,
    request,
    result,
    scope,
    user,
)


async def test_what_came_after_is_gone_from_the_view(server: Server) -> None:
    await server.ingest("a", "b", "c")
    done = await server.context.record_host_change.run(TENANT, S1, Rewound(1), request())
    assert (done.changed.revision, done.changed.numbers) == (2, {"retired": 2})
    assert await server.shown() == ["a"]
    assert len(await server.store.messages(scope(), retired=True)) == 3
    await server.ingest("b")
    assert [row.sequence for row in await server.store.messages(scope())] == [1, 4]


async def test_the_same_change_again_changes_nothing(server: Server) -> None:
    await server.ingest("a", "b")
    for _ in range(2):
        done = await server.context.record_host_change.run(TENANT, S1, Rewound(1), request())
    assert (done.changed.revision, done.changed.repeated) == (2, True)
    assert len(server.events("session:rewound")) == 1
    with pytest.raises(RequestIdReused):
        await server.context.record_host_change.run(TENANT, S1, Rewound(0), request(digest=b"x"))


async def test_the_hosts_summary_stands_for_its_range(server: Server) -> None:
    await server.talk(1, 3)
    change = HostCompacted(1, 4, "what was said")
    done = await server.context.record_host_change.run(TENANT, S1, change, request())
    assert done.summary is not None
    assert (done.summary.first_sequence, done.summary.last_sequence) == (1, 4)
    assert (done.summary.text, done.summary.origin) == ("what was said", "host")
    shown = await server.shown()
    assert len(shown) == 3
    assert "what was said" in shown[0]
    again = await server.context.record_host_change.run(TENANT, S1, change, request())
    assert (again.changed.repeated, again.summary) == (True, None)
    assert len(await server.store.summaries(scope())) == 1


async def test_a_summary_that_is_longer_than_its_range_is_not_shown(server: Server) -> None:
    await server.ingest("a", "b", "c")
    change = HostCompacted(1, 2, "much longer than what it stands for")
    done = await server.context.record_host_change.run(TENANT, S1, change, request())
    assert (done.summary, done.changed.revision) == (None, 2)
    assert await server.shown() == ["a", "b", "c"]


async def test_a_range_within_a_summary_is_told_whose_it_is(server: Server) -> None:
    await server.talk(1, 8)
    await server.compact(4_000)
    row = min(await server.store.summaries(scope()), key=lambda row: row.first_sequence)
    assert row.last_sequence > row.first_sequence
    first, last = row.first_sequence + 1, row.last_sequence
    with pytest.raises(InvalidField, match=f"its whole range 1 to {last}"):
        await server.context.record_host_change.run(
            TENANT, S1, HostCompacted(first, last, "short"), request()
        )
    done = await server.context.record_host_change.run(
        TENANT, S1, HostCompacted(1, last, "short"), request()
    )
    assert done.summary is not None


async def test_a_native_compaction_begins_another_epoch(server: Server) -> None:
    await server.ingest("a")
    before = await server.assemble()
    await server.context.record_host_change.run(TENANT, S1, NativeCompacted(), request())
    assert (await server.state()).native_compactions == 1
    assert (await server.assemble()).epoch != before.epoch


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (Rewound(-1), "rewind.after_sequence"),
        (Rewound(4), "rewind.after_sequence"),
        (HostCompacted(1, 2, " "), "compacted.summary"),
        (HostCompacted(1, 2, "x" * (1024 * 1024 + 1)), "compacted.summary"),
        (HostCompacted(0, 2, "s"), "compacted.first_sequence"),
        (HostCompacted(3, 2, "s"), "compacted.first_sequence"),
        (HostCompacted(1, 4, "s"), "compacted.first_sequence"),
    ],
)
async def test_what_cannot_be_is_refused(server: Server, change: HostChange, field: str) -> None:
    await server.ingest("a", "b", "c")
    with pytest.raises(InvalidField) as refused:
        await server.context.record_host_change.run(TENANT, S1, change, request())
    assert refused.value.violations[0].field == field
    assert (await server.head()).revision == 1
    assert await server.store.reply(scope(), "r1") is None


async def test_a_session_that_is_not_there(server: Server) -> None:
    with pytest.raises(SessionNotFound):
        await server.context.record_host_change.run(TENANT, S1, Rewound(0), request())


@pytest.mark.parametrize(("last", "kept"), [(7, [7]), (10, [])])
async def test_a_rewind_that_opens_a_step_again_keeps_the_summary_before_it(
    server: Server, last: int, kept: list[int]
) -> None:
    """One that ends where the step begins covers none of it; one that covers some of it goes."""
    await server.talk(1, 3)
    step = incoming(
        user("look", "q"),
        assistant("", "asked", "c1", "c2"),
        result("c1", "one", "r1"),
        result("c2", "two", "r2"),
        user("more", "m"),
    )
    await server.context.ingest.run(TENANT, S1, step, None)
    await server.context.record_host_change.run(
        TENANT, S1, HostCompacted(1, last, "said"), request("c")
    )
    assert [row.last_sequence for row in await server.store.summaries(scope())] == [last]
    await server.context.record_host_change.run(TENANT, S1, Rewound(9), request("r"))
    assert [row.last_sequence for row in await server.store.summaries(scope())] == kept
