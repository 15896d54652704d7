"""Sessions that are compacted, taken back and reshaped in any order, many of them. `make test`
plays three."""

from __future__ import annotations

import pytest

from contextengine import types as t
from tests.integration.assemble.asking import session, shared
from tests.integration.compact.test_any_order import ENGINES
from tests.integration.compact.test_any_order import test_whatever_happens as played
from tests.integration.harness import House

__all__ = ["session", "shared"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("seed", range(2, 60))
async def test_many_sessions(shared: House, session: t.SessionRef, seed: int) -> None:
    await played(shared, session, sorted(ENGINES)[seed % len(ENGINES)], seed)
