"""What is let go before memory runs out, and when all is well again."""

from __future__ import annotations

from pathlib import Path

import pytest

from contextengine_server.health import memory
from contextengine_server.health.memory import LEAST_CACHE, MemoryGuard
from contextengine_server.telemetry.metrics import Metrics

LIMIT = 1_000 << 20


class Cache:
    """Holds bytes up to a capacity."""

    def __init__(self, size: int) -> None:
        self.bytes = self.capacity = size

    def shrink(self) -> None:
        self.bytes = min(self.bytes, self.capacity)


class Process:
    """Takes what a test says."""

    def __init__(self, cache: int = 256 << 20) -> None:
        self.taken, self.metrics = 0, Metrics()
        self.cache = Cache(cache)
        self.guard = MemoryGuard(LIMIT, self.metrics, lambda: self.taken)
        self.guard.watch([self.cache])

    async def takes(self, taken: int) -> None:
        self.taken = taken
        await self.guard.sweep()


async def test_above_the_limit_caches_shrink_until_less_is_taken() -> None:
    process = Process()
    await process.takes(LIMIT)
    assert (process.guard.pressed, process.cache.bytes) == (False, 256 << 20)
    sizes = []
    for _ in range(8):
        await process.takes(LIMIT + 1)
        sizes.append(process.cache.bytes >> 20)
    assert sizes[:4] == [128, 64, 32, 16]
    assert process.cache.bytes == LEAST_CACHE
    assert process.guard.pressed
    assert process.guard.why_not_ready()


async def test_all_is_well_again_only_well_below_the_limit() -> None:
    process = Process()
    await process.takes(LIMIT + 1)
    await process.takes(LIMIT - 1)
    assert process.guard.pressed
    await process.takes(LIMIT // 2)
    assert process.guard.why_not_ready() == ""
    assert process.cache.capacity == 256 << 20
    found = process.metrics.snapshot()
    assert found["contextengine.process.sheds"] == 1
    assert found["contextengine.process.shedding"] == 0
    assert found["contextengine.process.memory_limit"] == LIMIT
    assert found["contextengine.process.resident"] == LIMIT // 2


@pytest.mark.parametrize("configured", [0, 1 << 10, LEAST_CACHE - 1, LEAST_CACHE, LEAST_CACHE + 1])
@pytest.mark.parametrize("filled", [0, 1 << 10, 1 << 40])
async def test_no_cache_is_ever_larger_than_configured(configured: int, filled: int) -> None:
    process = Process(configured)
    process.cache.bytes = filled
    for taken in (0, LIMIT // 2, LIMIT + 1, LIMIT + 1, LIMIT - 1, LIMIT + 1, 0):
        await process.takes(taken)
        assert min(configured, LEAST_CACHE) <= process.cache.capacity <= configured
    assert process.cache.capacity == configured


async def test_without_pressure_a_capacity_is_left_alone() -> None:
    """Also one that something else changed meanwhile."""
    process = Process()
    process.cache.capacity = 1 << 10
    for taken in (0, LIMIT // 2, LIMIT):
        await process.takes(taken)
        assert process.cache.capacity == 1 << 10


async def test_without_a_limit_nothing_is_let_go() -> None:
    guard = MemoryGuard(0, Metrics(), lambda: 1 << 50)
    await guard.sweep()
    assert not guard.pressed


@pytest.mark.parametrize(
    ("groups", "files", "found"),
    [
        ("0::/app/one", {"app/one/memory.max": "max", "app/memory.max": "5000"}, [5000]),
        ("0::/app", {"app/memory.max": "7000"}, [7000]),
        ("4:memory:/app", {"memory/app/memory.limit_in_bytes": "3000"}, [3000]),
        ("4:cpu,cpuacct:/app", {"memory/app/memory.limit_in_bytes": "3000"}, []),
    ],
)
def test_the_limits_of_control_groups_are_known(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    groups: str,
    files: dict[str, str],
    found: list[int],
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "cgroup").write_text(groups + "\n")
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    assert memory.limits_of_groups(tmp_path / "cgroup") == found


def test_a_process_knows_what_it_takes_and_may_take() -> None:
    assert 10 << 20 < memory.resident() < memory.most()
