"""One server for all tests that only need some server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.shell import Shell, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that runs as long as the tests do."""
    with serving(tmp_path_factory.mktemp("server")) as found:
        yield found.address
        assert found.stop() == 0


@pytest.fixture
def shell(server: str, tmp_path: Path) -> Shell:
    """A shell that asks the shared server."""
    return Shell(tmp_path, server, here=True)


@pytest.fixture
def alone(tmp_path: Path) -> Shell:
    """A shell where no server runs."""
    return Shell(tmp_path)
