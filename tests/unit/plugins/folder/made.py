"""Plugins that are written for a test."""

from __future__ import annotations

from pathlib import Path

NATIVE = """
from contextengine_server.engines.legacy import LegacyEngine
from contextengine_server.engines.options import Options
from contextengine_server.engines.registration import Registration
from pydantic import Field

class PlainOptions(Options):
    keep: int = Field(4, ge=1, description="How many.")

class Plain(LegacyEngine):
    id, name = "plain", "Plain"
    def __init__(self, options):
        from contextengine_server.engines.base import BaseEngine
        BaseEngine.__init__(self, options)

ENGINE = Registration("plain", PlainOptions, Plain)
"""


def plugin(
    directory: Path, name: str, source: str = NATIVE, yaml: str = "", *, folder: str = ""
) -> Path:
    """A folder with a plugin.yaml and a package of one module."""
    made = directory / (folder or name)
    made.mkdir(parents=True)
    (made / "plugin.yaml").write_text(yaml or f"name: {name}\nversion: 1.0\n")
    (made / "__init__.py").write_text(source)
    return made
