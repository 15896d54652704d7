"""The plugin for OpenClaw, called as OpenClaw calls it, against a real server; OpenClaw itself is
driven by tests/hosts/test_openclaw.py."""

from __future__ import annotations

import pytest

from tests.clients.drivers import NAMED, ROOT
from tests.clients.node import ran

PLUGIN = ROOT / "integrations" / "openclaw"

pytestmark = pytest.mark.skipif("typescript" not in NAMED, reason="TypeScript is not built here")


def test_it_does_what_openclaw_relies_on(address: str) -> None:
    files = [str(path) for path in (PLUGIN / "dist" / "tests").glob("*.test.js")]
    assert files
    ran(PLUGIN, address, "--test", *files)


def test_the_example_ends_with_summaries(address: str) -> None:
    said = ran(PLUGIN, address, "dist/examples/offline.js").splitlines()
    assert "trust=untrusted" in said[0]
    assert "of 78 messages" in said[-1]
