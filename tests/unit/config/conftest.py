"""What tests of settings share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
