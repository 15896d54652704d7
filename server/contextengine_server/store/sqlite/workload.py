"""The work that waits in the SQLite store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from contextengine_server.store.rows import Workload

from .index import Run
from .statements import SQL


class SqliteWorkloads:
    """`Workloads` over the tables. `read` runs work on a reading connection."""

    def __init__(self, read: Run, queued: Callable[[], int]) -> None:
        self._read = read
        self.queued = queued

    async def now(self, now_ms: int) -> Workload:
        """What waits and what runs."""
        return await self._read(_workload, now_ms)


def _workload(db: sqlite3.Connection, now_ms: int) -> Workload:
    waiting, running, held, oldest = db.execute(SQL.workload.debts, {"now": now_ms}).fetchone()
    return Workload(
        debts_waiting=waiting,
        debts_running=running,
        debts_held=held,
        oldest_ms=oldest,
        jobs_open=int(db.execute(SQL.workload.jobs).fetchone()[0]),
        guards=tuple(state for (state,) in db.execute(SQL.workload.guards)),
    )
