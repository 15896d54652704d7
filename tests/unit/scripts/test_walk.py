"""The walk of the two hot calls stays short: what `scripts/walk.py` counts is held to limits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
LIMITS = {
    "Ingest": {"functions": 68, "modules": 17, "moves": 21},
    "Assemble": {"functions": 62, "modules": 24, "moves": 37},
}
"""Raise none of them: look at the way with `scripts/walk.py --list` and see what was added."""


def test_the_hot_calls_run_through_no_more_than_their_limits() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/walk.py", "--json"],
        cwd=ROOT, capture_output=True, text=True, timeout=150, check=True,
    )  # fmt: skip
    walks = json.loads(done.stdout)
    assert walks.keys() == LIMITS.keys()
    assert all(walk["rooms"] >= 5 for walk in walks.values())  # it was seen at all
    over = {
        (name, what): walks[name][what]
        for name, limits in LIMITS.items()
        for what, limit in limits.items()
        if walks[name][what] > limit
    }
    assert not over
