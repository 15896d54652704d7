"""A process is killed while it writes. Every row that it acknowledged is there once, in order, byte
for byte.

CONTEXTENGINE_KILL_ROUNDS says how often (3).
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from contextengine_server.store.sqlite import SqliteStore, database

from . import kill_child

ROUNDS = int(os.environ.get("CONTEXTENGINE_KILL_ROUNDS", "3"))
ROOT = Path(__file__).parents[3]


def run_and_kill(
    path: Path, seed: int, seconds: float, durability: str
) -> list[tuple[int, int, int, int]]:
    """(session, revision, first, last) of every commit that was acknowledged."""
    command = [sys.executable, "-m", "tests.unit.store.kill_child", str(path), str(seed)]
    command.append(durability)
    output = path.with_suffix(".out")
    with output.open("wb") as sink, subprocess.Popen(command, stdout=sink, cwd=ROOT) as child:
        try:
            give_up = time.monotonic() + 60
            while output.stat().st_size == 0:  # until it is open
                assert child.poll() is None
                assert time.monotonic() < give_up
                time.sleep(0.005)
            time.sleep(seconds)
        finally:
            child.kill()
    lines = output.read_text().splitlines()
    assert lines[0] == "open"
    return [(int(a), int(b), int(c), int(d)) for a, b, c, d in (line.split() for line in lines[1:])]


@pytest.mark.parametrize("durability", ["full", "normal"])
@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_acknowledged_rows_survive_a_kill(tmp_path: Path, seed: int, durability: str) -> None:
    path = tmp_path / "store.db"
    acknowledged = run_and_kill(path, seed, random.uniform(0.05, 1.2), durability)
    store = SqliteStore(path)
    await store.open()
    for number in range(kill_child.SESSIONS):
        mine = [commit[1:] for commit in acknowledged if commit[0] == number]
        head = await store.head(kill_child.scope(number))
        if head is None:
            assert mine == []
            continue
        # At most the commit that was under way is there besides: written, and not yet acknowledged.
        revision, last = (mine[-1][0], mine[-1][2]) if mine else (0, 0)
        assert head.revision in (revision, revision + 1)
        assert head.last_sequence >= last
        created = {sequence: rev for rev, first, to in mine for sequence in range(first, to + 1)}
        rows = await store.messages(kill_child.scope(number), retired=True)
        assert rows == [
            kill_child.row(seed, number, sequence, created.get(sequence, revision + 1))
            for sequence in range(1, head.last_sequence + 1)
        ]
    await store.close()
    with database.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
