"""Which body gives way to calls that wait to be read, on a loop that keeps up and on one that does
not."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from contextengine_server.api.pipeline.bytes_in_flight import (
    PATIENCE_S,
    SLOW_S,
    ByteLimits,
    BytesInFlight,
)
from contextengine_server.errors import DomainError
from contextengine_server.telemetry.metrics import Metrics


@dataclass(eq=False)
class FakeCall:
    """A call of the current task."""

    task: Any = field(default_factory=asyncio.current_task)
    stopped: DomainError | None = None

    @property
    def caller(self) -> Any:
        return self

    tenant = "any"

    def stop(self, error: DomainError) -> None:
        self.stopped = error


async def test_time_in_which_the_loop_is_behind_is_not_the_clients() -> None:
    in_flight: Any = BytesInFlight(ByteLimits(4, 4, 1), Metrics())
    loop, calls = asyncio.get_running_loop(), [FakeCall() for _ in range(in_flight.places)]
    for call in calls:
        in_flight.reading[call] = loop.time()
    waiting = asyncio.create_task(in_flight.turn(FakeCall()))
    began = loop.time()
    while loop.time() < began + 3 * SLOW_S:  # looks come late, and never as late as a call waits
        time.sleep(1.5 * PATIENCE_S)  # noqa: ASYNC251 - holds the loop
        for _ in range(3):
            await asyncio.sleep(0)
    assert not any(call.stopped for call in calls)
    async with asyncio.timeout(30):
        while not any(call.stopped for call in calls):
            await asyncio.sleep(0.01)
    waiting.cancel()
