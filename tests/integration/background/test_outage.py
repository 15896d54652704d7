"""While the store is down, the workers of a server wait and say nothing: the store says it."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from contextengine.messages import user
from contextengine_server.store.errors import StoreUnavailable
from tests.integration.harness import PATIENCE_S, House, ref


async def test_workers_log_nothing_of_an_outage(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()

    def down(what: str):
        async def fail(*args: object, **how: object) -> None:
            asked.add(what)
            raise StoreUnavailable("the database cannot be written now")

        return fail

    store = house.app.store
    await house.client.ingest(ref("s"), user("hello"))
    with capture_logs() as logs:
        monkeypatch.setattr(store, "debtors", down("background"))
        monkeypatch.setattr(store.spawns, "expire", down("children"))
        monkeypatch.setattr(store.index, "advance", down("index"))
        await house.client.ingest(ref("s"), user("there"))
        async with asyncio.timeout(PATIENCE_S):
            while asked != {"background", "children", "index"}:
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.2)
    assert [entry for entry in logs if entry["log_level"] in ("warning", "error")] == []
