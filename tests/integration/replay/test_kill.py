"""The kill soak in short: three kills of a loaded server. `make soak` has fifty."""

from __future__ import annotations

from pathlib import Path

from tests.soak.killing import rounds


async def test_every_acknowledged_message_outlives_a_kill(tmp_path: Path) -> None:
    happened = await rounds(tmp_path, 3, seed=7)
    assert happened["messages"] > 3
