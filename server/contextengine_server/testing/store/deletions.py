"""Deletion: what it erases, what it refuses, and that nothing of the session is left."""

from __future__ import annotations

import pytest

from contextengine_server.context.scope import Scope
from contextengine_server.store.charges import Charge
from contextengine_server.store.errors import HasDependents, RevisionConflict
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Assignment, Deleted, StoredReply

from .case import StoreCase
from .rows import SCOPE, Pen, debt, message, summary


async def family(store: Store) -> dict[str, Pen]:
    """root <- a <- c, root <- b; and a session of another agent that names the same parent."""
    pens = {}
    for name, parent in [("root", ""), ("a", "root"), ("b", "root"), ("c", "a"), ("apart", "")]:
        pens[name] = Pen(store, Scope("acme", "main", name), parent_session=parent)
        await pens[name].write(count=2, summaries=[summary("s", 1, 1)])
    pens["foreign"] = Pen(store, Scope("acme", "other", "x"), parent_session="root")
    await pens["foreign"].write(count=1)
    return pens


class DeletionCases(StoreCase):
    """Deletion: what it erases, what it refuses, and that nothing of the session is left."""

    async def test_everything_of_a_session_goes(self, store: Store) -> None:
        pen = Pen(store, session_key="key")
        await pen.write(
            messages=[message(n, host_id=f"h{n}", pinned=True) for n in (1, 2, 3)],
            summaries=[summary("a", 1, 1), summary("b", 2, 3)],
            reply=StoredReply("r1", b"", b""),
            bind_key=True,
            debt=debt(SCOPE),
        )
        await pen.write(retire_after=2, retire_summaries=["b"])
        await store.assign(Assignment("acme", "main", "s1", "dag"))
        await store.assign(Assignment("acme", "main", "", "dag"))
        assert await store.current_session("acme", "main", "key") == "s1"

        assert await store.delete(SCOPE, expected_revision=2, cascade=False) == Deleted(
            ("s1",), 3, 2
        )

        assert await store.head(SCOPE) is None
        assert await store.changes(SCOPE, 0) is None
        assert await store.messages(SCOPE, retired=True) == []
        assert await store.summaries(SCOPE, retired=True) == []
        assert await store.reply(SCOPE, "r1") is None
        assert await store.debts(SCOPE) == []
        assert await store.current_session("acme", "main", "key") is None
        assert await store.assignments("acme") == [Assignment("acme", "main", "", "dag")]
        assert await store.list_sessions("acme", limit=9) == []
        assert set((await store.counts()).values()) == {0}

        again = Pen(store, incarnation="second life")
        await again.write(messages=[message(1, host_id="h1")], reply=StoredReply("r1", b"", b""))
        assert await again.sequences(retired=True) == [1]

    async def test_what_is_not_there_is_erased_already(self, store: Store) -> None:
        assert await store.delete(SCOPE, expected_revision=None, cascade=False) == Deleted()
        with pytest.raises(RevisionConflict) as refused:
            await store.delete(SCOPE, expected_revision=3, cascade=True)
        assert refused.value.actual is None

    async def test_another_revision_than_expected_refuses(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=1)
        with pytest.raises(RevisionConflict) as refused:
            await store.delete(SCOPE, expected_revision=2, cascade=False)
        assert (refused.value.expected, refused.value.actual) == (2, 1)
        assert await pen.sequences() == [1]

    async def test_dependents_refuse_without_cascade(self, store: Store) -> None:
        pens = await family(store)
        root = pens["root"].scope
        assert await store.dependents(root) == [pens["a"].scope, pens["b"].scope]
        with pytest.raises(HasDependents) as refused:
            await store.delete(root, expected_revision=None, cascade=False)
        assert refused.value.sessions == ("a", "b")
        assert await pens["root"].sequences() == [1, 2]
        await store.delete(pens["c"].scope, expected_revision=None, cascade=False)
        await store.delete(pens["a"].scope, expected_revision=None, cascade=False)
        assert await store.dependents(root) == [pens["b"].scope]

    async def test_cascade_takes_all_that_stand_on_it_and_no_other(self, store: Store) -> None:
        pens = await family(store)
        deleted = await store.delete(pens["root"].scope, expected_revision=1, cascade=True)
        assert deleted.sessions[0] == "root"
        assert sorted(deleted.sessions) == ["a", "b", "c", "root"]
        assert (deleted.messages, deleted.summaries) == (8, 4)
        for name in ("root", "a", "b", "c"):
            assert await store.head(pens[name].scope) is None
        assert await pens["apart"].sequences() == [1, 2]
        assert await pens["foreign"].sequences() == [1]

    async def test_vacuuming_keeps_what_is_there(self, store: Store) -> None:
        pen = Pen(store)
        await pen.write(count=3, summaries=[summary("a", 1, 2)])
        await Pen(store, SCOPE._replace(session="gone")).write(count=3)
        await store.delete(SCOPE._replace(session="gone"), expected_revision=None, cascade=False)
        before = await store.messages(SCOPE), await store.summaries(SCOPE)
        await store.vacuum()
        assert (await store.messages(SCOPE), await store.summaries(SCOPE)) == before
        await pen.write(count=1)
        assert await store.head(SCOPE) == pen.head

    async def test_who_stood_on_an_earlier_life_does_not_stand_on_this_one(
        self, store: Store
    ) -> None:
        await Pen(store, incarnation="this life").write(count=1)
        for name, life in (("before", "first life"), ("now", "this life")):
            scope = SCOPE._replace(session=name)
            await Pen(store, scope, parent_session=SCOPE.session, parent_incarnation=life).write(
                count=1
            )
        assert await store.dependents(SCOPE) == [SCOPE._replace(session="now")]
        deleted = await store.delete(SCOPE, expected_revision=None, cascade=True)
        assert deleted.sessions == (SCOPE.session, "now")
        assert await store.head(SCOPE._replace(session="before")) is not None

    async def test_a_session_that_stands_on_itself_can_go(self, store: Store) -> None:
        for name, parent in (("a", "b"), ("b", "a")):
            await Pen(store, Scope("acme", "main", name), parent_session=parent).write(count=1)
        deleted = await store.delete(
            Scope("acme", "main", "a"), expected_revision=None, cascade=True
        )
        assert sorted(deleted.sessions) == ["a", "b"]
        assert (await store.counts())["sessions"] == 0

    async def test_what_stands_beside_sessions_goes_by_agent_and_by_tenant(
        self, store: Store
    ) -> None:
        """Of the agent or tenant that is named, and of nobody else; sessions stay."""
        charge = Charge(1_000_000, 7, "p", "m", 1, 2, 3, 4, 5, 6, 1)
        scopes = [
            Scope(tenant, agent, "s1") for tenant in ("acme", "beta") for agent in ("main", "other")
        ]

        async def stand_beside(scope: Scope) -> None:
            tenant, agent, _ = scope
            gone = scope._replace(session="gone")
            await Pen(store, gone).write(count=1)
            await store.delete(
                gone,
                expected_revision=None,
                cascade=False,
                answer=lambda deleted: StoredReply("d1", b"", b""),
                overwritten=False,
            )
            await store.assign(Assignment(tenant, agent, "", "dag"))
            await store.assign(Assignment(tenant, agent, "s1", "dag"))

        async def beside(scope: Scope) -> dict[str, int]:
            tenant, agent, _ = scope
            chosen = [one for one in await store.assignments(tenant) if one.agent == agent]
            return {
                "own choice": sum(1 for one in chosen if one.session),
                "choices": sum(1 for one in chosen if not one.session),
                "answers": int(await store.reply(scope._replace(session=""), "d1") is not None),
                "spent": len(await store.ledger.spent(tenant, agent)),
                "costs": sum(1 for one in await store.ledger.costs(tenant) if one.agent == agent),
            }

        full = {"own choice": 1, "choices": 1, "answers": 1, "spent": 1, "costs": 1}
        left = {"own choice": 1, "choices": 0, "answers": 0, "spent": 0, "costs": 0}
        for scope in scopes:
            await Pen(store, scope).write(count=1, charge=charge)
            await stand_beside(scope)
        for tenant in ("acme", "beta"):
            await store.assign(Assignment(tenant, "", "", "dag"))
            await store.guards.change(tenant, lambda state: (b"remembered", None))

        assert await store.forget("acme", "main") == 4
        assert [await beside(scope) for scope in scopes] == [left, full, full, full]
        assert await store.guards.state("acme") == b"remembered"
        assert Assignment("acme", "", "", "dag") in await store.assignments("acme")

        assert await store.forget("acme") == 6
        assert [await beside(scope) for scope in scopes] == [left, left, full, full]
        assert await store.guards.state("acme") == b""
        assert Assignment("acme", "", "", "dag") not in await store.assignments("acme")
        assert await store.forget("acme") == 0

        assert await store.guards.state("beta") == b"remembered"
        for scope in scopes:
            assert len(await store.messages(scope)) == 1
