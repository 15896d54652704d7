"""What plugins for PyClaw import from `pyclaw.agents.context.plugins.dag_compressor`: its layers
and its facts, by the rules of the engine `layered`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from contextengine_server.engines.layered.chat import fact_lines, layer_of_chat

from .pyclaw import DagCompressorPlugin, DagLayerConfig

__all__ = ["DagCompressorPlugin", "DagLayerConfig"]


def _classify_message(message: dict[str, Any]) -> str:
    """The layer of a message in the form of OpenAI's chat API: `critical`, `important`,
    `contextual` or `transient`."""
    return layer_of_chat(message).name.lower()


def _extract_facts(messages: Sequence[dict[str, Any]]) -> str:
    """The facts that messages state, a line each: `category: value`."""
    return "\n".join(fact_lines(messages))
