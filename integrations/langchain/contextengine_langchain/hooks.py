"""Hooks for graphs of LangGraph: before the node of the model the context that fits is put into
`llm_input_messages`, as `create_react_agent` reads it; behind it what the model said is stored.

The messages of the state stay what they are.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AnyMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableLambda

from contextengine import Assembly, AsyncClient, Client, ContextEngineError, Message
from contextengine.formats import FormatError
from contextengine.overflow import is_refusal, said

from .keeper import Keeper
from .messages import kept, shown, with_addition
from .model import Asking, asking

_log = logging.getLogger(__name__)
_AWAY = (ContextEngineError, FormatError)
MOST_SHOWN = 1_000
"""Sessions of which it is remembered what the model was shown last."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a model is shown."""

    own: Sequence[AnyMessage]
    """The state's messages."""
    rows: Sequence[Message]
    """The same, as they are kept."""
    reply: Assembly
    messages: list[AnyMessage]

    def head(self, given: Any) -> list[AnyMessage] | None:
        """What the graph puts before these messages, as its prompt. None: it asks with others."""
        asked: list[Any] = given.to_messages() if hasattr(given, "to_messages") else list(given)
        begins = len(asked) - len(self.messages)
        return asked[:begins] if begins >= 0 and asked[begins:] == self.messages else None


class ContextengineHooks:
    """Two nodes for a graph whose state holds `messages`.

    graph = create_react_agent(hooks.model(model), tools, pre_model_hook=hooks.before_model,
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
        self._shown: OrderedDict[str, _Shown] = OrderedDict()
        self.before_model: Runnable[Any, Any] = RunnableLambda(self._before, self._abefore)
        """Answers `llm_input_messages`."""
        self.after_model: Runnable[Any, Any] = RunnableLambda(self._after, self._aafter)
        """Stores the model's reply; says that the turn is over where it calls no tool. Without it
        a reply is stored with the next call."""

    def model(self, model: Any) -> Asking:
        """The graph's model in front of its own: where the provider refuses what `before_model`
        answered for its length, the session is compacted, and the model is asked once more with
        half of it. model: a chat model, with its tools bound to it where the graph does not do
        that. It is asked in the run that `before_model` was asked in."""
        return asking(model, self)

    def shorter(self, given: Any, error: Exception) -> list[AnyMessage] | None:
        """What the model is asked with once more. given: what it was asked with, which ends with
        what `before_model` answered. None: it is refused for something else, or there is nobody to
        ask for less."""
        name, conversations = self._keeper.session(), self._keeper.blocking
        before = self._shown.get(name) if is_refusal(error) else None
        head = before.head(given) if before else None
        if before is None or head is None or conversations is None:
            return None
        try:
            asked = self._again(before, error)
            reply = conversations.of(name).assemble_again(**asked)
        except _AWAY as away:
            _log.warning("contextengine: the model is not asked again: %s", away)
            return None
        return [*head, *_fitting(before.own, before.rows, reply)]

    async def ashorter(self, given: Any, error: Exception) -> list[AnyMessage] | None:
        """The same for asyncio."""
        name, conversations = self._keeper.session(), self._keeper.waiting
        before = self._shown.get(name) if is_refusal(error) else None
        head = before.head(given) if before else None
        if before is None or head is None or conversations is None:
            return None
        try:
            asked = self._again(before, error)
            reply = await conversations.of(name).assemble_again(**asked)
        except _AWAY as away:
            _log.warning("contextengine: the model is not asked again: %s", away)
            return None
        return [*head, *_fitting(before.own, before.rows, reply)]

    def _again(self, before: _Shown, error: Exception) -> dict[str, Any]:
        return {
            "messages": before.rows,
            "refused": before.reply,
            "text": said(error),
            "timeout": self._patience,
            **self._keeper.asked(),
        }

    def _before(self, state: Any) -> dict[str, Any]:
        name, conversations = self._keeper.session(), self._keeper.blocking
        if not name or conversations is None:
            return {"llm_input_messages": state["messages"]}
        try:
            rows = kept(state["messages"])
            asked = self._keeper.asked()
            reply = conversations.of(name).assemble(rows, timeout=self._patience, **asked)
        except _AWAY as error:
            self._shown.pop(name, None)
            return _alone(error, state)
        return self._answered(name, state["messages"], rows, reply)

    async def _abefore(self, state: Any) -> dict[str, Any]:
        name, conversations = self._keeper.session(), self._keeper.waiting
        if not name or conversations is None:
            return {"llm_input_messages": state["messages"]}
        try:
            rows = kept(state["messages"])
            asked = self._keeper.asked()
            reply = await conversations.of(name).assemble(rows, timeout=self._patience, **asked)
        except _AWAY as error:
            self._shown.pop(name, None)
            return _alone(error, state)
        return self._answered(name, state["messages"], rows, reply)

    def _answered(
        self, name: str, own: Sequence[AnyMessage], rows: Sequence[Message], reply: Assembly
    ) -> dict[str, Any]:
        messages = _fitting(own, rows, reply)
        self._shown.pop(name, None)
        self._shown[name] = _Shown(own, rows, reply, messages)
        if len(self._shown) > MOST_SHOWN:
            self._shown.popitem(last=False)
        return {"llm_input_messages": messages}

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


def _fitting(
    own: Sequence[AnyMessage], rows: Sequence[Message], reply: Assembly
) -> list[AnyMessage]:
    """The messages that fit, instructions first."""
    messages: list[Any] = shown(reply.items, own, rows)
    first = messages[0] if messages and isinstance(messages[0], SystemMessage) else None
    told = with_addition(first, reply.response.system_prompt_addition)
    head = [] if told is None else [told]
    return [*head, *messages[1 if first is not None else 0 :]]
