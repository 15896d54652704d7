"""Databases as the store makes them. One is made for all tests of a process and copied: making one
waits for the disk longer than most tests take."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from contextengine_server.store.sqlite import database


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
