"""Which session of contextengine a host's conversation is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contextengine import SessionRef

THREAD = "threadId"
"""What Codex puts into `_meta` of each call: the thread that it is made for."""


@dataclass(frozen=True, slots=True)
class Names:
    """How a process names its conversations."""

    agent: str
    session_id: str = ""
    """One conversation for all calls. Empty: what the call names, else the current one of the
    key."""
    session_key: str = ""
    """What stays the same over several conversations: by default the folder that is worked in."""

    def of(self, meta: Mapping[str, Any] | None) -> SessionRef:
        """The session that a call is about."""
        thread = (meta or {}).get(THREAD)
        named = self.session_id or (thread if isinstance(thread, str) else "")
        if named:
            return SessionRef(agent_id=self.agent, session_id=named)
        return SessionRef(agent_id=self.agent, session_key=self.session_key)
