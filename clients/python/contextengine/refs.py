"""Naming a session."""

from __future__ import annotations

from .types import SessionRef


def session_ref(agent_id: str, session_id: str, session_key: str) -> SessionRef:
    """What names a session in every call. Raises ValueError where neither id nor key is given."""
    if not session_id and not session_key:
        raise ValueError("a session needs session_id or session_key")
    return SessionRef(agent_id=agent_id, session_id=session_id, session_key=session_key)


def watchable(ref: SessionRef) -> str:
    """The id to watch. Raises ValueError for a key alone: its session may be another one
    tomorrow."""
    if not ref.session_id:
        raise ValueError(
            "watch needs session_id; client.sessions.watch watches every session of an agent"
        )
    return ref.session_id
