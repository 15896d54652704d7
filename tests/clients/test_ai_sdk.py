"""The package for the AI SDK of Vercel with the SDK itself, against a real server; it judges what
the SDK's mock of a model was sent and what is stored."""

from __future__ import annotations

import pytest

from tests.clients.drivers import NAMED, ROOT
from tests.clients.node import ran

PACKAGE = ROOT / "integrations" / "ai-sdk"

pytestmark = [
    pytest.mark.skipif("typescript" not in NAMED, reason="TypeScript is not built here"),
    pytest.mark.skipif(
        not (PACKAGE / "node_modules" / "ai").exists(), reason="`make ai-sdk` has not run"
    ),
]


def test_agents_of_the_sdk_keep_what_is_said_and_are_sent_what_fits(address: str) -> None:
    files = [str(path) for path in (PACKAGE / "dist" / "tests").glob("*.test.js")]
    assert files
    ran(PACKAGE, address, "--test", *files)


def test_the_example_ends_with_summaries(address: str) -> None:
    said = ran(PACKAGE, address, "dist/examples/offline.js").splitlines()
    assert "trust=untrusted" in said[2]
    assert said[-1].endswith(" of 106 messages")
