"""The plugin for OpenClaw, called as OpenClaw calls it, against a real server; OpenClaw itself is
driven by tests/hosts/test_openclaw.py."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.clients.drivers import NAMED

PLUGIN = Path(__file__).parents[2] / "integrations" / "openclaw"

pytestmark = pytest.mark.skipif("typescript" not in NAMED, reason="TypeScript is not built here")


def ran(address: str, *words: str) -> str:
    done = subprocess.run(
        ["node", *words],
        cwd=PLUGIN,
        env={**os.environ, "CONTEXTENGINE_ADDRESS": address},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_does_what_openclaw_relies_on(address: str) -> None:
    files = [str(path) for path in (PLUGIN / "dist" / "tests").glob("*.test.js")]
    assert files
    ran(address, "--test", *files)


def test_the_example_ends_with_summaries(address: str) -> None:
    said = ran(address, "dist/examples/offline.js").splitlines()
    assert "trust=untrusted" in said[0]
    assert "of 78 messages" in said[-1]
