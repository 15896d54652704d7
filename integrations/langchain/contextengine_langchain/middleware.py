"""A middleware for LangChain's `create_agent`: before each call of the model what is new is stored,
and the model gets the context that fits instead of the whole state.

The agent's state stays what it is, so that checkpoints, rewinds and other middleware see all of it.
While the service is away the model gets the state's own messages.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage
from langgraph.config import get_config

from contextengine import (
    Assembly,
    AsyncClient,
    AsyncFeed,
    AsyncSession,
    Client,
    ContextEngineError,
    Feed,
    Session,
)
from contextengine.formats import FormatError
from contextengine.types import Budget, WindowBudget

from .messages import kept, shown, with_addition

MOST = 1_000
"""Sessions whose newest messages are remembered. One that is forgotten is asked for again."""
TIMEOUT_S = 10.0
"""Seconds for one call of the service; the model's request goes on without it then."""

_log = logging.getLogger(__name__)
_AWAY = (ContextEngineError, FormatError)


class ContextengineMiddleware(AgentMiddleware[Any, Any, Any]):
    """Keeps an agent's conversations in the service and sends the model what fits."""

    def __init__(
        self,
        client: Client | AsyncClient,
        *,
        agent_id: str = "langchain",
        session_id: str | Callable[[], str] = "",
        window: int | None = None,
    ) -> None:
        """client: a Client for `invoke` and `stream`, an AsyncClient for `ainvoke` and `astream`;
        `breaker=True` keeps a service that is away from costing each turn. agent_id: whose sessions
        these are. session_id: the session, or what names it; by default the `thread_id` of the run.
        Without either the model gets the state as it is. window: the model's context window in
        tokens; by default what LangChain's profile of the model says, else what the service knows.
        """
        super().__init__()
        self._client = client
        self._agent = agent_id
        self._session_id = session_id
        self._window = window
        self._talks: OrderedDict[str, Any] = OrderedDict()

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Called by LangChain for each call of the model."""
        name = self._name()
        if not name or not isinstance(self._client, Client):
            return handler(request)
        session, feed = self._talk(name)
        try:
            rows = kept(request.messages)
            if feed.bring(rows, timeout=TIMEOUT_S) is None:
                return handler(request)
            reply = session.assemble(fallback=False, timeout=TIMEOUT_S, **self._asked(request))
        except _AWAY as error:
            return handler(self._alone(error, request))
        return handler(_fitting(request, reply))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """The same for asyncio."""
        name = self._name()
        if not name or not isinstance(self._client, AsyncClient):
            return await handler(request)
        session, feed = self._talk(name)
        try:
            rows = kept(request.messages)
            if await feed.bring(rows, timeout=TIMEOUT_S) is None:
                return await handler(request)
            asked = self._asked(request)
            reply = await session.assemble(fallback=False, timeout=TIMEOUT_S, **asked)
        except _AWAY as error:
            return await handler(self._alone(error, request))
        return await handler(_fitting(request, reply))

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Stores what the turn added, and says that it is over."""
        name = self._name()
        if name and isinstance(self._client, Client):
            try:
                self._talk(name)[1].bring(kept(state["messages"]), ended=True, timeout=TIMEOUT_S)
            except _AWAY as error:
                _log.warning("contextengine: stored later: %s", error)

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """The same for asyncio."""
        name = self._name()
        if name and isinstance(self._client, AsyncClient):
            try:
                feed = self._talk(name)[1]
                await feed.bring(kept(state["messages"]), ended=True, timeout=TIMEOUT_S)
            except _AWAY as error:
                _log.warning("contextengine: stored later: %s", error)

    def _name(self) -> str:
        """Which session the run is about. Empty: none."""
        if self._session_id:
            return self._session_id if isinstance(self._session_id, str) else self._session_id()
        try:
            return str(get_config().get("configurable", {}).get("thread_id") or "")
        except RuntimeError:  # outside of a run
            return ""

    def _talk(self, name: str) -> Any:
        talk = self._talks.pop(name, None)
        if talk is None:
            talk = self._begun(name)
        self._talks[name] = talk
        if len(self._talks) > MOST:
            self._talks.popitem(last=False)
        return talk

    def _begun(self, name: str) -> tuple[Session, Feed] | tuple[AsyncSession, AsyncFeed]:
        if isinstance(self._client, Client):
            session = self._client.session(agent_id=self._agent, session_id=name)
            return session, Feed(self._client, session.ref)
        asynchronous = self._client.session(agent_id=self._agent, session_id=name)
        return asynchronous, AsyncFeed(self._client, asynchronous.ref)

    def _asked(self, request: ModelRequest[Any]) -> dict[str, Any]:
        """What an assembly is asked for."""
        parts = WindowBudget()
        profile = getattr(request.model, "profile", None) or {}
        window = self._window or profile.get("max_input_tokens")
        if window:
            parts.window = int(window)
        if request.system_prompt:
            parts.system_prompt_text = request.system_prompt
        model = getattr(request.model, "model_name", None) or getattr(request.model, "model", None)
        named = {"model": model} if isinstance(model, str) and model else {}
        return {"budget": Budget(window=parts), **named}

    def _alone(self, error: Exception, request: ModelRequest[Any]) -> ModelRequest[Any]:
        _log.warning("contextengine: the model gets the state as it is: %s", error)
        return request


def _fitting(request: ModelRequest[Any], reply: Assembly) -> ModelRequest[Any]:
    """The request with the context that fits."""
    messages: Sequence[AnyMessage] = shown(reply.items, request.messages)
    return request.override(
        messages=list(messages),
        system_message=with_addition(request.system_message, reply.response.system_prompt_addition),
    )
