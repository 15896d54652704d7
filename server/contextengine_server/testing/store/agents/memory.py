"""What agents remember: it goes with its source, stays within its agent, and comes once."""

from __future__ import annotations

from typing import Any

from contextengine_server.context.scope import Scope
from contextengine_server.store.agent_facts import AgentFact, FoundInSession
from contextengine_server.store.protocols import Store

from ..case import Reopen, StoreCase
from ..rows import SCOPE, Pen


def fact(id: str = "f1", sequence: int = 1, scope: Scope = SCOPE, **more: Any) -> AgentFact:
    """A fact with a value of its own in every field."""
    fields = {"kind": "preference", "subject": "mode", "value": f"value {id}", "text": "a 文 text"}
    times = {"said_ms": 1000, "written_ms": 2000}
    return AgentFact(scope, id, **{**fields, **times, **more}, sequence=sequence)


def found(pen: Pen, *facts: AgentFact, as_of: int | None = None, **more: Any) -> FoundInSession:
    """What was found in a session as it is now."""
    revision = pen.head.revision if as_of is None else as_of
    return FoundInSession(pen.scope, pen.head.incarnation, revision, facts, **more)


class MemoryCases(StoreCase):
    """What agents remember: it goes with its source, stays within its agent, and comes once."""

    async def test_facts_come_back_as_they_were(self, store: Store, reopen: Reopen) -> None:
        pen = Pen(store)
        await pen.write(count=3)
        wild = "before\x00behind"
        facts = [
            fact("b", 3, said_ms=5, value=wild, text=wild),
            fact("a", 2, said_ms=7, subject="", text=""),
        ]
        assert await store.memory.add(found(pen, *reversed(facts))) == 2
        again = await reopen()
        assert await again.memory.facts("acme", "main") == facts
        assert await again.memory.facts_of(SCOPE) == facts

    async def test_a_fact_is_written_once(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=3)
        first = fact("a", 1, value="as it was")
        assert await store.memory.add(found(pen, first)) == 1
        assert await store.memory.add(found(pen, fact("a", 2, value="another"), fact("b"))) == 1
        assert await store.memory.facts("acme", "main") == [first, fact("b")]

    async def test_facts_stand_in_the_order_in_which_they_were_said(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=9)
        facts = [
            fact("z", 2, said_ms=5, written_ms=9),
            fact("a", 7, said_ms=5, written_ms=3),
            fact("b", 7, said_ms=5, kind="name"),
            fact("c", 1, said_ms=6, kind="email"),
            fact("d", 1, said_ms=7, written_ms=4),
        ]
        await store.memory.add(found(pen, *facts[::-1]))
        assert await store.memory.facts("acme", "main") == facts

        async def newest(*kinds: str, as_of_ms: int = 9_999, limit: int = 9) -> str:
            rows = await store.memory.newest_facts(
                "acme", "main", kinds, as_of_ms=as_of_ms, limit=limit
            )
            return "".join(row.id for row in rows)

        assert await newest("preference", "name") == "dbaz"
        assert await newest("preference", "name", limit=2) == "db"
        assert await newest("preference", as_of_ms=4) == "da"
        assert await newest("preference", as_of_ms=3) == "a"
        assert await newest() == await newest("decision") == ""

    async def test_agents_and_tenants_are_walled_off(self, store: Store) -> None:
        pens = []
        for scope in (SCOPE, Scope("acme", "other", "s1"), Scope("other", "main", "s1")):
            pens.append(Pen(store, scope))
            await pens[-1].write(count=1)
            own = fact("same id", scope=scope, value=f"of {scope.tenant} {scope.agent}")
            assert await store.memory.add(found(pens[-1], own)) == 1
        for pen in pens:
            tenant, agent, _ = pen.scope
            [kept] = await store.memory.facts(tenant, agent)
            assert kept.value == f"of {tenant} {agent}"
            newest = store.memory.newest_facts(
                tenant, agent, ["preference"], as_of_ms=9_999, limit=9
            )
            assert await newest == [kept]
        await store.delete(SCOPE, expected_revision=None, cascade=False)
        assert [len(await store.memory.facts(*pen.scope[:2])) for pen in pens] == [0, 1, 1]

    async def test_facts_go_with_their_session(self, store: Store, reopen: Reopen) -> None:
        first, second = Pen(store), Pen(store, SCOPE._replace(session="s2"), parent_session="s1")
        for pen in (first, second):
            await pen.write(count=1)
            await store.memory.add(found(pen, fact(f"of {pen.scope.session}", scope=pen.scope)))
        apart = Pen(store, SCOPE._replace(session="s3"))
        await apart.write(count=1)
        await store.memory.add(found(apart, fact("apart", scope=apart.scope)))
        await store.delete(SCOPE, expected_revision=None, cascade=True)
        again = await reopen()
        assert [one.id for one in await again.memory.facts("acme", "main")] == ["apart"]
        assert (await again.counts())["agent_facts"] == 1

    async def test_nothing_is_kept_of_a_session_that_is_gone(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=1)
        before = found(pen, fact())
        await store.delete(SCOPE, expected_revision=None, cascade=False)
        assert await store.memory.add(before) == 0
        await Pen(store, incarnation="second life").write(count=1)
        assert await store.memory.add(before) == 0
        assert await store.memory.facts("acme", "main") == []

    async def test_what_is_taken_back_is_forgotten(self, store: Store) -> None:
        pen, beside = Pen(store), Pen(store, SCOPE._replace(session="s2"))
        await pen.write(count=4)
        await beside.write(count=4)
        await store.memory.add(found(beside, fact("beside", 4, scope=beside.scope)))
        await store.memory.add(found(pen, fact("stays", 2), fact("goes", 3), fact("too", 4)))
        await pen.write(retire_after=2)
        assert {one.id for one in await store.memory.facts("acme", "main")} == {"stays", "beside"}

    async def test_a_reset_takes_nothing_back(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=2)
        await store.memory.add(found(pen, fact("stays", 2)))
        await pen.write(retire_after=0, keeps_facts=True)
        assert await store.memory.facts("acme", "main") == [fact("stays", 2)]

    async def test_what_was_taken_back_meanwhile_is_not_found(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=4)
        read = pen.head.revision
        await pen.write(retire_after=2)
        assert await store.memory.add(found(pen, fact("a", 2), fact("b", 3), as_of=read)) == 1
        assert [one.id for one in await store.memory.facts("acme", "main")] == ["a"]
        assert await store.memory.add(found(pen, fact("read behind it", 3))) == 1

    async def test_facts_make_room(self, store: Store) -> None:
        pen, beside = Pen(store), Pen(store, Scope("acme", "other", "s1"))
        for one in (pen, beside):
            await one.write(count=1)
            await store.memory.add(found(one, fact("old", scope=one.scope)))
        await store.memory.add(found(pen, fact("new"), forgotten=["old", "never there"]))
        assert [one.id for one in await store.memory.facts("acme", "main")] == ["new"]
        assert [one.id for one in await store.memory.facts("acme", "other")] == ["old"]

    async def test_facts_are_among_what_a_session_takes(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=1)
        before = await store.size(SCOPE)
        one = fact()
        await store.memory.add(found(pen, one))
        assert await store.size(SCOPE) - before == len((one.value + one.text).encode())
