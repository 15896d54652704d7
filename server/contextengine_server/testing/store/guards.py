"""What the guards of a tenant's summarizers remember: changed one after the other, and there after
a restart."""

from __future__ import annotations

import asyncio

import pytest

from contextengine_server.store.protocols import Store

from .case import Reopen, StoreCase


class GuardCases(StoreCase):
    """What guards of summarizers remember: changed one after the other, and there after a
    restart."""

    async def test_a_state_is_changed_and_the_change_answers(self, store: Store) -> None:
        assert await store.guards.state("acme") == b""
        assert await store.guards.change("acme", lambda state: (b"one", state)) == b""
        assert await store.guards.change("acme", lambda state: (state + b" two", len(state))) == 3
        assert await store.guards.state("acme") == b"one two"
        # What changes nothing answers all the same.
        assert await store.guards.change("acme", lambda state: (state, state)) == b"one two"

    async def test_no_two_changes_overlap(self, store: Store) -> None:
        def count(state: bytes) -> tuple[bytes, int]:
            after = int(state or b"0") + 1
            return str(after).encode(), after

        answers = await asyncio.gather(*(store.guards.change("acme", count) for _ in range(200)))
        assert sorted(answers) == list(range(1, 201))

    async def test_tenants_have_states_of_their_own(self, store: Store) -> None:
        await store.guards.change("acme", lambda state: (b"acme's", None))
        assert await store.guards.change("other", lambda state: (b"other's", state)) == b""
        assert await store.guards.state("acme") == b"acme's"
        await store.guards.change("", lambda state: (b"the server's", None))
        assert await store.guards.state("") == b"the server's"

    async def test_a_step_that_raises_changes_nothing_and_nobody_else(self, store: Store) -> None:
        await store.guards.change("acme", lambda state: (b"kept", None))

        def fails(state: bytes) -> tuple[bytes, None]:
            raise ValueError("no")

        async def failing() -> None:
            with pytest.raises(ValueError, match="no"):
                await store.guards.change("acme", fails)

        await asyncio.gather(
            failing(), store.guards.change("other", lambda state: (b"written", None)), failing()
        )
        assert await store.guards.state("acme") == b"kept"
        assert await store.guards.state("other") == b"written"

    async def test_a_state_outlives_the_process(self, store: Store, reopen: Reopen) -> None:
        await store.guards.change("acme", lambda state: (b"\x00\xff", None))
        again = await reopen()
        assert await again.guards.state("acme") == b"\x00\xff"
