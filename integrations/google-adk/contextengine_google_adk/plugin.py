"""A plugin of Google's Agent Development Kit: before each call of the model what is new is stored,
and the model gets the context that fits instead of all contents.

The session of the kit stays whole. While the service is away the model gets all contents.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Any
from urllib.parse import quote

from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin

from contextengine import AsyncClient, AsyncConversations, ContextEngineError, Message
from contextengine.formats import FormatError
from contextengine.messages import compact_json
from contextengine.naming import digest, name_by_content
from contextengine.types import Budget, WindowBudget

from .contents import kept, shown, text_of, with_addition

MOST_NAME_BYTES = 256
"""Bytes of a session's name."""
MOST_OPEN = 1_000
"""Calls of the model whose answers are waited for."""

_log = logging.getLogger(__name__)
_AWAY = (ContextEngineError, FormatError)


class ContextenginePlugin(BasePlugin):
    """Keeps the conversations of an app's agents in the service and sends their models what fits.

    A session is named by the user and the kit's session, `USER/SESSION`. What a further agent of
    the app is shown, which the kit writes for each in other words, is a session of its own:
    `USER/SESSION/AGENT`.
    """

    def __init__(
        self,
        client: AsyncClient,
        *,
        agent_id: str = "google-adk",
        window: int | None = None,
        patience: float = 2.0,
        name: str = "contextengine",
    ) -> None:
        """client: `breaker=True` keeps a service that is away from costing each call. agent_id:
        whose sessions these are. window: the model's context window in tokens; by default what the
        service knows of the model. patience: seconds that a call of the model waits for the
        service. name: of the plugin in the app.
        """
        super().__init__(name=name)
        self._conversations = AsyncConversations(client, agent_id)
        self._window = window
        self._patience = patience
        self._open: OrderedDict[str, list[Message]] = OrderedDict()

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Called by the kit for each call of the model."""
        session = _session_of(callback_context)
        try:
            messages = kept(llm_request.contents)
            self._wait_for(session, messages)
            reply = await self._conversations.of(session).assemble(
                messages,
                budget=Budget(window=self._parts(llm_request)),
                timeout=self._patience,
                **({"model": llm_request.model} if llm_request.model else {}),
            )
        except _AWAY as error:
            _log.warning("contextengine: the model gets all contents: %s", error)
            return None
        llm_request.contents = shown(reply.items, llm_request.contents, messages)
        addition = reply.response.system_prompt_addition
        config = llm_request.config
        config.system_instruction = with_addition(config.system_instruction, addition)
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Called by the kit for each answer of the model: one that ends a turn is stored."""
        session = _session_of(callback_context)
        content = llm_response.content
        if llm_response.partial or content is None or not content.parts:
            return None
        before = self._open.pop(session, None)
        if before is None or any(part.function_call for part in content.parts):
            return None
        try:
            reply = kept([content])
            name_by_content(reply, before[-1].id if before else "")
            await self._conversations.of(session).end_turn(
                [*before, *reply], timeout=self._patience
            )
        except _AWAY as error:
            _log.warning("contextengine: stored later: %s", error)
        return None

    def _wait_for(self, session: str, messages: list[Message]) -> None:
        """Remembers what the model answers to."""
        self._open[session] = messages
        if len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)

    def _parts(self, request: LlmRequest) -> WindowBudget:
        parts = WindowBudget(system_prompt_text=text_of(request.config.system_instruction))
        if self._window:
            parts.window = self._window
        for tool in request.config.tools or ():
            for function in getattr(tool, "function_declarations", None) or ():
                told = function.model_dump(mode="json", exclude_none=True)
                schema = compact_json(told)
                parts.tools.add(name=function.name or "", input_schema_json=schema)
        return parts


def _session_of(context: Any) -> str:
    """The name of the session that an agent's conversation is kept in."""
    invocation = context._invocation_context
    names = [context.session.user_id, context.session.id]
    root = invocation.agent.root_agent if invocation.agent is not None else None
    if root is not None and root.name != context.agent_name:
        names.append(context.agent_name)
    name = "/".join(quote(one, safe="") for one in names)
    # A name of others' may be longer than one of ours.
    return name if len(name.encode()) <= MOST_NAME_BYTES else digest(*names)
