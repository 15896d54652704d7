"""A server that clients of every language speak to is restarted again and again, a second after all
found it: no call fails, and nothing is lost or stored twice."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from contextengine import types as t
from contextengine.attempts import RETRY_FOR
from tests.clients.drivers import Driver, Json, Refused
from tests.clients.mortal import Mortal

RESTARTS = int(os.environ.get("CONTEXTENGINE_RESTARTS", "2"))
UP_S = 1.0
PATIENCE_S = 60.0


class Speaker(threading.Thread):
    """One driver that sends message after message until it is told to end."""

    def __init__(self, driver: Driver, ending: threading.Event) -> None:
        super().__init__(name=driver.language)
        self.driver = driver
        self.session: Json = {"agent_id": "clients", "session_id": driver.language}
        self.said = 0
        self.failed: list[str] = []
        self._ending = ending

    def run(self) -> None:
        while not self._ending.is_set():
            message = t.Message(
                id=f"m{self.said}", role=t.ROLE_USER, parts=[t.Part(text=t.TextPart(text="hello"))]
            )
            try:
                self.driver.session(
                    self.session, "ingest", t.IngestRequest(message=message), t.IngestResponse
                )
            except Refused as refused:
                self.failed.append(f"{self.driver.language}: {refused}")
            self.said += 1


@pytest.mark.slow
@pytest.mark.timeout(120 + 30 * RESTARTS)
def test_restarts_under_load_fail_no_call(everyone: dict[str, Driver], tmp_path: Path) -> None:
    server = Mortal(tmp_path)
    ending = threading.Event()
    server.start()
    try:
        patience = max(RETRY_FOR, 3 * start_of(server, everyone))
        for driver in everyone.values():
            driver.connect(server.address, fallback=False, retry_for=patience)
        speakers = [Speaker(driver, ending) for driver in everyone.values()]
        for speaker in speakers:
            speaker.start()
        try:
            for _ in range(RESTARTS):
                all_go_on(speakers)
                time.sleep(UP_S)
                assert server.stop() == 0
                server.start()
            all_go_on(speakers)
        finally:
            ending.set()
            for speaker in speakers:
                speaker.join()
        assert [failure for speaker in speakers for failure in speaker.failed] == []
        for speaker in speakers:
            ids = [t.Message.FromString(m).id for m in speaker.driver.export(speaker.session)]
            assert ids == [f"m{number}" for number in range(speaker.said)], speaker.name
        said = {speaker.name: speaker.said for speaker in speakers}
        print(f"\n{RESTARTS} restarts, 0 failed of {sum(said.values())} calls: {said}")
    finally:
        server.end()


def start_of(server: Mortal, everyone: dict[str, Driver]) -> float:
    """How many seconds a server takes to start here: on a crowded machine longer than clients wait
    where nobody tells them."""
    began = time.monotonic()
    driver = next(iter(everyone.values()))
    driver.connect(server.address, retry_for=PATIENCE_S, timeouts={"Engines.List": PATIENCE_S})
    driver.call("Engines.List", t.EnginesListRequest(), t.EnginesListResponse)
    return time.monotonic() - began


def all_go_on(speakers: list[Speaker]) -> None:
    """Waits until each was answered again."""
    before = [speaker.said for speaker in speakers]
    end = time.monotonic() + PATIENCE_S
    while any(speaker.said == said for speaker, said in zip(speakers, before, strict=True)):
        assert time.monotonic() < end, [speaker.name for speaker in speakers]
        time.sleep(0.05)
