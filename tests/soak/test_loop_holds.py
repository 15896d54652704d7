"""No call holds the event loop for more than 20 ms of processor time, however long the session:
what `tests/integration/load/test_loop_holds.py` shows of 4,000 messages, of 200,000
(some twenty minutes), and of more rpcs.

Both the first call of a kind, on a session that is not in memory, and the median of several are
judged, with what Python's collector takes in them.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from statistics import median

import pytest

from contextengine import types as t
from tests.integration.harness import House, ref
from tests.integration.harness import house as living
from tests.integration.load.test_loop_holds import (
    ASKS,
    HELD_S,
    TRIES,
    compacted,
    shown_whole,
    written,
)
from tests.loop_holds import holding_watched, serving_alone

MESSAGES = int(os.environ.get("CONTEXTENGINE_HELD_MESSAGES", "200000"))
PATIENCE_S = 3_600


_NUMBERS = itertools.count()


async def forked(house: House, session: t.SessionRef) -> None:
    await shown_whole(house, session)
    child = ref(f"child{next(_NUMBERS)}")
    await house.client.prepare_subagent_spawn(session, child, timeout=PATIENCE_S)


async def exported(house: House, session: t.SessionRef) -> None:
    async for _ in house.client.sessions.export(session, timeout=PATIENCE_S):
        pass


async def sought(house: House, session: t.SessionRef) -> None:
    await house.client.recall.search(session, query="parser stage", timeout=PATIENCE_S)


async def ended(house: House, session: t.SessionRef) -> None:
    await shown_whole(house, session)
    await house.client.end_session(session, timeout=PATIENCE_S)


async def disposed(house: House, session: t.SessionRef) -> None:
    await shown_whole(house, session)
    await house.client.dispose_session(session, timeout=PATIENCE_S)


async def removed(house: House, session: t.SessionRef) -> None:
    await house.client.sessions.delete(session, timeout=PATIENCE_S)


MORE = [
    (forked, "PrepareSubagentSpawn"),
    (exported, "Export"),
    (sought, "Search"),
    (disposed, "DisposeSession"),
]
ONCE = compacted, removed
"""What finds nothing to do the second time."""


@pytest.mark.timeout(2 * PATIENCE_S)
async def test_no_call_on_a_giant_session_holds_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.integration.load.test_loop_holds.PATIENCE_S", PATIENCE_S)
    giant = ref("giant")
    held: dict[str, list[float]] = {}
    async with living(tmp_path) as house:
        with serving_alone():
            await written(house, giant, MESSAGES)
            for ask, rpc in (
                *MORE,
                *ASKS[:-1],
                (ended, "EndSession"),
                ASKS[-1],
                (removed, "Delete"),
            ):
                longest = held[ask.__name__] = []
                for _ in range(1 if ask in ONCE else TRIES):
                    house.forget()
                    with holding_watched(collector=True) as watch:
                        await ask(house, giant)
                    longest.append(watch.longest[rpc])
                    print(f"{ask.__name__}: {1000 * longest[-1]:.1f} ms", flush=True)
    assert not {
        name: times for name, times in held.items() if max(times[0], median(times)) > HELD_S
    }
