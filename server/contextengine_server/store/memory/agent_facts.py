"""What agents remember, in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from contextengine_server.context.scope import Scope
from contextengine_server.store.agent_facts import AgentFact, FoundInSession

from .tables import Tables


class MemoryAgentFacts:
    """`AgentMemory` over dictionaries. `tables` answers the tables, or raises StoreUnavailable."""

    def __init__(self, tables: Callable[[], Tables]) -> None:
        self._tables = tables

    async def add(self, found: FoundInSession) -> int:
        """Writes facts of a session; answers how many are new."""
        tables = self._tables()
        session = tables.sessions.get(found.scope)
        if session is None or session.head.incarnation != found.incarnation:
            return 0
        known = tables.facts.setdefault(found.scope[:2], {})
        for id in found.forgotten:
            known.pop(id, None)
        new = 0
        for fact in found.facts:
            row = session.messages.get(fact.sequence)
            stands = row is None or row.retired_revision <= found.as_of
            if stands and known.setdefault(fact.id, fact) is fact:
                new += 1
        return new

    async def facts(self, tenant: str, agent: str) -> list[AgentFact]:
        """All of an agent's, oldest first."""
        return _ordered(self._of(tenant, agent))

    async def newest_facts(
        self, tenant: str, agent: str, kinds: Sequence[str], *, as_of_ms: int, limit: int
    ) -> list[AgentFact]:
        """Those of these kinds that were written by then, newest first."""
        found = [
            fact
            for fact in self._of(tenant, agent)
            if fact.kind in kinds and fact.written_ms <= as_of_ms
        ]
        return _ordered(found)[::-1][:limit]

    async def facts_of(self, scope: Scope) -> list[AgentFact]:
        """Those that were found in a session, oldest first."""
        return _ordered(fact for fact in self._of(*scope[:2]) if fact.scope == scope)

    def _of(self, tenant: str, agent: str) -> Iterable[AgentFact]:
        return self._tables().facts.get((tenant, agent), {}).values()


def take_back(tables: Tables, scope: Scope, after: int = 0) -> None:
    """Erases what messages of a session behind a sequence say."""
    known = tables.facts.get(scope[:2], {})
    for fact in list(known.values()):
        if fact.scope == scope and fact.sequence > after:
            del known[fact.id]


def _ordered(facts: Iterable[AgentFact]) -> list[AgentFact]:
    return sorted(facts, key=lambda fact: fact.place)
