"""Statements about what agents remember."""

from __future__ import annotations

from .clauses import SESSION, insert, select
from .columns import FACT
from .dialect import Dialect

_OF_AGENT = "tenant = :tenant AND agent = :agent"
_PLACE = ("said_ms", "sequence", "id")


class MemoryStatements:
    """Facts of agents."""

    def __init__(self, dialect: Dialect) -> None:
        facts = select("agent_facts", FACT)
        through = {
            name: dialect.through.format(f"agent_facts_{name}") for name in ("place", "session")
        }
        oldest = f"ORDER BY {', '.join(_PLACE)}"
        newest = f"ORDER BY {', '.join(f'{name} DESC' for name in _PLACE)}"
        self.of_agent = f"{facts}{through['place']} WHERE {_OF_AGENT} {oldest}"
        self.newest = (
            f"{facts}{through['place']} WHERE {_OF_AGENT} AND kind{dialect.among.format('kinds')}"
            f" AND written_ms <= :as_of_ms {newest} LIMIT :limit"
        )
        self.of_session = f"{facts}{through['session']} WHERE {SESSION} {oldest}"
        self.insert = f"{insert('agent_facts', FACT)} ON CONFLICT (tenant, agent, id) DO NOTHING"
        self.forget = f"DELETE FROM agent_facts WHERE {_OF_AGENT} AND id = :id"
        self.take_back = f"DELETE FROM agent_facts WHERE {SESSION} AND sequence > :after"
        self.retired = (
            f"SELECT sequence FROM messages{dialect.through.format('messages_retired')}"
            f" WHERE {dialect.own} AND retired_revision > 0 AND retired_revision > :as_of"
        )
