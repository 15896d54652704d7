"""Running what is written for Node against a real server."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def ran(folder: Path, address: str, *words: str, node: str = "node") -> str:
    """What node prints, with the service at `address`."""
    done = subprocess.run(
        [node, *words],
        cwd=folder,
        env={**os.environ, "CONTEXTENGINE_ADDRESS": address},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
