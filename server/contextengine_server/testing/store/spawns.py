"""Children: prepared with their session or not at all, at most so many live, over once, and there
after a restart."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import RevisionConflict, TooManyChildren
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import KEPT_MS, Commit, SessionHead, Spawn

from .case import Reopen, StoreCase
from .rows import SCOPE, Pen, message

CHILD = SCOPE._replace(session="child")
SPAWN = Spawn(
    "acme",
    "t1",
    "main",
    "child",
    "main",
    "s1",
    parent_revision=1,
    parent_sequence=2,
    fork=True,
    depth=1,
    created_ms=100,
    ttl_ms=1_000,
    expire_ms=1_100,
    request_id="r1",
    digest=b"\x00digest",
    note="a\x00 note",
    objective="an\x00 objective",
    grant_tokens=10,
)


def born(child: Scope = CHILD, **more: Any) -> Commit:
    """The commit that makes a child with two inherited messages."""
    facts = {"parent_session": "s1", "parent_revision": 1, "parent_sequence": 2, "last_sequence": 2}
    head = SessionHead(child, "life of a child", revision=2, **{"updated_ms": 100, **facts, **more})
    return Commit(head, 0, bind_key=bool(head.session_key))


def spawn(number: int, **more: Any) -> Spawn:
    return replace(
        SPAWN,
        **{"token": f"t{number}", "session": f"child{number}", "request_id": f"r{number}", **more},
    )


async def prepared(store: Store, made: Spawn = SPAWN, most: int = 9, **more: Any) -> Spawn:
    return await store.spawns.prepare(made, born(made.child, **more), most)


class SpawnCases(StoreCase):
    """Children: prepared with their session or not at all, at most so many live, over once."""

    @pytest_asyncio.fixture(loop_scope="function")
    async def parent(self, store: Store) -> Pen:
        pen = Pen(store)
        await pen.write(count=2)
        return pen

    async def test_a_spawn_comes_with_its_child_and_stays(
        self, reopen: Reopen, parent: Pen, store: Store
    ) -> None:
        assert await prepared(store) == SPAWN
        again = await reopen()
        assert await again.spawns.find("acme", "t1") == SPAWN
        assert await again.spawns.asked(SCOPE, "r1") == SPAWN
        assert await again.spawns.newest_of(CHILD) == SPAWN
        assert await again.spawns.live_children(SCOPE) == 1
        head = await again.head(CHILD)
        assert head is not None
        assert (head.revision, head.parent_session) == (2, "s1")

    async def test_no_tenant_finds_anothers(self, parent: Pen, store: Store) -> None:
        await prepared(store)
        foreign = SCOPE._replace(tenant="other")
        assert await store.spawns.find("other", "t1") is None
        assert await store.spawns.asked(foreign, "r1") is None
        assert await store.spawns.newest_of(CHILD._replace(tenant="other")) is None
        assert await store.spawns.live_children(foreign) == 0
        assert not await store.spawns.start("other", "t1", 200)
        assert not await store.spawns.spend("other", "t1", 1)
        assert await store.spawns.end("other", "t1", "swept", 200, take_back=True) is None
        assert await store.spawns.find("acme", "t1") == SPAWN

    async def test_the_same_request_at_once_makes_one_child(
        self, parent: Pen, store: Store
    ) -> None:
        twice = [replace(SPAWN, token=token, session=token) for token in ("a", "b")]
        made = await asyncio.gather(*(prepared(store, one) for one in twice))
        assert made[0] == made[1]
        assert await store.spawns.live_children(SCOPE) == 1
        assert len(await store.list_sessions("acme", limit=9)) == 2

    async def test_without_a_request_id_none_is_the_same(self, parent: Pen, store: Store) -> None:
        for number in (1, 2):
            await prepared(store, spawn(number, request_id=""))
        assert await store.spawns.live_children(SCOPE) == 2
        assert await store.spawns.asked(SCOPE, "") is None

    async def test_one_too_many_is_refused_with_its_child(self, parent: Pen, store: Store) -> None:
        done = await asyncio.gather(
            *(prepared(store, spawn(n), most=2) for n in range(4)), return_exceptions=True
        )
        refused = [one for one in done if isinstance(one, TooManyChildren)]
        assert len(refused) == 2
        [first, _] = [one.token for one in done if not isinstance(one, BaseException)]
        assert await store.spawns.live_children(SCOPE) == 2
        assert len(await store.list_sessions("acme", limit=9)) == 3
        await store.spawns.end("acme", first, "completed", 200, take_back=False)
        assert await prepared(store, spawn(7), most=2)

    async def test_a_child_that_is_there_or_a_parent_that_is_gone_refuses_both(
        self, parent: Pen, store: Store
    ) -> None:
        await prepared(store)
        with pytest.raises(RevisionConflict):
            await prepared(store, replace(SPAWN, token="t2", request_id="r2"))
        orphan = spawn(3, parent_session="none")
        with pytest.raises(RevisionConflict):
            await prepared(store, orphan)
        assert await store.spawns.find("acme", "t2") is None
        assert await store.head(orphan.child) is None

    async def test_taken_back_the_child_is_gone_and_its_key_names_what_it_named(
        self, parent: Pen, store: Store
    ) -> None:
        old = Pen(store, SCOPE._replace(session="old"), session_key="key")
        await old.write(count=1, bind_key=True)
        await prepared(store, replace(SPAWN, previous_session="old"), session_key="key")
        assert await store.current_session("acme", "main", "key") == "child"
        ended = await store.spawns.end("acme", "t1", "rolled_back", 200, take_back=True)
        assert ended is not None
        assert ended.erased
        assert await store.head(CHILD) is None
        assert await store.current_session("acme", "main", "key") == "old"
        known = await store.spawns.find("acme", "t1")
        assert (
            known
            == ended.spawn
            == replace(SPAWN, previous_session="old", ended_ms=200, end_reason="rolled_back")
        )
        assert await store.spawns.live_children(SCOPE) == 0
        assert await store.spawns.end("acme", "t1", "swept", 300, take_back=True) is None
        assert await store.dependents(SCOPE) == []

    async def test_a_key_that_names_another_by_now_is_left_alone(
        self, parent: Pen, store: Store
    ) -> None:
        await prepared(store, replace(SPAWN, previous_session="s1"), session_key="key")
        newer = Pen(store, SCOPE._replace(session="newer"), session_key="key")
        await newer.write(count=1, bind_key=True)
        await store.spawns.end("acme", "t1", "rolled_back", 200, take_back=True)
        assert await store.current_session("acme", "main", "key") == "newer"

    async def test_what_a_child_stored_stays(self, parent: Pen, store: Store) -> None:
        await prepared(store)
        head = await store.head(CHILD)
        assert head is not None
        await store.commit(
            Commit(replace(head, revision=3, last_sequence=3), 2, messages=[message(3, 3)])
        )
        ended = await store.spawns.end("acme", "t1", "rolled_back", 200, take_back=True)
        assert ended is not None
        assert not ended.erased
        assert [row.sequence for row in await store.messages(CHILD)] == [3]

    async def test_a_child_that_others_stand_on_stays(self, parent: Pen, store: Store) -> None:
        await prepared(store)
        await prepared(store, spawn(2, parent_session="child"), parent_session="child")
        ended = await store.spawns.end("acme", "t1", "rolled_back", 200, take_back=True)
        assert ended is not None
        assert not ended.erased
        assert await store.head(CHILD) is not None

    async def test_a_child_starts_in_time_or_never(self, parent: Pen, store: Store) -> None:
        await prepared(store)
        assert not await store.spawns.start("acme", "t1", 1_100)
        assert await store.spawns.start("acme", "t1", 1_099)
        assert await store.spawns.start("acme", "t1", 1_099), "again is safe"
        await store.spawns.end("acme", "t1", "completed", 1_100, take_back=False)
        assert not await store.spawns.start("acme", "t1", 1_099)

    async def test_tokens_are_spent_to_the_last_and_no_further(
        self, parent: Pen, store: Store
    ) -> None:
        await prepared(store)
        done = await asyncio.gather(*(store.spawns.spend("acme", "t1", 3) for _ in range(5)))
        assert sorted(done) == [False, False, True, True, True]
        assert await store.spawns.spend("acme", "t1", 1)
        assert not await store.spawns.spend("acme", "t1", 1)
        known = await store.spawns.find("acme", "t1")
        assert known is not None
        assert known.used_tokens == 10
        await store.spawns.end("acme", "t1", "completed", 200, take_back=False)
        assert not await store.spawns.spend("acme", "t1", 0)

    async def test_what_never_started_is_taken_back_when_its_time_has_passed(
        self, parent: Pen, store: Store
    ) -> None:
        await prepared(store, spawn(1))
        await prepared(store, spawn(2, expire_ms=5_000))
        assert await store.spawns.expire(1_099, 9) == []
        (ended,) = await store.spawns.expire(1_100, 9)
        assert (ended.spawn.token, ended.spawn.end_reason, ended.erased) == ("t1", "expired", True)
        assert await store.head(ended.spawn.child) is None
        assert await store.spawns.expire(1_100, 9) == []
        assert await store.spawns.live_children(SCOPE) == 1

    async def test_one_alone_is_expired_when_it_is_due(self, parent: Pen, store: Store) -> None:
        for number in (1, 2):
            await prepared(store, spawn(number))
        assert await store.spawns.expire_one("acme", "t2", 1_099) is None
        assert await store.spawns.expire_one("other", "t2", 1_100) is None
        ended = await store.spawns.expire_one("acme", "t2", 1_100)
        assert ended is not None
        assert (ended.spawn.end_reason, ended.erased) == ("expired", True)
        assert await store.spawns.expire_one("acme", "t2", 1_100) is None
        assert await store.spawns.live_children(SCOPE) == 1

    @pytest.mark.parametrize("how", ["bootstrapped", "wrote"])
    async def test_a_child_that_lives_gets_its_time_anew(
        self, parent: Pen, store: Store, how: str
    ) -> None:
        await prepared(store)
        head = await store.head(CHILD)
        assert head is not None
        if how == "bootstrapped":
            await store.spawns.start("acme", "t1", 200)
            new = replace(head, revision=3, updated_ms=900)
            await store.commit(Commit(new, 2))
        else:
            new = replace(head, revision=3, updated_ms=900, last_sequence=3)
            await store.commit(Commit(new, 2, messages=[message(3, 3)]))
        assert await store.spawns.expire(1_100, 9) == []
        known = await store.spawns.find("acme", "t1")
        assert known is not None
        assert (known.expire_ms, known.ended_ms) == (1_900, 0)
        (ended,) = await store.spawns.expire(1_900, 9)
        assert (ended.spawn.end_reason, ended.erased) == ("expired", False)
        assert await store.head(CHILD) == new

    async def test_what_is_over_is_known_for_a_while(self, parent: Pen, store: Store) -> None:
        await prepared(store)
        await store.spawns.end("acme", "t1", "completed", 200, take_back=False)
        assert await prepared(store, replace(SPAWN, token="t2")) == await store.spawns.find(
            "acme", "t1"
        )
        await store.spawns.expire(200 + KEPT_MS - 1, 9)
        assert await store.spawns.find("acme", "t1") is not None
        await store.spawns.expire(200 + KEPT_MS, 9)
        assert await store.spawns.find("acme", "t1") is None

    @pytest.mark.parametrize("gone", ["s1", "child"])
    async def test_a_spawn_goes_with_its_parent_and_with_its_child(
        self, parent: Pen, store: Store, gone: str
    ) -> None:
        await prepared(store)
        await store.delete(SCOPE._replace(session=gone), expected_revision=None, cascade=True)
        assert await store.spawns.find("acme", "t1") is None
        assert await store.head(CHILD) is None

    async def test_a_child_of_its_own_outlives_its_parent(self, parent: Pen, store: Store) -> None:
        await prepared(
            store, replace(SPAWN, fork=False), parent_session="", parent_sequence=0, last_sequence=0
        )
        await store.delete(SCOPE, expected_revision=None, cascade=False)
        assert await store.spawns.find("acme", "t1") is None
        assert await store.head(CHILD) is not None

    async def test_a_child_that_was_deleted_expires_without_a_trace(
        self, parent: Pen, store: Store
    ) -> None:
        await prepared(store)
        await store.delete(CHILD, expected_revision=None, cascade=False)
        assert await store.spawns.expire(9_999, 9) == []
