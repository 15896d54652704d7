"""`make demo` works: it evicts and summarizes before one's eyes, and shows what the model would
see."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.acceptance.shell import ROOT, Shell


@pytest.mark.slow
def test_the_demo(alone: Shell) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "demo.py"],
        cwd=alone.directory,
        env=alone.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "MIT, Copyright (c) 2024 Sierra" in done.stdout
    assert "MIT, Copyright (c) 2025 Mario Zechner" in done.stdout
    assert "Total: 88 turns, 914 messages, 453 model calls" in done.stdout
    assert {"cut", "compacted"} <= set(re.findall(r"\w+", done.stdout))
    assert re.search(r"summary of 1-\d+, depth \d", done.stdout)
    assert re.search(r"^FITS: .* of 40,000 tokens", done.stdout, re.MULTILINE)
    assert not list(alone.directory.iterdir())
