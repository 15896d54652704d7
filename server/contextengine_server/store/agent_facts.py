"""What a store keeps of an agent's memory, as values (docs/memory.md)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from contextengine_server.context.scope import Scope


class AgentFact(msgspec.Struct, frozen=True):
    """A fact of (tenant, agent), as one message says it. It is written once, and goes with its
    session."""

    scope: Scope
    """The session that it was found in."""
    id: str
    """Unique in its agent. The same fact of the same message always has the same one."""
    kind: str
    subject: str
    """What it is about: of the facts of a kind and subject that differ, the newest holds."""
    value: str
    text: str
    """The sentence that it was found in."""
    sequence: int
    """The message that says it."""
    said_ms: int
    """When it was said, milliseconds since 1970 UTC."""
    written_ms: int
    """When it was found: memory as of a moment holds what was found by then."""

    @property
    def place(self) -> tuple[int, int, str]:
        """Where it stands among the facts of its agent, the oldest first."""
        return self.said_ms, self.sequence, self.id


class FoundInSession(msgspec.Struct, frozen=True):
    """Facts that were found in messages of one session."""

    scope: Scope
    incarnation: str
    as_of: int
    """The revision at which the messages were read."""
    facts: Sequence[AgentFact] = ()
    forgotten: Sequence[str] = ()
    """Ids of the agent's facts that make room for them."""
