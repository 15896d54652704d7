"""What Hermes loads: the engine, and hooks that store each request's messages before it is sent, so
that nothing waits for a compaction to be kept."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from contextengine import ContextEngineError

from .engine import TROUBLE, ContextengineEngine
from .review import reviews
from .rows import Row
from .service import service

_log = logging.getLogger(__name__)


def register(ctx: Any) -> None:
    """Called by Hermes with its plugin context."""
    ctx.register_context_engine(ContextengineEngine())
    ctx.register_hook("pre_api_request", before_request)
    ctx.register_hook("post_llm_call", after_turn)
    ctx.register_command(
        "contextengine",
        status,
        description="How the service keeps this conversation: /contextengine",
    )


def before_request(
    *, session_id: str = "", conversation_history: Sequence[Row] = (), **_: Any
) -> None:
    """Stores what a request is made of."""
    _record(session_id, conversation_history, ended=False)


def after_turn(*, session_id: str = "", conversation_history: Sequence[Row] = (), **_: Any) -> None:
    """Stores what a turn added."""
    _record(session_id, conversation_history, ended=True)


def status(words: str = "") -> str:
    """What `/contextengine` prints."""
    shared = service()
    try:
        found = shared.client.sessions.list(agent_id=shared.agent, page_size=5)
    except ContextEngineError as error:
        return f"The service is away: {error}"
    rows = [
        f"{one.session_id}: {one.message_count} messages, {one.summary_count} summaries"
        for one in found.sessions
    ]
    return "\n".join(["The newest conversations that are kept:", *rows] if rows else ["None yet."])


def _record(session_id: str, rows: Sequence[Row], *, ended: bool) -> None:
    if not session_id or not rows or reviews():
        return
    try:
        service().conversation(session_id).record(rows, ended=ended)
    except TROUBLE as error:
        _log.warning("contextengine: stored later: %s", error)
