"""How engines for Hermes are asked, which is as Hermes itself asks them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ..companion import Conversation
from ..rewrite import ChatMessage, RewriteRequest

PLATFORM = "contextengine"
"""What such an engine is told that it runs on."""


class HermesHost(msgspec.Struct, frozen=True):
    """Asks an engine for Hermes."""

    make: Callable[[], Any]
    """Makes one for a session, of its own."""
    home: str
    """The directory that it is told to keep its files in."""

    async def begin(self, session_id: str, told: Conversation) -> Any:
        """See EngineHost. Hermes's directory is there, as it is in Hermes."""
        os.makedirs(self.home or ".", exist_ok=True)
        engine = self.make()
        started = getattr(engine, "on_session_start", None)
        if started is not None:
            known = {
                "hermes_home": self.home,
                "platform": PLATFORM,
                "conversation_id": session_id,
            }
            started(session_id, **accepted(started, known))
        return engine

    async def compact(self, engine: Any, request: RewriteRequest) -> list[ChatMessage] | None:
        """See EngineHost. Where nobody forces it, it is asked whether it wants to first; it is told
        the budget as its window, and how much of it is used."""
        resize = getattr(engine, "update_model", None)
        known = getattr(engine, "model", request.model)
        if resize is not None and (
            getattr(engine, "context_length", 0) != request.available or known != request.model
        ):
            resize(
                request.model, request.available, **accepted(resize, {"provider": request.provider})
            )
        usage = {"prompt_tokens": request.tokens, "completion_tokens": 0}
        engine.update_from_response({**usage, "total_tokens": request.tokens})
        if not request.force and not engine.should_compress(request.tokens):
            return None
        messages = list(request.messages)
        has_content = getattr(engine, "has_content_to_compress", None)
        if request.force and has_content is not None and not has_content(messages):
            return None
        asked = {
            "current_tokens": request.tokens,
            "focus_topic": request.focus or None,
            "force": request.force,
            "memory_context": request.memory_context,
        }
        answer: list[ChatMessage] = engine.compress(messages, **accepted(engine.compress, asked))
        return answer

    async def tools(self, engine: Any) -> list[Any]:
        """See EngineHost."""
        schemas = getattr(engine, "get_tool_schemas", None)
        return list(schemas() or ()) if schemas is not None else []

    async def call(
        self, engine: Any, name: str, arguments: dict[str, Any], messages: list[ChatMessage]
    ) -> object:
        """See EngineHost."""
        handle = engine.handle_tool_call
        return handle(name, arguments, **accepted(handle, {"messages": messages}))

    async def status(self, engine: Any) -> Mapping[str, object]:
        """See EngineHost."""
        says = getattr(engine, "get_status", None)
        return says() if says is not None else {}

    async def ended(
        self, engine: Any, session_id: str, messages: list[ChatMessage], *, emptied: bool
    ) -> None:
        """See EngineHost. In the order in which Hermes leaves a session for a new one."""
        told = getattr(engine, "on_session_end", None)
        if told is not None:
            told(session_id, messages)
        reset = getattr(engine, "on_session_reset", None)
        if emptied and reset is not None:
            reset()

    async def end(self, engine: Any) -> None:
        """See EngineHost. It is no end of the session's: what it keeps in files it finds again."""


def accepted(function: Callable[..., Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the arguments that a function takes: older engines know fewer."""
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        return dict(named)
    names = {one.name for one in parameters if one.kind is not inspect.Parameter.POSITIONAL_ONLY}
    return {name: value for name, value in named.items() if name in names}
