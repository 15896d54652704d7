"""What agents remember of their sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from contextengine_server.context.scope import Scope
from contextengine_server.store.agent_facts import AgentFact, FoundInSession


class AgentMemory(Protocol):
    """The facts of agents. They go with the sessions that they were found in: a deletion erases
    them, and a commit that retires messages takes back what these say, unless it keeps facts
    (`Commit.keeps_facts`)."""

    async def add(self, found: FoundInSession) -> int:
        """Writes facts of a session, in one transaction; answers how many are new. One whose id is
        there stays as it is. Does nothing where the session is gone, or lives another life. What a
        message said that a commit has retired since it was read is left out."""

    async def facts(self, tenant: str, agent: str) -> list[AgentFact]:
        """All of an agent's, oldest first."""

    async def newest_facts(
        self, tenant: str, agent: str, kinds: Sequence[str], *, as_of_ms: int, limit: int
    ) -> list[AgentFact]:
        """Those of these kinds that were written by then, newest first, at most `limit`."""

    async def facts_of(self, scope: Scope) -> list[AgentFact]:
        """Those that were found in a session, oldest first."""
