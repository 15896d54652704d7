"""A capability of Pydantic AI: before each call of the model what is new is stored, and the model
gets the context that fits instead of the whole history.

The run's history stays whole, so that what a caller keeps of it (`result.all_messages()`) is all
that was said. While the service is away the model gets that history.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic_ai import RetryModelRequest
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import InstructionPart, ModelResponse
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import RunContext

from contextengine import Assembly, AsyncClient, AsyncConversations, ContextEngineError
from contextengine.formats import FormatError
from contextengine.messages import compact_json
from contextengine.overflow import is_refusal, said
from contextengine.types import Budget, WindowBudget

from .history import read, shown

MOST_RUNS = 1_000
"""Runs of which it is remembered what the model was shown last."""

_log = logging.getLogger(__name__)
_AWAY = (ContextEngineError, FormatError)


class Contextengine(AbstractCapability[Any]):
    """Keeps an agent's conversations in the service and sends the model what fits."""

    def __init__(
        self,
        client: AsyncClient,
        *,
        agent_id: str = "pydantic-ai",
        session_id: str | Callable[[RunContext[Any]], str] = "",
        window: int | None = None,
        patience: float = 2.0,
    ) -> None:
        """client: `breaker=True` keeps a service that is away from costing each call. agent_id:
        whose sessions these are. session_id: the session, or what names it in a run; by default the
        run's `conversation_id`, which a run takes over from the history that it is given. window:
        the model's context window in tokens; by default what the service knows of the model.
        patience: seconds that a call of the model waits for the service.
        """
        self._conversations = AsyncConversations(client, agent_id)
        self._session_id = session_id
        self._window = window
        self._patience = patience
        self._shown: OrderedDict[str, Assembly] = OrderedDict()
        self._refused: dict[str, str] = {}
        """What the provider said of what was shown, by the run."""

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Called by Pydantic AI before each attempt at a model request."""
        name = self._name(ctx)
        if not name:
            return request_context
        run = ctx.run_id or name
        before, refusal = self._shown.pop(run, None), self._refused.pop(run, "")
        conversation = self._conversations.of(name)
        asked: dict[str, Any] = {
            "budget": Budget(window=self._parts(request_context)),
            "model": request_context.model.model_name,
            "timeout": self._patience,
        }
        try:
            history = read(request_context.messages)
            if before is not None and refusal:
                kept = history.kept
                reply = await conversation.assemble_again(kept, before, refusal, **asked)
            else:
                reply = await conversation.assemble(history.kept, **asked)
            messages = shown(reply.items, history)
        except _AWAY as error:
            _log.warning("contextengine: the model gets the history as it is: %s", error)
            return request_context
        self._shown[run] = reply
        if len(self._shown) > MOST_RUNS:
            self._shown.popitem(last=False)
        made = replace(request_context, messages=messages)
        if addition := reply.response.system_prompt_addition:
            told = made.model_request_parameters
            parts = [*(told.instruction_parts or ()), InstructionPart(addition, dynamic=True)]
            made = replace(made, model_request_parameters=replace(told, instruction_parts=parts))
        return made

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Called by Pydantic AI where a model request failed: one that was too long is made once
        more, with less."""
        run = ctx.run_id or self._name(ctx)
        if request_context.attempt > 1 or run not in self._shown or not is_refusal(error):
            raise error
        self._refused[run] = said(error)
        raise RetryModelRequest from error

    async def after_run(
        self, ctx: RunContext[Any], *, result: AgentRunResult[Any]
    ) -> AgentRunResult[Any]:
        """Called by Pydantic AI once a run is over: its last reply is stored."""
        name = self._name(ctx)
        self._shown.pop(ctx.run_id or name, None)
        if name:
            try:
                kept = read(result.all_messages()).kept
                await self._conversations.of(name).end_turn(kept, timeout=self._patience)
            except _AWAY as error:
                _log.warning("contextengine: stored later: %s", error)
        return result

    def _name(self, ctx: RunContext[Any]) -> str:
        """Which session the run is about. Empty: none."""
        if not self._session_id:
            return ctx.conversation_id or ""
        return self._session_id if isinstance(self._session_id, str) else self._session_id(ctx)

    def _parts(self, request: ModelRequestContext) -> WindowBudget:
        asked = request.model_request_parameters
        parts = WindowBudget()
        if self._window:
            parts.window = self._window
        parts.system_prompt_text = "\n\n".join(
            part.content for part in asked.instruction_parts or ()
        )
        for tool in (*asked.function_tools, *asked.output_tools):
            schema = compact_json(tool.parameters_json_schema)
            parts.tools.add(
                name=tool.name, description=tool.description or "", input_schema_json=schema
            )
        return parts
