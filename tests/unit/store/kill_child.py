"""A process that writes until it is killed: `python -m tests.unit.store.kill_child DATABASE SEED
DURABILITY`.

Eight sessions write at once. Every acknowledged commit is one line on standard output: session,
revision, first and last sequence. What a message holds follows from the seed, its session and its
sequence, so the parent can tell it byte for byte.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import sys

from contextengine_server.context.scope import Scope
from contextengine_server.store.rows import Commit, MessageRow, SessionHead
from contextengine_server.store.sqlite import SqliteStore

SESSIONS = 8


def scope(number: int) -> Scope:
    return Scope("acme", "main", f"s{number}")


def body(seed: int, number: int, sequence: int) -> bytes:
    """From nothing to some 20 KB, so that rows share pages and span them."""
    source = random.Random(f"{seed} {number} {sequence}")
    return source.randbytes(int(source.expovariate(1 / 1500)))


def row(seed: int, number: int, sequence: int, revision: int) -> MessageRow:
    text = body(seed, number, sequence)
    return MessageRow(
        sequence,
        role=1,
        tokens=len(text),
        content_hash=hashlib.sha256(text).digest(),
        body=text,
        created_revision=revision,
        host_id=f"h{sequence}",
        step=sequence,
        start=sequence,
    )


async def write(store: SqliteStore, seed: int, number: int) -> None:
    lengths = random.Random(f"{seed} {number}")
    sequence = revision = 0
    while True:
        first, sequence, revision = sequence + 1, sequence + lengths.randint(1, 4), revision + 1
        rows = [row(seed, number, each, revision) for each in range(first, sequence + 1)]
        head = SessionHead(scope(number), f"life {seed}", revision, sequence)
        await store.commit(Commit(head, revision - 1, messages=rows))
        os.write(1, f"{number} {revision} {first} {sequence}\n".encode())


async def main() -> None:
    path, seed = sys.argv[1], int(sys.argv[2])
    store = SqliteStore(path, forced=sys.argv[3] == "full")
    await store.open()
    os.write(1, b"open\n")
    await asyncio.gather(*(write(store, seed, number) for number in range(SESSIONS)))


if __name__ == "__main__":
    asyncio.run(main())
