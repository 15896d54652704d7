"""A real session is replayed while its server is killed again and again: no turn stops, nothing is
lost or stored twice."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from contextengine import types as t
from contextengine.formats import read_transcript
from tests.acceptance.shell import CODING
from tests.clients.conftest import running
from tests.clients.drivers import NAMED, Driver, Json, Refused
from tests.clients.mortal import Mortal, faults

KILLS = int(os.environ.get("CONTEXTENGINE_KILLS", "1"))
STEPS_A_KILL = 5
AT_ONCE = 3
DEADLINE_S = 4.0
AWAY_S = 1.5
"""For how long a dead server is waited for: less than its next start takes, so that turns go on
without it."""
BUDGET = 60_000
# The first tests wait for what runs side by side. On a crowded machine a server takes ten seconds
# to start, and the turns beside it as long again.
LIMIT_S = 120 + 30 * KILLS
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


@pytest.fixture(scope="module")
def replays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[str]]]:
    """What the replay of each language found. A few at once: most of their time is waiting for dead
    servers."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {name: pool.submit(replay, name, tmp_path_factory.mktemp(name)) for name in NAMED}


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("language", NAMED)
def test_no_kill_stops_the_agent(language: str, replays: dict[str, Future[str]]) -> None:
    print(f"\n{language}: {replays[language].result()}")


def replay(language: str, directory: Path) -> str:
    """Replays the session beside a server that is killed, and answers the figures. Raises
    AssertionError."""
    server = Mortal(directory)
    server.start()
    try:
        with running(language) as driver:
            return killed(driver, server, directory / "spill")
    finally:
        server.end()


def killed(driver: Driver, server: Mortal, spill: Path) -> str:
    """Replays the session and kills the server at random points of it."""
    chance = random.Random(f"{driver.language} {KILLS}")
    driver.connect(server.address, timeouts=TIMEOUTS, retry_for=AWAY_S, spill_file=str(spill))
    session = {"agent_id": "clients", "session_id": "killed"}
    known: dict[str, t.Message] = {}
    asked, degraded, longest, usual, revive = "", 0, 0.0, 0.0, 0
    replayed = steps()[: KILLS * STEPS_A_KILL + 3]
    for number, new in enumerate(replayed):
        known |= {message.id: message for message in new}
        asked = next((m.id for m in reversed(new) if m.role == t.ROLE_USER), asked)
        request = t.AssembleRequest(ingest=new, budget=t.Budget(message_tokens=BUDGET))
        kill = number % STEPS_A_KILL == 2 and number // STEPS_A_KILL < KILLS
        if number % STEPS_A_KILL == 1:
            # Only who is there can be killed: from here to the next kill the server answers.
            finish(driver, session)
        if kill and chance.random() < 0.3:
            server.kill()
            kill, revive = False, number + 1
        killer = threading.Timer(chance.uniform(0, 1.5 * usual), server.kill) if kill else None
        if killer is not None:
            killer.start()
            revive = number + 1
        began = time.monotonic()
        context = driver.assemble(session, request)
        took = time.monotonic() - began
        longest = max(longest, took)
        usual = usual if context.degraded else took
        if killer is not None:
            killer.join()
        degraded += context.degraded is not None
        found = faults(context.items, known, asked, BUDGET, context.response.estimated_tokens)
        assert not found, f"step {number}, {context.degraded}: {found}"
        if number == revive and number:
            server.start()
    finish(driver, session)
    assert driver.ask("pending") == {"pending": 0, "rejected": 0}
    assert spill.read_bytes() == b""
    stored = driver.export(session)
    assert [t.Message.FromString(message).id for message in stored] == list(known)
    assert stored == [message.SerializeToString(deterministic=True) for message in known.values()]
    good = driver.assemble(session, t.AssembleRequest(budget=t.Budget(message_tokens=BUDGET)))
    assert good.degraded is None
    assert degraded >= KILLS * 0.5, "the server was dead too seldom for this to show anything"
    assert len(replayed) - degraded >= KILLS * 0.5, (
        "the server was there too seldom for this to show anything"
    )
    # Not a measure of speed: only that nobody waits for a dead service.
    assert longest < 10 * DEADLINE_S
    return (
        f"{KILLS} kills, {degraded} degraded turns, longest {longest:.3f} s of {DEADLINE_S:.0f} s"
        " allowed"
    )


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
            time.sleep(0.2)
