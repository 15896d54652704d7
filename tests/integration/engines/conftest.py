"""Every test begins with engines that work."""

from __future__ import annotations

import pytest

from tests.integration.engines.broken import Fragile


@pytest.fixture(autouse=True)
def mended() -> None:
    Fragile.how, Fragile.disposed = "", 0
