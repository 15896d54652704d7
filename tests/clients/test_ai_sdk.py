"""The package for the AI SDK of Vercel with the SDK itself, against a real server; it judges what
the SDK's mock of a model was sent and what is stored."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.clients.drivers import NAMED, ROOT
from tests.clients.node import ran

PACKAGE = ROOT / "integrations" / "ai-sdk"
NEWER = ROOT / "tests" / "hosts" / "node7" / "node_modules"
"""Version 7 of the SDK, and the Node that it needs (`make test-ai-sdk`)."""

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


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """The package beside version 7."""
    if not (NEWER / "node" / "bin" / "node").exists():
        pytest.skip("`make test-ai-sdk` has not run")
    shutil.copytree(PACKAGE / "dist", tmp_path / "dist")
    shutil.copy(PACKAGE / "package.json", tmp_path)
    modules = tmp_path / "node_modules"
    (modules / "@contextengine").mkdir(parents=True)
    (modules / "@contextengine" / "client").symlink_to(ROOT / "clients" / "typescript")
    (modules / "@bufbuild").symlink_to(ROOT / "clients/typescript/node_modules/@bufbuild")
    (modules / "ai").symlink_to(NEWER / "ai")
    return tmp_path


def test_version_7_of_the_sdk_does_as_well(address: str, newer: Path) -> None:
    node = str(NEWER / "node" / "bin" / "node")
    files = [str(path) for path in (newer / "dist" / "tests").glob("*.test.js")]
    assert files
    ran(newer, address, "--test", *files, node=node)
    said = ran(newer, address, "dist/examples/offline.js", node=node).splitlines()
    assert said[-1].endswith(" of 106 messages")


def test_the_example_ends_with_summaries(address: str) -> None:
    said = ran(PACKAGE, address, "dist/examples/offline.js").splitlines()
    assert "trust=untrusted" in said[2]
    assert said[-1].endswith(" of 106 messages")
