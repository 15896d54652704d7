"""Sessions go by the rules of retention: by age, number and bytes, by tenant and agent; what is
pinned, and what others stand on, stays. And a tenant takes no more of the disk than it may."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextengine_server.commands.sessions.prune import (
    Prune,
    Pruner,
    RetentionRule,
    erasing,
    outdated,
)
from contextengine_server.commands.turn.bootstrap import Introduction
from contextengine_server.config.load import load_settings
from contextengine_server.context.scope import Scope
from contextengine_server.errors import TooLarge
from contextengine_server.health.quota import DiskCap, Quotas
from contextengine_server.session.address import Ref
from contextengine_server.store import session_pages
from contextengine_server.store.memory import MemoryStore, Tables
from contextengine_server.testing.store.rows import Pen, message
from contextengine_server.wiring.commands import delete_command
from contextengine_server.wiring.limits import retention_rules_of
from tests.unit.commands.house import TENANT, Rows, Server, incoming, long, user

DAY = 24 * 3600 * 1000


def prune(server: Server, *rules: RetentionRule) -> Prune:
    erase = erasing(delete_command(server.core))
    return Prune(server.store, rules, server.clock, erase)


async def write(
    server: Server, session: str, *, agent: str = "agent", tenant: str = TENANT, **more: Any
) -> None:
    said = incoming(user(long("u", 100), **more))
    await server.context.ingest.run(tenant, Ref(agent, session), said, None)


async def sessions(server: Server, tenant: str = TENANT) -> set[str]:
    return {head.scope.session for head in await server.store.list_sessions(tenant, limit=1000)}


async def test_old_sessions_go(server: Server) -> None:
    await write(server, "old")
    await write(server, "pinned", labels={"pinned": "true"})
    server.clock.ms += 10 * DAY
    await write(server, "new")
    rule = RetentionRule(max_age_ms=9 * DAY)
    seen = await prune(server, rule).run(dry_run=True)
    assert [(one.head.scope.session, one.limit) for one in seen] == [("old", "age")]
    assert seen[0].bytes == await server.store.size(seen[0].head.scope) > 0
    assert await sessions(server) == {"old", "pinned", "new"}
    assert await prune(server, rule).run() == seen
    assert await sessions(server) == {"pinned", "new"}
    (event,) = server.events("session:deleted")
    assert event.session == "old"
    assert await prune(server, rule).run() == []
    await prune(server, RetentionRule(max_age_ms=9 * DAY, keep_pinned=False)).run()
    assert await sessions(server) == {"new"}


async def test_the_newest_of_each_agent_stay(server: Server) -> None:
    for at in range(4):
        server.clock.ms += 1000
        for agent in ("one", "two"):
            await write(server, f"{agent}-{at}", agent=agent)
    size = await server.store.size(Scope(TENANT, "one", "one-0"))
    await prune(server, RetentionRule(agent="one", max_sessions=2)).run()
    assert {name for name in await sessions(server) if name[:3] == "one"} == {"one-2", "one-3"}
    assert len(await sessions(server)) == 6
    await prune(server, RetentionRule(agent="two", max_bytes=size * 2)).run()
    assert {name for name in await sessions(server) if name[:3] == "two"} == {"two-2", "two-3"}
    # The newest stays, however large it is.
    await prune(server, RetentionRule(max_bytes=1)).run()
    assert await sessions(server) == {"one-3", "two-3"}


async def test_the_first_rule_that_names_a_session_is_its_own(server: Server) -> None:
    await write(server, "keep-1", agent="main")
    await write(server, "case-1", agent="main")
    await write(server, "case-1", agent="main", tenant="other")
    server.clock.ms += 2 * DAY
    keep, rest = RetentionRule(session="keep-*"), RetentionRule(tenant=TENANT, max_age_ms=DAY)
    await prune(server, keep, rest).run()
    assert await sessions(server) == {"keep-1"}
    assert await sessions(server, "other") == {"case-1"}


async def test_what_others_stand_on_stays_until_they_go(server: Server) -> None:
    await write(server, "parent")
    child = Ref("agent", "child")
    said = Introduction(continues=Ref("agent", "parent"))
    await server.context.bootstrap.run(TENANT, child, said, [], None)
    server.clock.ms += 2 * DAY
    await write(server, "child")
    rule = RetentionRule(max_age_ms=DAY)
    assert await prune(server, rule).run(dry_run=True) == []
    server.clock.ms += 2 * DAY
    gone = await prune(server, rule).run()
    assert [one.head.scope.session for one in gone] == ["child", "parent"]
    assert await sessions(server) == set()


async def test_one_that_is_written_to_meanwhile_stays(server: Server) -> None:
    await write(server, "old")
    server.clock.ms += 2 * DAY
    plain = prune(server, RetentionRule(max_age_ms=DAY))

    async def late(head: Any) -> bool:
        await write(server, "old")
        return await plain.erase(head)

    assert await Prune(plain.store, plain.rules, plain.clock_ms, late).run() == []
    assert await sessions(server) == {"old"}


async def test_the_server_prunes_by_itself(server: Server) -> None:
    await write(server, "old")
    server.clock.ms += 2 * DAY
    rules = prune(server, RetentionRule(max_age_ms=DAY))
    assert len(await Pruner(rules, 0.01, dry_run=True).sweep()) == 1
    assert await sessions(server) == {"old"}
    pruner = Pruner(rules, 0.01, dry_run=False)
    pruner.start()
    async with asyncio.timeout(30):
        while await sessions(server):
            await asyncio.sleep(0.01)
    await pruner.stop()


def test_rules_come_from_the_settings() -> None:
    made = load_settings(
        None,
        {
            "retention.interval": "1h",
            "retention.rules": [{"agent": "main", "max_age": "30d", "keep_pinned": False}],
        },
        {},
    )
    expected = RetentionRule(agent="main", max_age_ms=30 * DAY, keep_pinned=False)
    assert retention_rules_of(made) == [expected]


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 9), st.booleans(), st.integers(0, 5)),
        max_size=12,
    ),
    st.tuples(
        st.none() | st.integers(0, 9), st.none() | st.integers(1, 4), st.none() | st.integers(1, 99)
    ),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
async def test_what_stays_and_what_goes(
    given_sessions: list[tuple[int, int, bool, int]],
    limits: tuple[int | None, int | None, int | None],
) -> None:
    """Whatever the limits: nothing pinned goes, nothing that one which stays stands on, never the
    newest for its size or its number; and what is pruned leaves nothing to prune."""
    store = MemoryStore(Tables())
    await store.open()
    age, number, size = limits
    rule = RetentionRule(max_age_ms=age, max_sessions=number, max_bytes=size)
    for at, (agent, updated, pinned, parent) in enumerate(given_sessions):
        scope = Scope("t", str(agent), str(at))
        above = {"parent_session": str(parent)} if parent < at else {}
        pen = Pen(store, scope, f"life {at}", updated_ms=updated - 1, **above)
        rows = [message(1, 1, pinned=pinned, step=0, start=0)]
        await pen.write(messages=rows)
    now = 10
    found = await outdated(store, [rule], now)
    going = {one.head.scope for one in found}
    for at, (agent, updated, pinned, _) in enumerate(given_sessions):
        scope = Scope("t", str(agent), str(at))
        if scope not in going:
            continue
        assert not pinned
        if age is None or now - updated <= age:
            newer = [one for one in given_sessions if one[0] == agent and one[1] >= updated]
            assert len(newer) > 1
    gone: set[Scope] = set()
    for one in found:
        assert set(await store.dependents(one.head.scope)) <= gone
        await store.delete(one.head.scope, expected_revision=None, cascade=False)
        gone.add(one.head.scope)
    await store.close()


# Caps.


async def settled(full: dict[str, tuple[int, int]], tenant: str, over: bool) -> None:
    async with asyncio.timeout(30):
        while (tenant in full) != over:
            await asyncio.sleep(0.01)


async def test_a_tenant_takes_no_more_than_it_may(server: Server) -> None:
    full = server.core.appender.full
    assert isinstance(full, dict)
    await write(server, "first")
    cap = await server.store.size(Scope(TENANT, "agent", "first"))
    quotas = Quotas(server.store, [DiskCap("free-*", 1), DiskCap(TENANT, cap)], full)
    quotas.start()
    async with asyncio.timeout(30):
        while TENANT not in quotas._used:
            await asyncio.sleep(0.01)
    await write(server, "second")
    assert TENANT in full
    with pytest.raises(TooLarge) as caught:
        await write(server, "second")
    assert caught.value.metadata["field"] == "retention.caps"
    assert caught.value.metadata["limit"] == str(cap)
    assert int(caught.value.metadata["used"]) > cap
    assert "delete" in caught.value.text
    # What is stored already is answered as before, and others are not concerned.
    await server.assemble(ref=Ref("agent", "second"))
    await write(server, "theirs", tenant="another")
    await delete_command(server.core).run(
        TENANT, Ref("agent", "first"), expected_revision=None, cascade=False
    )
    await settled(full, TENANT, over=False)
    await write(server, "second")
    await settled(full, TENANT, over=True)
    await quotas.stop()


async def test_what_was_there_before_counts(server: Server) -> None:
    full = server.core.appender.full
    assert isinstance(full, dict)
    await write(server, "first", tenant="free-1")
    quotas = Quotas(server.store, [DiskCap("free-*", 1), DiskCap("**", 10**9)], full)
    quotas.start()
    await settled(full, "free-1", over=True)
    with pytest.raises(TooLarge):
        await write(server, "second", tenant="free-1")
    await write(server, "second")
    await quotas.stop()


async def test_what_is_erased_while_a_tenant_is_measured_counts_no_more(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = server.core.appender.full
    assert isinstance(full, dict)
    await write(server, "first")
    measured = server.store.size
    erasures = iter(["first"])

    async def size(scope: Scope) -> int:
        found = await measured(scope)
        for session in erasures:
            await delete_command(server.core).run(
                TENANT, Ref("agent", session), expected_revision=None, cascade=False
            )
        return found

    monkeypatch.setattr(server.store, "size", size)
    quotas = Quotas(server.store, [DiskCap("**", 1)], full)
    quotas.start()
    while TENANT not in quotas._used:
        await asyncio.sleep(0.01)
    await settled(full, TENANT, over=False)
    await quotas.stop()


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=12),
    st.integers(1, 3),
)
@settings(max_examples=60, deadline=None)
def test_what_is_written_while_a_tenant_is_measured_counts_once(
    writes: list[tuple[str, bool]], page: int
) -> None:
    """Before a session is looked at or behind that, one that is there or new, listed or passed
    over."""

    async def play() -> None:
        server = await Server(Rows()).open()
        for session in "abcd":
            server.clock.ms += 1
            await write(server, session)
        left = list(writes)
        measured, listed = server.store.size, server.store.list_sessions

        async def meanwhile(*, late: bool) -> None:
            if left and left[0][1] is late:
                server.clock.ms += 1
                await write(server, left.pop(0)[0])

        async def size(scope: Scope) -> int:
            await meanwhile(late=False)
            found = await measured(scope)
            await meanwhile(late=True)
            return found

        async def list_sessions(*args: Any, **more: Any) -> Any:
            await meanwhile(late=False)
            return await listed(*args, **more)

        server.store.size = size  # type: ignore[method-assign]
        server.store.list_sessions = list_sessions  # type: ignore[method-assign]
        full: dict[str, tuple[int, int]] = {}
        quotas = Quotas(server.store, [DiskCap("**", 1)], full)
        quotas.start()
        while TENANT not in quotas._used:
            await asyncio.sleep(0)
        for session, _ in left:
            await write(server, session)
        taken = 0
        for session in "abcdef":
            taken += await measured(Scope(TENANT, "agent", session))
        assert full[TENANT] == (taken, 1)
        await quotas.stop()
        await server.close()

    with patch.object(session_pages, "_PAGE", page):
        asyncio.run(play())
