"""`doctor --deep`: damage of any kind is seen, beside a server too, and the store is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from contextengine_server.cli.connection import Where
from contextengine_server.cli.deep import deep_checks
from contextengine_server.health.checks import ERROR, OK, Check
from contextengine_server.store.sqlite import SqliteStore
from tests.unit.cli.test_mend import path, run

__all__ = ["path"]

PAGE = 4096


def content(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, data: bytes | bytearray) -> None:
    path.write_bytes(data)


async def found(path: Path) -> dict[str, Check]:
    return {check.name: check for check in await deep_checks(Where(store=str(path)))}


async def test_a_whole_store_is_whole_also_beside_a_server(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    checks = await found(path)
    await store.close()
    assert [check.status for check in checks.values()] == [OK, OK]
    assert "6 messages and 4 summaries" in checks["store.rows"].found


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE messages SET body = x'0801' WHERE session = 'one' AND sequence = 2", "message 2"),
        ("UPDATE messages SET body = x'ff' WHERE session = 'two' AND sequence = 1", "message 1"),
        ("DELETE FROM messages WHERE session = 'two' AND sequence = 2", "message 2"),
        ("UPDATE summaries SET text = 'other' WHERE session = 'one' AND id = 'a'", "summary a"),
    ],
)
async def test_altered_and_missing_rows_are_named(path: Path, change: str, told: str) -> None:
    run(path, change)
    before = content(path)
    checks = await found(path)
    assert (checks["store.database"].status, checks["store.rows"].status) == (OK, ERROR)
    assert told in checks["store.rows"].found
    assert content(path) == before


async def test_one_flipped_bit_of_a_message_is_seen(path: Path) -> None:
    data = bytearray(content(path))
    at = data.index(b"one 2")
    data[at] ^= 1
    write(path, data)
    checks = await found(path)
    assert "message 2 of session one" in checks["store.rows"].found


@pytest.mark.parametrize("filler", [b"\xff", b"\x00", b"\x5a"])
async def test_garbage_pages_are_seen(path: Path, filler: bytes) -> None:
    """Whichever pages of the file they are, but for the first, without which it is no database."""
    whole = content(path)
    pages = len(whole) // PAGE
    for first in range(1, pages, max(1, pages // 6)):
        data = bytearray(whole)
        end = min(first + 4, pages)
        data[first * PAGE : end * PAGE] = filler * ((end - first) * PAGE)
        write(path, data)
        checks = await found(path)
        assert ERROR in {check.status for check in checks.values()}, first
