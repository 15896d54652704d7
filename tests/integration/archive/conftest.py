"""A service with an archive in a bucket of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.integration.harness import Clock, House
from tests.integration.harness import house as living
from tests.object_server import Bucket, ObjectServer, object_server

from .colds import DAY_S


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    """What speaks S3."""
    with object_server(monkeypatch) as server:
        yield server


@pytest.fixture
def bucket(objects: ObjectServer) -> Bucket:
    """A bucket of the test's own."""
    return objects.bucket(f"test-{uuid4().hex[:12]}")


@pytest.fixture
async def cold(tmp_path: Path, bucket: Bucket, clock: Clock) -> AsyncIterator[House]:
    """A service whose sessions go into the archive after a day, when a test says so."""
    rules = [{"after": f"{DAY_S}s"}]
    settings = {**bucket.settings, "archive.rules": rules, "archive.interval": "off"}
    async with living(tmp_path, clock=clock, **settings) as house:
        yield house
