"""Tools by what they are to the pipeline. Names are compared without case; every layer asks here,
so that no two know another set of names."""

from __future__ import annotations

from typing import get_args

from ..contract import ToolName

FILES = frozenset(("read", "file_read", "read_file", "view"))
"""Read a file. Comis's documents call its tool `file_read`, its code `read`."""
RECALL = frozenset[str](get_args(ToolName))
"""Bring back what was left out: that of Comis, and ours."""
MEMORY = frozenset(("memory_search", "memory_get", "memory_store"))
WEB = frozenset(("web_search", "brave_search", "web_fetch", "link_reader", "fetch_url"))
PICTURES = frozenset(("image_analyze", "analyze_image"))
"""Say what a picture shows."""
MCP = ("mcp__", "mcp:")
"""How the names of tools of servers of MCP begin."""


def is_mcp(tool: str) -> bool:
    """True for a tool of a server of MCP."""
    return tool.lower().startswith(MCP)


def is_picture(tool: str) -> bool:
    """True for a tool that says what a picture shows."""
    return tool.lower() in PICTURES


def is_file_read(tool: str) -> bool:
    """True for a tool that reads a file."""
    return tool.lower() in FILES


def is_recall(tool: str) -> bool:
    """True for a tool that brings back what was left out, a server of MCP's too."""
    return tool.lower().rsplit("__", 1)[-1] in RECALL
