"""A real server, servers that answer what a test says, and a driver of each language."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import pytest

from tests.acceptance.shell import serving
from tests.clients.drivers import NAMED, Driver, Json
from tests.unit.client.conftest import Server

_names = count()


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server that runs as long as the tests do."""
    with serving(tmp_path_factory.mktemp("clients")) as server:
        yield server.address


@contextmanager
def running(language: str) -> Iterator[Driver]:
    """A driver of a language, ended at the end."""
    driver = Driver(language)
    try:
        yield driver
    finally:
        driver.close()


@pytest.fixture(scope="session", params=NAMED)
def alone(request: pytest.FixtureRequest) -> Iterator[Driver]:
    """A driver of each language in turn, connected to nothing that lasts."""
    with running(request.param) as driver:
        yield driver


@pytest.fixture(scope="session")
def everyone() -> Iterator[dict[str, Driver]]:
    """A driver of each language, all at once, connected to nothing that lasts."""
    with ExitStack() as stack:
        yield {language: stack.enter_context(running(language)) for language in NAMED}


@pytest.fixture
def driver(alone: Driver, address: str) -> Driver:
    """A driver of each language in turn, connected to the real server."""
    alone.connect(address)
    return alone


@pytest.fixture
def scripted() -> Iterator[Server]:
    """A server whose answers the test writes."""
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def spill(tmp_path: Path) -> str:
    """The name of a spill file."""
    return str(tmp_path / "spill")


@pytest.fixture
def session() -> Json:
    """A session that no other test uses."""
    return {"agent_id": "clients", "session_id": f"s{next(_names)}"}
