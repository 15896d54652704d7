"""Statements about children that sessions spawned."""

from __future__ import annotations

from .clauses import PARENT, SESSION, insert, select
from .columns import SPAWN
from .dialect import Dialect


class SpawnStatements:
    """Spawns by their tokens, their parents and their children."""

    def __init__(self, dialect: Dialect) -> None:
        spawns = select("spawns", SPAWN)
        this = "tenant = :tenant AND token = :token"
        live = f"{this} AND ended_ms = 0"
        self.one = f"{spawns} WHERE {this}"
        self.asked = f"{spawns} WHERE {PARENT} AND request_id = :request_id AND request_id != ''"
        self.newest_of = f"{spawns} WHERE {SESSION} ORDER BY created_ms DESC LIMIT 1"
        self.live_children = f"SELECT COUNT(*) FROM spawns WHERE {PARENT} AND ended_ms = 0"
        self.insert = insert("spawns", SPAWN)
        self.start = f"UPDATE spawns SET started = {dialect.true} WHERE {live} AND expire_ms > :now"
        self.spend = (
            f"UPDATE spawns SET used_tokens = used_tokens + :tokens WHERE {live}"
            " AND used_tokens + :tokens <= grant_tokens"
        )
        self.end = f"UPDATE spawns SET ended_ms = :now, end_reason = :reason WHERE {live}"
        self.prolong = f"UPDATE spawns SET expire_ms = :until WHERE {this}"
        self.due = (
            f"{spawns} WHERE ended_ms = 0 AND expire_ms <= :now ORDER BY expire_ms LIMIT :limit"
        )
        self.any_over = "SELECT 1 FROM spawns WHERE ended_ms > 0 AND ended_ms <= :before LIMIT 1"
        self.forget = (
            "DELETE FROM spawns WHERE (tenant, token) IN (SELECT tenant, token FROM spawns"
            " WHERE ended_ms > 0 AND ended_ms <= :before ORDER BY ended_ms LIMIT :limit)"
        )
