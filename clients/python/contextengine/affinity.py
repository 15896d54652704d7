"""Session affinity: what lets a proxy, or gRPC itself, keep a session at one of several servers."""

from __future__ import annotations

import hashlib

from google.protobuf.message import Message as ProtoMessage

from .types import ImportRequest, SessionRef, WatchRequest

SESSION_HEADER = "contextengine-session"
"""The metadata that names a call's session. Servers do not read it: any server serves any call."""
_FIELDS = ("session", "parent", "child")
"""What may name a request's session: a child is made where its parent is."""


def session_metadata(request: ProtoMessage) -> tuple[tuple[str, str], ...]:
    """What names the session of a request, for its metadata; empty where it names none. Of an
    import, the first request names it; of what is watched, agent and session do."""
    if isinstance(request, WatchRequest):
        whole = request.agent_id and request.session_id
        return _named(request.agent_id, request.session_id) if whole else ()
    if isinstance(request, ImportRequest):
        request = request.header
    for field in _FIELDS:
        if field in request.DESCRIPTOR.fields_by_name and request.HasField(field):
            ref: SessionRef = getattr(request, field)
            return _named(ref.agent_id, ref.session_id or ref.session_key)
    return ()


def _named(agent_id: str, session: str) -> tuple[tuple[str, str], ...]:
    return ((SESSION_HEADER, affinity(agent_id, session)),) if session else ()


def affinity(agent_id: str, session: str) -> str:
    """A session's name for who is between: a hash, since ids may be anything and are nobody
    else's business. 32 hexadecimal digits."""
    return hashlib.sha256(f"{agent_id}\0{session}".encode()).hexdigest()[:32]
