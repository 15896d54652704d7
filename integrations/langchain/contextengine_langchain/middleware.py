"""A middleware for LangChain's `create_agent`: before each call of the model what is new is stored,
and the model gets the context that fits instead of the whole state.

The agent's state stays what it is, so that checkpoints, rewinds and other middleware see all of it.
While the service is away the model gets the state's own messages.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage

from contextengine import Assembly, AsyncClient, Client, ContextEngineError, Message
from contextengine.formats import FormatError
from contextengine.overflow import is_refusal, said

from .keeper import Keeper
from .messages import kept, shown, with_addition

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
        patience: float = 2.0,
    ) -> None:
        """client: a Client for `invoke` and `stream`, an AsyncClient for `ainvoke` and `astream`;
        `breaker=True` keeps a service that is away from costing each turn. agent_id: whose sessions
        these are. session_id: the session, or what names it; by default the `thread_id` of the run.
        Without either the model gets the state as it is. window: the model's context window in
        tokens; by default what LangChain's profile of the model says, else what the service knows.
        patience: seconds that a call of the model waits for the service.
        """
        super().__init__()
        self._keeper = Keeper(client, agent_id, session_id, window)
        self._patience = patience

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Called by LangChain for each call of the model."""
        name, conversations = self._keeper.session(), self._keeper.blocking
        if not name or conversations is None:
            return handler(request)
        conversation, asked = conversations.of(name), self._asked(request)
        try:
            rows = kept(_own(request))
            reply = conversation.assemble(rows, timeout=self._patience, **asked)
        except _AWAY as error:
            return handler(_alone(error, request))
        try:
            return handler(_fitting(request, rows, reply))
        except Exception as error:
            if not is_refusal(error):
                raise
            try:
                again = conversation.assemble_again(
                    rows, reply, said(error), timeout=self._patience, **asked
                )
            except _AWAY:
                raise error from None
        return handler(_fitting(request, rows, again))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """The same for asyncio."""
        name, conversations = self._keeper.session(), self._keeper.waiting
        if not name or conversations is None:
            return await handler(request)
        conversation, asked = conversations.of(name), self._asked(request)
        try:
            rows = kept(_own(request))
            reply = await conversation.assemble(rows, timeout=self._patience, **asked)
        except _AWAY as error:
            return await handler(_alone(error, request))
        try:
            return await handler(_fitting(request, rows, reply))
        except Exception as error:
            if not is_refusal(error):
                raise
            try:
                again = await conversation.assemble_again(
                    rows, reply, said(error), timeout=self._patience, **asked
                )
            except _AWAY:
                raise error from None
        return await handler(_fitting(request, rows, again))

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Stores what the turn added, and says that it is over."""
        name, conversations = self._keeper.session(), self._keeper.blocking
        if name and conversations is not None:
            try:
                conversations.of(name).end_turn(kept(state["messages"]), timeout=self._patience)
            except _AWAY as error:
                _log.warning("contextengine: stored later: %s", error)

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """The same for asyncio."""
        name, conversations = self._keeper.session(), self._keeper.waiting
        if name and conversations is not None:
            try:
                rows = kept(state["messages"])
                await conversations.of(name).end_turn(rows, timeout=self._patience)
            except _AWAY as error:
                _log.warning("contextengine: stored later: %s", error)

    def _asked(self, request: ModelRequest[Any]) -> dict[str, Any]:
        return self._keeper.asked(request.model, request.system_prompt or "")


def _own(request: ModelRequest[Any]) -> Sequence[AnyMessage]:
    """The agent's own messages. Those of the request may be what LangChain or another middleware
    made of them for this call alone."""
    own: Sequence[AnyMessage] = (request.state or {}).get("messages") or request.messages
    return own


def _alone(error: Exception, request: ModelRequest[Any]) -> ModelRequest[Any]:
    _log.warning("contextengine: the model gets the state as it is: %s", error)
    return request


def _fitting(
    request: ModelRequest[Any], rows: Sequence[Message], reply: Assembly
) -> ModelRequest[Any]:
    """The request with the context that fits."""
    addition = reply.response.system_prompt_addition
    return request.override(
        messages=shown(reply.items, _own(request), rows, request.messages),
        system_message=with_addition(request.system_message, addition),
    )
