"""What tests of models behind endpoints share: worker processes, and a key."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from contextengine_server.summarize import WorkerPool

KEY = "sk-test-0123456789abcdef"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[WorkerPool]:
    """Processes that write summaries."""
    made = WorkerPool()
    yield made
    await made.close()


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable that holds the key."""
    monkeypatch.setenv("TEST_MODEL_KEY", KEY)
