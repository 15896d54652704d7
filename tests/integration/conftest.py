"""A server for each test, on loopback over a database of its own, and clients of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from contextengine import AsyncClient
from contextengine_server.app import App

from .harness import ALICE, TOKENS, Clock, House
from .harness import house as living


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A running service without credentials: `house.restart()`, `house.forget()`, `house.client`,
    `house.stub`."""
    async with living(tmp_path) as house:
        yield house


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still until a test moves it; for `clocked`."""
    return Clock()


@pytest.fixture
async def clocked(tmp_path: Path, clock: Clock) -> AsyncIterator[House]:
    """A running service that lives by `clock`."""
    async with living(tmp_path, clock=clock) as house:
        yield house


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[House]:
    """A running service with the tokens of two tenants; `client` is alice's, `client_of(BOB)` the
    other's."""
    async with living(tmp_path, token=ALICE, **{"auth.tokens": TOKENS}) as house:
        yield house


@pytest.fixture
def app(house: House) -> App:
    """The rooms of the running service."""
    return house.app


@pytest.fixture
def channel(house: House) -> grpc.aio.Channel:
    """A bare channel to it."""
    return house.channel


@pytest.fixture
def client(house: House) -> AsyncClient:
    """An asyncio client of it."""
    return house.client
