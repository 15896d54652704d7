"""Requests for WebSockets, which the proxy does not speak: HTTP 426 answers them.

Codex asks for them first, and goes on with HTTP at once where a provider says so; anything else it
takes for a connection that failed, and tries again for some seconds (codex-rs,
`core/src/client.rs`: `UPGRADE_REQUIRED`).
"""

from __future__ import annotations

import asyncio
import json
from typing import cast

from .dialects.chat import openai_error

_BODY = json.dumps(
    openai_error(426, "contextengine-proxy does not speak WebSockets: use HTTP")
).encode()
_REFUSAL = b"\r\n".join(
    (
        b"HTTP/1.1 426 Upgrade Required",
        b"upgrade: HTTP/1.1",
        b"connection: upgrade, close",
        b"content-type: application/json",
        b"content-length: %d" % len(_BODY),
        b"",
        _BODY,
    )
)


class NoWebSockets(asyncio.Protocol):
    """What uvicorn gives a connection to that asks for WebSockets (its `ws`)."""

    def __init__(self, **_: object) -> None:
        """Takes what uvicorn tells such a protocol: nothing of it is needed."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Refuses it, and ends it."""
        writes = cast(asyncio.WriteTransport, transport)
        writes.write(_REFUSAL)
        writes.close()
