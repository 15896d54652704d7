"""The guards' states over a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from contextengine_server.runtime.guard_states import StoredStates
from contextengine_server.store.sqlite import SqliteStore
from contextengine_server.summarize import Breaker, GuardState, Spend

SPENT = GuardState(Breaker(failures=3), Spend(((1_700_000_000_000, 42),)))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(tmp_path / "store.db")
    await made.open()
    yield made
    await made.close()


async def test_what_is_put_there_comes_back(store: SqliteStore) -> None:
    states = StoredStates(store.guards)
    assert await states.state("acme") == GuardState()
    assert await states.change("acme", lambda state: (SPENT, state)) == GuardState()
    assert await StoredStates(store.guards).state("acme") == SPENT
    failed = await states.change(
        "acme", lambda state: (replace(state, breaker=Breaker()), state.breaker.failures)
    )
    assert failed == 3
    assert (await states.state("acme")).spend == SPENT.spend
    assert await states.state("other") == GuardState()


@pytest.mark.parametrize("stored", [b"{", b"\xff", b"[]", b'{"breaker":{},"spend":[[1]]}'])
async def test_a_state_that_cannot_be_read_begins_anew(store: SqliteStore, stored: bytes) -> None:
    await store.guards.change("acme", lambda _: (stored, None))
    states = StoredStates(store.guards)
    assert await states.state("acme") == GuardState()
    await states.change("acme", lambda state: (SPENT, None))
    assert await states.state("acme") == SPENT


async def test_a_step_that_raises_changes_nothing(store: SqliteStore) -> None:
    states = StoredStates(store.guards)
    await states.change("acme", lambda _: (SPENT, None))

    def fails(state: GuardState) -> tuple[GuardState, None]:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        await states.change("acme", fails)
    assert await states.state("acme") == SPENT
