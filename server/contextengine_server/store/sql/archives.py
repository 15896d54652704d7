"""Statements about the archive."""

from __future__ import annotations

from functools import cache

from .clauses import SESSION, insert, select
from .columns import ARCHIVE, HEAD
from .dialect import Dialect

_ONE = f"{SESSION} AND name = :name"


def _of(table: str, whose: str) -> str:
    """The rows of the session that a row is of."""
    same = (f"{table}.{name} = {whose}.{name}" for name in ("tenant", "agent", "session"))
    return " AND ".join(same)


class ArchiveStatements:
    """Objects, and the sessions in them."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        rows = select("archives", ARCHIVE)
        self.reserve = insert("archives", ARCHIVE)
        self.one = f"{rows} WHERE {_ONE} AND incarnation = :incarnation"
        self.hold = f"UPDATE archives SET stage = 1 WHERE {_ONE} AND stage = 0"
        """Meets none where somebody gave the object up meanwhile."""
        self.free = f"UPDATE archives SET stage = 3, freed_ms = :now WHERE {_ONE} AND stage = 1"
        self.doom = (
            "UPDATE archives SET stage = 2 WHERE (:tenant = '' OR tenant = :tenant)"
            " AND stage = 0 AND created_ms < :stale_ms",
            "UPDATE archives SET stage = 2 WHERE (:tenant = '' OR tenant = :tenant)"
            " AND stage = 3 AND freed_ms < :kept_ms",
        )
        self.doomed = (
            f"{rows} WHERE (:tenant = '' OR tenant = :tenant) AND stage = 2"
            " ORDER BY tenant, agent, session, name"
        )
        self.erase = f"DELETE FROM archives WHERE {_ONE} AND stage = 2"
        self.held = "SELECT COUNT(*), COALESCE(SUM(size), 0) FROM archives WHERE stage = 1"
        self.count_doomed = "SELECT COUNT(*) FROM archives WHERE stage = 2"
        self.owed = (
            f"SELECT COUNT(*) FROM debts WHERE {SESSION} AND {dialect.is_false.format('held')}"
        )
        self.idle = cache(self._idle)

    def _idle(self, *, after: bool) -> str:
        """A page of the heads of sessions that may go, those written longest ago first."""
        owed = f"{_of('debts', 'sessions')} AND {self._dialect.is_false.format('held')}"
        back = f"{_of('archives', 'sessions')} AND archives.freed_ms >= :before_ms"
        conditions = [
            "tenant = :tenant",
            "revision > 0",
            "updated_ms < :before_ms",
            "archived = ''",
            "last_sequence > parent_sequence",
            f"NOT EXISTS (SELECT 1 FROM debts WHERE {owed})",
            f"NOT EXISTS (SELECT 1 FROM archives WHERE {back})",
        ]
        if after:
            conditions.append(
                "(updated_ms, agent, session) > (:after_ms, :after_agent, :after_session)"
            )
        index = self._dialect.through.format("sessions_newest")
        return (
            f"{select('sessions', HEAD)}{index} WHERE {' AND '.join(conditions)}"
            " ORDER BY updated_ms, agent, session LIMIT :limit"
        )
