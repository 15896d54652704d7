"""The real Codex, and the mock that it talks to. Without the binary these tests are skipped: `make
test-codex` installs it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.codex.app_server import AppServer, binary
from tests.codex.mock import ResponsesMock


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if binary() is None:
        absent = pytest.mark.skip(reason="the codex binary is absent: make test-codex installs it")
        for item in items:
            if item.path.is_relative_to(Path(__file__).parent):
                item.add_marker(absent)


@pytest.fixture
def mock() -> Iterator[ResponsesMock]:
    """A Responses API on loopback."""
    made = ResponsesMock()
    yield made
    made.close()


@pytest.fixture
async def codex(tmp_path: Path, mock: ResponsesMock) -> AsyncIterator[AppServer]:
    """A running `codex app-server` that knows no other provider."""
    server = await AppServer.start(tmp_path / "codex", mock.url)
    yield server
    await server.stop()
