"""A service of a test's own, and long sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from contextengine import types as t
from tests.integration.assemble.asking import (
    store,
    talk,
)
from tests.integration.harness import House
from tests.integration.harness import house as living


@pytest_asyncio.fixture(loop_scope="module")
async def alone(tmp_path: Path) -> AsyncIterator[House]:
    """A service of the test's own."""
    async with living(tmp_path) as house:
        yield house


async def long(house: House, session: t.SessionRef, turns: int = 20) -> int:
    """A long session; its tokens."""
    await store(house, session, talk(turns, 100))
    return int((await house.client.get_status(session)).message_tokens)
