"""Sessions that are staged: nobody sees them until they are adopted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from contextengine_server.context.scope import Scope
from contextengine_server.store.errors import DuplicateHostIds, RevisionConflict
from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Commit, Facts, SessionHead

from ..case import StoreCase
from ..rows import SCOPE, Pen, message

FIRST, SECOND = "first", "second"


def staged(incarnation: str, last: int, *, scope: Scope = SCOPE, at_ms: int = 10) -> SessionHead:
    """A head of a staged session that has so many messages."""
    return SessionHead(scope, incarnation, 0, last, message_count=last, created_ms=at_ms)


async def stage(store: Store, incarnation: str = FIRST, *, scope: Scope = SCOPE) -> SessionHead:
    """Stages two messages, then one, with which what is known of the first changes."""
    head = staged(incarnation, 2, scope=scope)
    await store.commit(Commit(head, 0, [message(1, host_id="a"), message(2)]))
    head = staged(incarnation, 3, scope=scope)
    moved = [Facts(1, 7, 70, None)]
    await store.commit(Commit(head, 0, [message(3)], facts=moved, adopts=True))
    return head


def adopting(head: SessionHead) -> Commit:
    """The commit that makes a session of what is staged."""
    made = replace(head, revision=1, session_key="k", created_ms=50, updated_ms=60)
    return Commit(made, 0, bind_key=True, adopts=True)


class StagedSessionCases(StoreCase):
    """What is written under a head of revision 0."""

    async def test_nobody_sees_what_is_staged(self, store: Store) -> None:
        told: list[int] = []

        class Told:
            def committed(self, commit: Commit) -> None:
                told.append(commit.head.revision)

            def erased(self, scopes: object) -> None: ...

        store.observe(Told())
        head = await stage(store)
        assert await store.head(SCOPE) is None
        assert await store.list_sessions(SCOPE.tenant, limit=9) == []
        assert await store.agent_sessions(SCOPE.tenant, SCOPE.agent, limit=9) == []
        assert await store.idle_sessions(2**60, 9) == []
        assert told == []
        await store.commit(adopting(head))
        assert told == [1]
        now = await store.head(SCOPE)
        assert now == replace(head, revision=1, session_key="k", created_ms=50, updated_ms=60)
        rows = await store.messages(SCOPE)
        assert [(row.sequence, row.step, row.start) for row in rows] == [
            (1, 7, 70),
            *((row.sequence, row.step, row.start) for row in (message(2), message(3))),
        ]
        assert await store.current_session(SCOPE.tenant, SCOPE.agent, "k") == SCOPE.session
        assert await store.staged(2**60, 9) == []
        with pytest.raises(RevisionConflict):
            await store.commit(adopting(head))

    async def test_what_is_staged_is_read_for_whoever_stages_it(self, store: Store) -> None:
        await stage(store)
        assert [row.sequence for row in await store.messages(SCOPE, 2)] == [2, 3]
        assert [row.sequence for row in await store.messages_by_host_id(SCOPE, ["a"])] == [1]
        again = Commit(staged(FIRST, 4), 0, [message(4, host_id="a")], adopts=True)
        with pytest.raises(DuplicateHostIds):
            await store.commit(again)
        assert [row.sequence for row in await store.messages(SCOPE)] == [1, 2, 3]

    async def test_it_gives_way_to_whoever_makes_the_session(self, store: Store) -> None:
        head = await stage(store)
        pen = Pen(store, SCOPE)
        await pen.write(messages=[message(1, host_id="a")])
        with pytest.raises(RevisionConflict):
            await store.commit(adopting(head))
        with pytest.raises(RevisionConflict):
            await store.commit(Commit(staged(FIRST, 4), 0, [message(4)], adopts=True))
        assert [row.sequence for row in await store.messages(SCOPE)] == [1]
        await store.unstage(SCOPE, FIRST)
        assert [row.sequence for row in await store.messages(SCOPE)] == [1]

    async def test_the_newer_of_two_goes_on(self, store: Store) -> None:
        before = await stage(store)
        after = await stage(store, SECOND)
        with pytest.raises(RevisionConflict):
            await store.commit(adopting(before))
        await store.unstage(SCOPE, FIRST)
        await store.commit(adopting(after))
        assert len(await store.messages(SCOPE)) == 3

    async def test_no_session_is_staged_that_is_there(self, store: Store) -> None:
        await Pen(store, SCOPE).write(messages=[message(1)])
        with pytest.raises(RevisionConflict):
            await store.commit(Commit(staged(FIRST, 1), 0, [message(1)]))

    async def test_it_is_erased_in_parts(self, store: Store) -> None:
        head = await stage(store)
        elsewhere = await stage(store, scope=SCOPE._replace(session="elsewhere"))
        assert await store.staged(10, 9) == []
        assert {one.scope for one in await store.staged(11, 9)} == {head.scope, elsewhere.scope}
        await store.unstage(SCOPE, FIRST, 1)
        assert [row.sequence for row in await store.messages(SCOPE)] == [1]
        assert len(await store.staged(11, 9)) == 2
        await store.unstage(SCOPE, FIRST)
        assert await store.messages(SCOPE) == []
        assert await store.staged(11, 9) == [elsewhere]
        await Pen(store, SCOPE).write(messages=[message(1)])
        assert len(await store.messages(elsewhere.scope)) == 3
