"""Debts on disk, so that a proxy that is killed while the service is away loses none: a file each,
which only the proxy's own user may read."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from google.protobuf.message import DecodeError

from contextengine.types import IngestBatchRequest

from .debts import Debt

log = logging.getLogger("contextengine_proxy")

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # Windows has no such locks: two proxies there are given two folders
    flock = None  # type: ignore[assignment]

LOCK = "lock"


class Taken(Exception):
    """Another proxy keeps its debts there."""


class Ledger:
    """What is owed to one service for one agent. One proxy at a time.

    What a file holds survives the process and not a machine that loses its power: nothing waits for
    the disk.
    """

    def __init__(self, folder: Path) -> None:
        """Makes the folder where there is none. Raises Taken, and OSError where it cannot be
        written to."""
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if flock is not None:
                flock(self._lock, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise Taken(f"another proxy keeps its debts in {folder}") from None

    def read(self) -> Iterator[tuple[str, Debt]]:
        """The debts that a proxy before left, by session, the oldest first. One that cannot be read
        is left where it is, and said."""
        files = [file for file in self._folder.iterdir() if file.suffix == ".debt"]
        for file in sorted(files, key=lambda one: one.stat().st_mtime_ns):
            head, _, body = file.read_bytes().partition(b"\n")
            try:
                told = json.loads(head)
                messages = IngestBatchRequest.FromString(body).messages
                yield told["session"], Debt(messages, told["ended"], told["size"], inherited=True)
            except (ValueError, KeyError, TypeError, DecodeError) as error:
                log.warning("%s is no debt of a proxy: %s", file, error)

    def write(self, session: str, debt: Debt) -> None:
        """Keeps it, in place of the session's older one. Raises OSError."""
        told = {"session": session, "ended": debt.ended, "size": debt.size}
        body = IngestBatchRequest(messages=debt.messages).SerializeToString()
        file = self._file(session)
        made = file.with_suffix(".new")
        with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(json.dumps(told).encode() + b"\n" + body)
        made.replace(file)

    def strike(self, session: str) -> None:
        """It is paid, or no longer owed. Raises OSError."""
        self._file(session).unlink(missing_ok=True)

    def close(self) -> None:
        """Leaves the folder to the next one, with what is owed."""
        os.close(self._lock)

    def _file(self, session: str) -> Path:
        return self._folder / f"{blake2b(session.encode(), digest_size=16).hexdigest()}.debt"


def folder_of(state: Path, address: str, agent: str, token: str) -> Path:
    """Where the debts of this agent to this service are, under a folder for all: whoever has
    another token is another tenant."""
    name = "\n".join((address, agent, token)).encode()
    return state / blake2b(name, digest_size=8).hexdigest()
