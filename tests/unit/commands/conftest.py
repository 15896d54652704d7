"""Servers without gRPC, for the tests of commands and of sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from tests.unit.commands.house import SMALL, Rows, Server

Serve = Callable[..., Awaitable[Server]]
"""Begins a server over the test's rows; settings are dotted paths."""


@pytest.fixture
def rows() -> Rows:
    """What all servers of a test share."""
    return Rows()


@pytest.fixture
async def serve(rows: Rows) -> AsyncIterator[Serve]:
    """Begins servers over the same rows; they end with the test."""
    async with AsyncExitStack() as stack:

        async def begin(**settings: object) -> Server:
            server = await Server(rows, **{**SMALL, **settings}).open()
            stack.push_async_callback(server.close)
            return server

        yield begin


@pytest.fixture
async def server(serve: Serve) -> Server:
    """One server."""
    return await serve()


@pytest.fixture
async def other(serve: Serve) -> Server:
    """Another one over the same rows."""
    return await serve()
