"""What operators chose."""

from __future__ import annotations

from contextengine_server.store.protocols import Store
from contextengine_server.store.rows import Assignment

from .case import Reopen, StoreCase


class AssignmentCases(StoreCase):
    """What operators chose."""

    async def test_choices_are_kept_changed_and_removed(self, store: Store, reopen: Reopen) -> None:
        tenant = Assignment("acme", "", "", "dag", b'{"a":1}')
        agent = Assignment("acme", "main", "", "legacy")
        session = Assignment("acme", "main", "s1", "", b'{"tail":3}')
        for choice in (session, agent, tenant, Assignment("other", "", "", "legacy")):
            await store.assign(choice)
        assert await store.assignments("acme") == [tenant, agent, session]
        everyone = [tenant, agent, session, Assignment("other", "", "", "legacy")]
        assert await store.assignments(None) == everyone

        await store.assign(Assignment("acme", "main", "", "dag", b"[]"))
        await store.assign(Assignment("acme", "", "", "", b"{}"))
        await store.assign(Assignment("acme", "main", "unknown"))
        expected = [Assignment("acme", "main", "", "dag", b"[]"), session]
        assert await store.assignments("acme") == expected
        await store.assign(Assignment("acme", "main", "s1", "", b""))
        assert await store.assignments("acme") == expected[:1]
        assert await store.assignments("none") == []

        again = await reopen()
        assert await again.assignments("acme") == expected[:1]
        assert await again.assignments("other") == [Assignment("other", "", "", "legacy")]
