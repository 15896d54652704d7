"""What the plugin for OpenClaw says of our tools before it can ask the service."""

from __future__ import annotations

import json
from pathlib import Path

from contextengine_server.recall.model_tools.definitions import TOOLS

PLUGIN = Path(__file__).parents[2] / "integrations" / "openclaw"


def test_the_tools_are_the_engines() -> None:
    told = json.loads((PLUGIN / "src" / "tools.json").read_text(encoding="utf-8"))
    assert told == [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": json.loads(tool.schema),
        }
        for tool in TOOLS.values()
    ]
    manifest = json.loads((PLUGIN / "openclaw.plugin.json").read_text(encoding="utf-8"))
    assert manifest["contracts"]["tools"] == list(TOOLS)
