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
        agent = _text(self.agent)
        if named:
            return SessionRef(agent_id=agent, session_id=_text(named))
        return SessionRef(agent_id=agent, session_key=_text(self.session_key))


def _text(name: str) -> str:
    """A name as the service can be told it: a folder's need not be text."""
    return name.encode("utf-8", "replace").decode()
