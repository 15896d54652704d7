"""Kill soak: a loaded server is killed with SIGKILL at random points and restarted; every
acknowledged message is there once, in order, byte for byte. CONTEXTENGINE_KILL_ROUNDS says how
often (50)."""

from __future__ import annotations

import os
from pathlib import Path

from .killing import rounds


async def test_every_acknowledged_message_outlives_many_kills(tmp_path: Path) -> None:
    count = int(os.environ.get("CONTEXTENGINE_KILL_ROUNDS", "50"))
    happened = await rounds(tmp_path, count, seed=20_251_121)
    print(
        f"\nkilled {happened['kills']} times; {happened['messages']} messages acknowledged, none"
        " lost, none twice"
    )
    assert happened["messages"] > count
