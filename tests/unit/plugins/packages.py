"""Packages that are installed for a test: a module and the metadata that pip would write."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

_modules = itertools.count()


def install(
    patch: pytest.MonkeyPatch, where: Path, source: str, entries: str, name: str = "third-party"
) -> str:
    """Installs a package of one module; the name of the module, for which `entries` says `{}`."""
    module = f"third_party_{next(_modules)}"
    (where / f"{module}.py").write_text(source)
    metadata = where / f"{name.replace('-', '_')}-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (metadata / "entry_points.txt").write_text(entries.replace("{}", module))
    patch.syspath_prepend(where)
    return module
