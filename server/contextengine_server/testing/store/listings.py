"""Which sessions there are: of a tenant, of an agent, idle ones."""

from __future__ import annotations

from contextengine_server.context.scope import Scope
from contextengine_server.store.protocols import Store

from .case import StoreCase
from .rows import Pen


class ListingCases(StoreCase):
    """Which sessions there are."""

    async def test_sessions_are_listed_newest_first_and_in_pages(self, store: Store) -> None:
        times = [5, 3, 3, 9, 3, 1, 9, 2]
        for n, time in enumerate(times):
            scope = Scope("acme", f"a{n % 2}", f"s{n}")
            key = "k" if n in (0, 3, 4) else ""
            await Pen(store, scope, session_key=key).write(head={"updated_ms": time})
        await Pen(store, Scope("other", "a0", "s0")).write(head={"updated_ms": 7})
        expected = sorted(
            ((time, f"a{n % 2}", f"s{n}") for n, time in enumerate(times)), reverse=True
        )

        async def pages(limit: int, **read: str) -> list[tuple[int, str, str]]:
            found: list[tuple[int, str, str]] = []
            while page := await store.list_sessions(
                "acme", limit=limit, after=found[-1] if found else None, **read
            ):
                assert len(page) <= limit
                found.extend(
                    (head.updated_ms, head.scope.agent, head.scope.session) for head in page
                )
            return found

        for limit in (1, 3, 99):
            assert await pages(limit) == expected
            assert await pages(limit, agent="a1") == [one for one in expected if one[1] == "a1"]
            assert await pages(limit, session_key="k") == [
                one for one in expected if one[2] in ("s0", "s3", "s4")
            ]
            assert await pages(limit, agent="a0", session_key="k") == [
                one for one in expected if one[2] in ("s0", "s4")
            ]
        assert await pages(99, agent="none") == []

    async def test_sessions_of_an_agent_in_the_order_in_which_they_were_made(
        self, store: Store
    ) -> None:
        made = [5, 3, 3, 9, 3, 1, 9]
        pens = {}
        for n, time in enumerate(made):
            pens[n] = Pen(store, Scope("acme", "a", f"s{n}"), created_ms=time)
            key = {"session_key": "k"} if n % 2 else {}
            await pens[n].write(head={"updated_ms": 100 - time, **key})
        await Pen(store, Scope("acme", "b", "s0"), created_ms=4).write()
        await Pen(store, Scope("other", "a", "s0"), created_ms=4).write()
        expected = sorted(((time, f"s{n}") for n, time in enumerate(made)), reverse=True)

        async def pages(limit: int, key: str = "") -> list[tuple[int, str]]:
            found: list[tuple[int, str]] = []
            while page := await store.agent_sessions(
                "acme",
                "a",
                session_key=key,
                limit=limit,
                after=found[-1] if found else None,
            ):
                assert len(page) <= limit
                found.extend((head.created_ms, head.scope.session) for head in page)
            return found

        for limit in (1, 3, 99):
            assert await pages(limit) == expected
            of_key = [one for one in expected if one[1] in ("s1", "s3", "s5")]
            assert await pages(limit, "k") == of_key
            assert await pages(limit, "none") == []
        await pens[5].write(head={"updated_ms": 999})
        await store.delete(pens[3].scope, expected_revision=None, cascade=False)
        expected.remove((9, "s3"))
        assert await pages(2) == expected
        assert await store.agent_sessions("acme", "none", limit=9) == []

    async def test_idle_sessions_of_every_tenant_oldest_first(self, store: Store) -> None:
        for n, (tenant, time, ended) in enumerate(
            [("a", 5, False), ("b", 3, False), ("a", 1, True), ("c", 2, False)]
        ):
            await Pen(store, Scope(tenant, "main", f"s{n}")).write(
                head={"updated_ms": time, "ended": ended}
            )
        assert [head.updated_ms for head in await store.idle_sessions(99, 99)] == [2, 3, 5]
        assert [head.updated_ms for head in await store.idle_sessions(5, 99)] == [2, 3]
        assert [head.updated_ms for head in await store.idle_sessions(99, 1)] == [2]

    async def test_the_tenants_that_have_sessions(self, store: Store) -> None:
        assert await store.tenants() == []
        for tenant, session in (("b", "s1"), ("a", "s1"), ("b", "s2"), ("a b", "s1")):
            await Pen(store, Scope(tenant, "main", session)).write()
        assert await store.tenants() == ["a", "a b", "b"]
        await store.delete(Scope("a", "main", "s1"), expected_revision=None, cascade=False)
        assert await store.tenants() == ["a b", "b"]
