"""Tools by what they are to the pipeline; every layer asks here, so that no two know another set of
names."""

from __future__ import annotations

from typing import get_args

from contextengine_server.context.tools.names import ADDRESSES, EDITORS, FILES, SEARCHES, plain_name

from ..contract import ToolName

_RECALL = frozenset(map(plain_name, get_args(ToolName)))
"""Bring back what was left out: that of Comis, and ours."""
_MEMORY = frozenset(("memorysearch", "memoryget", "memorystore"))
_PICTURES = frozenset(("imageanalyze", "analyzeimage"))
_WEB, _READS = ADDRESSES | SEARCHES, FILES - EDITORS
_MCP = ("mcp__", "mcp:")
"""How the names of tools of servers of MCP begin."""


def is_mcp(tool: str) -> bool:
    """True for a tool of a server of MCP."""
    return tool.lower().startswith(_MCP)


def is_web(tool: str) -> bool:
    """True for a tool that searches the web or fetches an address, and for all of MCP."""
    return is_mcp(tool) or plain_name(tool) in _WEB


def is_picture(tool: str) -> bool:
    """True for a tool that says what a picture shows."""
    return plain_name(tool) in _PICTURES


def is_file_read(tool: str) -> bool:
    """True for a tool that reads a file and does nothing else."""
    return plain_name(tool) in _READS


def is_recall(tool: str) -> bool:
    """True for a tool that brings back what was left out, a server of MCP's too."""
    return plain_name(tool) in _RECALL


def is_protected(tool: str) -> bool:
    """True for a tool whose results are never masked and count for no window, as in Comis: what
    brings back, what memory says, and files; none of MCP but what brings back."""
    if is_recall(tool):
        return True
    return not is_mcp(tool) and (is_file_read(tool) or plain_name(tool) in _MEMORY)
