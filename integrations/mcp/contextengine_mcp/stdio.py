"""The server on standard input and output."""

from __future__ import annotations

import re
import sys
from io import TextIOWrapper

import anyio
from mcp.server import NotificationOptions
from mcp.server.stdio import stdio_server

from contextengine import AsyncClient

from .away import Away
from .names import Names
from .server import server

_ESCAPED = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F]..)|.)"
)
"""What JSON escapes: a pair of surrogates, half a pair (the group), anything else."""


class Lines(TextIOWrapper):
    """Standard input, where half a pair of surrogates is read as what stands for no character.
    JavaScript writes so what a model broke off amid one; it is no text, and the library answers no
    line that it cannot read."""

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        """The next line."""
        line = super().readline(size)
        return _ESCAPED.sub(_whole, line) if r"\ud" in line or r"\uD" in line else line


def _whole(escaped: re.Match[str]) -> str:
    return r"\ufffd" if escaped[1] else escaped[0]


async def serve(client: AsyncClient, names: Names, away: Away) -> None:
    """Serves until the host closes one of the streams."""
    serving = server(client, names, away)
    options = serving.create_initialization_options(NotificationOptions(tools_changed=True))
    heard = Lines(sys.stdin.buffer, encoding="utf-8", errors="replace")
    try:
        async with stdio_server(stdin=anyio.wrap_file(heard)) as (read, write):
            await serving.run(read, write, options)
    except* BrokenPipeError:
        """Nobody reads any more."""
