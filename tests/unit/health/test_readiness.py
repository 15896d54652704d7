"""Health follows what a write shows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from contextengine_server.health import readiness
from contextengine_server.health.readiness import ReadinessProbe
from contextengine_server.store.errors import StoreUnavailable
from contextengine_server.store.memory import MemoryStore, Tables


class Told:
    """What health was set to, in order."""

    def __init__(self) -> None:
        self.set: list[tuple[str, bool]] = []

    async def __call__(self, service: str, serving: bool) -> None:
        self.set.append((service, serving))


@pytest.fixture
async def store() -> MemoryStore:
    made = MemoryStore(Tables())
    await made.open()
    return made


async def test_it_is_told_once_that_nothing_can_be_written_and_once_that_it_can_again(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full() -> None:
        raise StoreUnavailable("the disk is full")

    told = Told()
    probe = ReadinessProbe(store, told)
    with capture_logs() as logs:
        await probe.sweep()
        assert told.set == []
        with monkeypatch.context() as patched:
            patched.setattr(store, "probe", full)
            for _ in range(3):
                await probe.sweep()
        assert told.set == [("", False)]
        for _ in range(3):
            await probe.sweep()
    assert told.set == [("", False), ("", True)]
    assert [(entry["event"], entry.get("why")) for entry in logs] == [
        ("not_ready", "the disk is full"),
        ("ready_again", None),
    ]


async def test_a_write_that_does_not_end_has_failed(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*unused: Any) -> None:
        await asyncio.Event().wait()

    told = Told()
    monkeypatch.setattr(readiness, "PATIENCE_S", 0.01)
    monkeypatch.setattr(store, "probe", hang)
    await ReadinessProbe(store, told).sweep()
    assert told.set == [("", False)]


async def test_it_is_not_ready_either_while_something_else_keeps_it(store: MemoryStore) -> None:
    told, why = Told(), "little memory"
    probe = ReadinessProbe(store, told, lambda: why)
    with capture_logs() as logs:
        await probe.sweep()
        why = ""
        await probe.sweep()
    assert told.set == [("", False), ("", True)]
    assert logs[0]["why"] == "little memory"
