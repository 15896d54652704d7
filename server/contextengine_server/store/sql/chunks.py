"""Statements about chunks that plugins keep."""

from __future__ import annotations

from .clauses import SESSION, insert, select
from .columns import CHUNK, SHELF
from .dialect import Dialect

_SHELF = f"{SESSION} AND place = :place AND name = :name"


class ChunkStatements:
    """Chunks of plugins."""

    def __init__(self, dialect: Dialect) -> None:
        counts = (
            f"COUNT(*), COUNT(*) FILTER (WHERE {dialect.is_true.format('compacted')}),"
            f" COALESCE(SUM({dialect.bytes_of.format('content')}), 0) FROM chunks"
        )
        of_tenant = "(:tenant = '' OR tenant = :tenant)"
        same = "tenant = chunks.tenant AND agent = chunks.agent AND session = chunks.session"
        self.last_number = f"SELECT COALESCE(MAX(number), 0) FROM chunks WHERE {SESSION}"
        self.put = (
            f"{insert('chunks', (*SHELF, *CHUNK))} ON CONFLICT ({', '.join(SHELF)}, id)"
            " DO UPDATE SET content = excluded.content, updated_ms = excluded.updated_ms"
        )
        self.on = (
            f"{select('chunks', CHUNK)} WHERE {_SHELF} AND"
            f" (:compacted OR {dialect.is_false.format('compacted')}) ORDER BY number"
        )
        self.mark = (
            f"UPDATE chunks SET compacted = {dialect.true}, updated_ms = :now"
            f" WHERE {_SHELF} AND id = :id"
        )
        self.clear = f"DELETE FROM chunks WHERE {_SHELF}"
        self.counts = f"SELECT COUNT(DISTINCT name), {counts} WHERE {SESSION} AND place = :place"
        self.totals = f"SELECT {counts} WHERE {of_tenant}"
        self.sessions = (
            f"SELECT COUNT(*) FROM (SELECT DISTINCT tenant, agent, session FROM chunks"
            f" WHERE {of_tenant}) AS kept"
        )
        self.prune = (
            f"DELETE FROM chunks WHERE {of_tenant}"
            f" AND NOT EXISTS (SELECT 1 FROM sessions WHERE {same} AND updated_ms >= :before)"
            " AND NOT EXISTS (SELECT 1 FROM chunks AS other WHERE other.tenant = chunks.tenant"
            " AND other.agent = chunks.agent AND other.session = chunks.session"
            " AND other.updated_ms >= :before)"
        )
