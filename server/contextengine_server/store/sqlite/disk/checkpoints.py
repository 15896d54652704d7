"""Checkpoints beside the commits: what stands in the log is copied into the file by a thread and a
connection of their own.

A checkpoint within a commit holds up everyone who waits for that commit: with 4,000 pages at a time
it made the slowest hundredth of them 14 to 24 ms late, 5 to 11 done here. The commits' own comes
only where this one cannot keep up or does not work, and finds little left to copy.
"""

from __future__ import annotations

import sqlite3
import threading

import structlog

log = structlog.get_logger("contextengine.store")


class Checkpoints:
    """One whenever `wanted` is set. Owns this connection from now on."""

    def __init__(self, db: sqlite3.Connection, wanted: threading.Event) -> None:
        self._db, self._wanted = db, wanted
        self._stopped = False
        self._failing = False
        """Whether the last one met a failure."""
        self._thread = threading.Thread(target=self._run, name="store-checkpoints", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread after what it is at, and closes the connection."""
        self._stopped = True
        self._wanted.set()
        self._thread.join()

    def _run(self) -> None:
        while self._wanted.wait() and not self._stopped:
            self._wanted.clear()
            self._fold()
        self._db.close()

    def _fold(self) -> None:
        try:
            # Passive: it waits for nobody, and nobody for it. What readers still need stays.
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error as error:
            if not self._failing:  # once: the next ones meet it too
                self._failing = True
                log.warning("store_log_is_not_folded", why=str(error))
        else:
            self._failing = False
