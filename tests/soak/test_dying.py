"""Every point at which a compaction can be killed, the dying of a transaction itself many times.
`make test` takes four of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.background.dying import POINTS
from tests.integration.background.test_dying import (
    test_a_kill_leaves_the_view_before_or_the_view_after as killed,
)


@pytest.mark.parametrize("point", [*POINTS, *["writing"] * 10])
async def test_the_view_is_never_between(tmp_path: Path, point: str) -> None:
    await killed(tmp_path, point)
