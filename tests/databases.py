"""Databases as the store makes them. One is made for all tests of a process and copied: making one
waits for the disk longer than most tests take."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest

from contextengine_server.store.sqlite import database
from tests import postgres

ON_SQLITE = pytest.mark.skipif(postgres.INSISTS, reason="it is about a file of SQLite's")
"""Marks a test of what only SQLite has."""


def url(path: Path) -> str:
    """What `store.url` is set to for the database that a path stands for. It is in PostgreSQL where
    that is asked for (`CONTEXTENGINE_POSTGRES=yes`), and else this file."""
    return postgres.place(path) if postgres.INSISTS else str(place(path))


def place(path: Path) -> Path:
    """An empty database of the present schema, where there is no file yet."""
    if not path.exists():
        path.write_bytes(_made())
    return path


@cache
def _made() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "made.db"
        database.prepare(path)
        database.connect_writer(path).close()
        return path.read_bytes()
