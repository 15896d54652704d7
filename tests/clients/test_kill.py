"""A real session is replayed while its server is killed again and again: no turn stops, nothing is lost or stored twice."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextengine import types as t
from contextengine.formats import read_transcript
from tests.acceptance.shell import CODING
from tests.clients.drivers import Driver, Json, Refused
from tests.clients.mortal import Mortal, faults

KILLS = int(os.environ.get("CONTEXTENGINE_KILLS", "1"))
STEPS_A_KILL = 5
DEADLINE_S = 4.0
BUDGET = 60_000
TIMEOUTS = {"ContextEngine.Assemble": DEADLINE_S, "ContextEngine.AfterTurn": DEADLINE_S}


def steps() -> list[list[t.Message]]:
    """The coding session as an agent hands it over: what came before each reply of the model."""
    [transcript] = read_transcript(CODING)
    found: list[list[t.Message]] = [[]]
    for number, message in enumerate(transcript.messages):
        message.id = f"m{number:04}"
        if message.role == t.ROLE_ASSISTANT and found[-1]:
            found.append([])
        found[-1].append(message)
    # The first has no reply before it; from then on a reply comes with its results.
    return found


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Mortal]:
    server = Mortal(tmp_path)
    server.start()
    yield server
    server.end()


@pytest.mark.slow
def test_no_kill_stops_the_agent(alone: Driver, mortal: Mortal, session: Json, spill: str) -> None:
    chance = random.Random(f"{alone.language} {KILLS}")
    alone.connect(mortal.address, timeouts=TIMEOUTS, spill_file=spill)
    known: dict[str, t.Message] = {}
    asked, degraded, longest, revive = "", 0, 0.0, 0
    replayed = steps()[: KILLS * STEPS_A_KILL + 3]
    for number, new in enumerate(replayed):
        known |= {message.id: message for message in new}
        asked = next((m.id for m in reversed(new) if m.role == t.ROLE_USER), asked)
        request = t.AssembleRequest(ingest=new, budget=t.Budget(message_tokens=BUDGET))
        kill = number % STEPS_A_KILL == 2 and number // STEPS_A_KILL < KILLS
        if kill and chance.random() < 0.3:
            mortal.kill()
            kill, revive = False, number + 1
        killer = threading.Timer(chance.uniform(0, 0.008), mortal.kill) if kill else None
        if killer is not None:
            killer.start()
            revive = number + 1
        began = time.monotonic()
        context = alone.assemble(session, request)
        longest = max(longest, time.monotonic() - began)
        if killer is not None:
            killer.join()
        degraded += context.degraded is not None
        found = faults(context.items, known, asked, BUDGET, context.response.estimated_tokens)
        assert not found, f"step {number}, {context.degraded}: {found}"
        if number == revive and number:
            mortal.start()
    finish(alone, session)
    assert alone.ask("pending") == {"pending": 0, "rejected": 0}
    assert Path(spill).read_bytes() == b""
    stored = alone.export(session)
    assert [t.Message.FromString(message).id for message in stored] == list(known)
    assert stored == [message.SerializeToString(deterministic=True) for message in known.values()]
    good = alone.assemble(session, t.AssembleRequest(budget=t.Budget(message_tokens=BUDGET)))
    assert good.degraded is None
    assert degraded >= KILLS * 0.5, "the server was dead too seldom for this to show anything"
    # Not a measure of speed: only that nobody waits for a dead service.
    assert longest < 10 * DEADLINE_S
    print(f"\n{alone.language}: {KILLS} kills, {degraded} degraded turns, longest {longest:.3f} s")


def finish(driver: Driver, session: Json) -> None:
    """Sends what waits as soon as the server is there again."""
    end = time.monotonic() + 60
    while True:
        try:
            driver.ask("flush", session=session)
            return
        except Refused:
            if time.monotonic() > end:
                raise
