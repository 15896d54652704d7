"""Hooks for graphs of LangGraph: before the node of the model the context that fits is put into
`llm_input_messages`, as `create_react_agent` reads it; behind it what the model said is stored.

The messages of the state stay what they are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AnyMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableLambda

from contextengine import Assembly, AsyncClient, Client, ContextEngineError, Message
from contextengine.formats import FormatError

from .keeper import Keeper
from .messages import kept, shown, with_addition

_log = logging.getLogger(__name__)
_AWAY = (ContextEngineError, FormatError)


class ContextengineHooks:
    """Two nodes for a graph whose state holds `messages`.

    graph = create_react_agent(model, tools, pre_model_hook=hooks.before_model,
                               post_model_hook=hooks.after_model, checkpointer=saver)
    """

    def __init__(
        self,
        client: Client | AsyncClient,
        *,
        agent_id: str = "langchain",
        session_id: str | Callable[[], str] = "",
        window: int | None = None,
        patience: float = 2.0,
    ) -> None:
        """As for ContextengineMiddleware. A prompt of the graph's is not known here: let `window`
        be smaller by it where it is long."""
        self._keeper = Keeper(client, agent_id, session_id, window)
        self._patience = patience
        self.before_model: Runnable[Any, Any] = RunnableLambda(self._before, self._abefore)
        """Answers `llm_input_messages`."""
        self.after_model: Runnable[Any, Any] = RunnableLambda(self._after, self._aafter)
        """Stores the model's reply; says that the turn is over where it calls no tool. Without it
        a reply is stored with the next call."""

    def _before(self, state: Any) -> dict[str, Any]:
        name, conversations = self._keeper.session(), self._keeper.blocking
        if not name or conversations is None:
            return {"llm_input_messages": state["messages"]}
        try:
            rows = kept(state["messages"])
            asked = self._keeper.asked()
            reply = conversations.of(name).assemble(rows, timeout=self._patience, **asked)
        except _AWAY as error:
            return _alone(error, state)
        return _fitting(state["messages"], rows, reply)

    async def _abefore(self, state: Any) -> dict[str, Any]:
        name, conversations = self._keeper.session(), self._keeper.waiting
        if not name or conversations is None:
            return {"llm_input_messages": state["messages"]}
        try:
            rows = kept(state["messages"])
            asked = self._keeper.asked()
            reply = await conversations.of(name).assemble(rows, timeout=self._patience, **asked)
        except _AWAY as error:
            return _alone(error, state)
        return _fitting(state["messages"], rows, reply)

    def _after(self, state: Any) -> dict[str, Any]:
        name, conversations = self._keeper.session(), self._keeper.blocking
        if name and conversations is not None and not _calls(state["messages"]):
            try:
                conversations.of(name).end_turn(kept(state["messages"]), timeout=self._patience)
            except _AWAY as error:
                _log.warning("contextengine: stored later: %s", error)
        return {}

    async def _aafter(self, state: Any) -> dict[str, Any]:
        name, conversations = self._keeper.session(), self._keeper.waiting
        if name and conversations is not None and not _calls(state["messages"]):
            try:
                rows = kept(state["messages"])
                await conversations.of(name).end_turn(rows, timeout=self._patience)
            except _AWAY as error:
                _log.warning("contextengine: stored later: %s", error)
        return {}


def _calls(messages: Sequence[AnyMessage]) -> bool:
    """Whether the model waits for a tool."""
    return bool(messages and getattr(messages[-1], "tool_calls", None))


def _alone(error: Exception, state: Any) -> dict[str, Any]:
    _log.warning("contextengine: the model gets the state as it is: %s", error)
    return {"llm_input_messages": state["messages"]}


def _fitting(own: Sequence[AnyMessage], rows: Sequence[Message], reply: Assembly) -> dict[str, Any]:
    """The messages that fit, instructions first."""
    messages: list[Any] = shown(reply.items, own, rows)
    first = messages[0] if messages and isinstance(messages[0], SystemMessage) else None
    told = with_addition(first, reply.response.system_prompt_addition)
    head = [] if told is None else [told]
    return {"llm_input_messages": [*head, *messages[1 if first is not None else 0 :]]}
