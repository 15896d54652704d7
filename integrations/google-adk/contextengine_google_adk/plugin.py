"""A plugin of Google's Agent Development Kit: before each call of the model what is new is stored,
and the model gets the context that fits instead of all contents.

The session of the kit stays whole. While the service is away the model gets all contents.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from contextengine import Assembly, AsyncClient, AsyncConversations, ContextEngineError, Message
from contextengine.formats import FormatError
from contextengine.messages import compact_json
from contextengine.naming import digest, name_by_content
from contextengine.overflow import is_refusal, said
from contextengine.types import Budget, WindowBudget

from .aside import Aside, apart, together
from .contents import kept, shown, text_of, with_addition

MOST_NAME_BYTES = 256
"""Bytes of a session's name."""
MOST_OPEN = 1_000
"""Calls of the model whose answers are waited for."""

_log = logging.getLogger(__name__)
_AWAY = (ContextEngineError, FormatError)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model was called with."""

    contents: Sequence[types.Content]
    """The conversation."""
    asides: Sequence[Aside]
    """What stands beside it in this call alone."""
    messages: list[Message]
    fields: dict[str, Any]
    """What the assembly was asked for with."""
    instruction: Any
    """The agent's, without what the service says beside the contents."""
    reply: Assembly | None = None
    """None: the service was away."""


class ContextenginePlugin(BasePlugin):
    """Keeps the conversations of an app's agents in the service and sends their models what fits.

    A session is named by the user and the kit's session, `USER/SESSION`. What a further agent of
    the app is shown, which the kit writes for each in other words, is a session of its own:
    `USER/SESSION/AGENT`, and so is each run of an agent beside others or on a task of another's:
    `USER/SESSION/AGENT/BRANCH/TASK`.
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
        self._open: OrderedDict[str, Asked] = OrderedDict()

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Called by the kit for each call of the model."""
        session = _session_of(callback_context)
        conversation, asides = _apart(callback_context, llm_request)
        fields: dict[str, Any] = {
            "budget": Budget(window=self._parts(llm_request, asides)),
            "timeout": self._patience,
            **({"model": llm_request.model} if llm_request.model else {}),
        }
        try:
            messages = kept(conversation)
            instruction = llm_request.config.system_instruction
            asked = Asked(conversation, asides, messages, fields, instruction)
            self._wait_for(session, asked)
            reply = await self._conversations.of(session).assemble(messages, **fields)
        except _AWAY as error:
            _log.warning("contextengine: the model gets all contents: %s", error)
            return None
        self._wait_for(session, replace(asked, reply=reply))
        _show(llm_request, asked, reply)
        return None

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        """Called by the kit where a model's call failed: one that was too long is made once more,
        with less."""
        session = _session_of(callback_context)
        asked = self._open.get(session)
        if asked is None or asked.reply is None or not is_refusal(error):
            return None
        try:
            reply = await self._conversations.of(session).assemble_again(
                asked.messages, asked.reply, said(error), **asked.fields
            )
        except _AWAY as away:
            _log.warning("contextengine: the model is not asked again: %s", away)
            return None
        _show(llm_request, asked, reply)
        model = callback_context._invocation_context.agent.canonical_model
        answer = None
        try:
            async for response in model.generate_content_async(llm_request):
                answer = response
        except Exception as again:  # the kit raises what the first call failed with
            _log.warning("contextengine: the model failed again: %s", again)
            return None
        if answer is not None:
            await self.after_model_callback(callback_context=callback_context, llm_response=answer)
        return answer

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
            messages, reply = before.messages, kept([content])
            name_by_content(reply, messages[-1].id if messages else "")
            await self._conversations.of(session).end_turn(
                [*messages, *reply], timeout=self._patience
            )
        except _AWAY as error:
            _log.warning("contextengine: stored later: %s", error)
        return None

    def _wait_for(self, session: str, asked: Asked) -> None:
        """Remembers what the model answers to."""
        self._open[session] = asked
        if len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)

    def _parts(self, request: LlmRequest, asides: Sequence[Aside]) -> WindowBudget:
        beside = [request.config.system_instruction, *(aside.content for aside in asides)]
        parts = WindowBudget(system_prompt_text=text_of(beside))
        if self._window:
            parts.window = self._window
        for tool in request.config.tools or ():
            for function in getattr(tool, "function_declarations", None) or ():
                told = function.model_dump(mode="json", exclude_none=True)
                schema = compact_json(told)
                parts.tools.add(name=function.name or "", input_schema_json=schema)
        return parts


def _show(request: LlmRequest, asked: Asked, reply: Assembly) -> None:
    """Puts what fits into the request."""
    fits = shown(reply.items, asked.contents, asked.messages)
    request.contents = together(fits, asked.asides)
    addition = reply.response.system_prompt_addition
    request.config.system_instruction = with_addition(asked.instruction, addition)


def _apart(context: Any, request: LlmRequest) -> tuple[list[types.Content], list[Aside]]:
    """The conversation of a request, and what stands beside it."""
    invocation = context._invocation_context
    given = invocation.run_config.model_input_context if invocation.run_config else None
    task = invocation.isolation_scope is not None
    return apart(request.contents, context.session.events, given or (), task)


def _session_of(context: Any) -> str:
    """The name of the session that an agent's conversation is kept in."""
    invocation = context._invocation_context
    names = [context.session.user_id, context.session.id]
    # What runs beside others, or on a task of another agent's, sees that alone.
    runs = [one for one in (invocation.branch, invocation.isolation_scope) if one]
    root = invocation.agent.root_agent if invocation.agent is not None else None
    if runs or (root is not None and root.name != context.agent_name):
        names += [context.agent_name, *runs]
    name = "/".join(quote(one, safe="") for one in names)
    # A name of others' may be longer than one of ours.
    return name if len(name.encode()) <= MOST_NAME_BYTES else digest(*names)
