"""What operators chose within a tenant, and which of it holds for a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .patterns import ROW, SessionFacts, pattern_of

Place = tuple[str, str]
"""Where a choice stands: (agent, session), empty for all of them; or ("", a pattern's row)."""


class Assigned(msgspec.Struct, frozen=True):
    """An operator's choice for one place, as its row holds it."""

    engine_id: str
    """Empty: as inherited."""
    options: dict[str, dict[str, Any]]
    """By engine."""
    policy: dict[str, Any]
    """What governs summaries, whichever engine serves."""


class TenantAssignments:
    """What was assigned within a tenant."""

    def __init__(self, rows: Mapping[Place, Assigned]) -> None:
        self._rows = rows
        named = [session for agent, session in rows if not agent and session.startswith(ROW)]
        self._patterns = sorted(map(pattern_of, named), key=lambda pattern: pattern.rank)
        self.asks_sessions = any(pattern.of_sessions for pattern in self._patterns)
        """True where it must be known what a session is named by."""

    def __bool__(self) -> bool:
        return bool(self._rows)

    def without(self, place: Place) -> TenantAssignments:
        """The same without one choice."""
        return TenantAssignments({key: row for key, row in self._rows.items() if key != place})

    def at(self, place: Place) -> Assigned | None:
        """The choice of one place."""
        return self._rows.get(place)

    def levels(self, facts: SessionFacts) -> list[tuple[str, Assigned]]:
        """What holds for a session, each with who chose it, the nearest last: the tenant's choice,
        patterns of agents, the agent's, patterns of sessions, the session's own. Of patterns the
        one that asks for more is nearer, then the one that leaves less open."""
        matching = [pattern for pattern in self._patterns if pattern.matches(facts)]
        places: list[tuple[str, Place]] = [("tenant", ("", ""))]
        places += [("pattern", ("", one.row)) for one in matching if not one.of_sessions]
        if facts.agent:
            places.append(("agent", (facts.agent, "")))
        places += [("pattern", ("", one.row)) for one in matching if one.of_sessions]
        if facts.agent and facts.session:
            places.append(("session", (facts.agent, facts.session)))
        found = [(level, self._rows.get(place)) for level, place in places]
        return [(level, row) for level, row in found if row is not None]
