"""A model that is asked once more, with less, where its provider says that a prompt was too long.
The SDK asks a session's filter before each call, and nobody behind one that failed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agents import Model, ModelResponse

from .session import ContextengineSession


class ContextengineModel(Model):
    """An agent's model, in front of its own. The run's `call_model_input_filter` is `fit` of the
    session."""

    def __init__(self, model: Model, session: ContextengineSession) -> None:
        """model: the agent's own."""
        self._model, self._session = model, session
        self.model = getattr(model, "model", "")
        """Its name, by which the service knows the window."""

    async def close(self) -> None:
        """Called by the SDK once it needs the model no more."""
        await self._model.close()

    def get_retry_advice(self, request: Any) -> Any:
        """Called by the SDK where a run's settings say that calls are made again."""
        return self._model.get_retry_advice(request)

    async def get_response(
        self, system_instructions: str | None, input: Any, *others: Any, **named: Any
    ) -> ModelResponse:
        """Called by the SDK for each call of the model."""
        try:
            return await self._model.get_response(system_instructions, input, *others, **named)
        except Exception as error:
            less = await self._session.fit_again(error)
            if less is None:
                raise
        return await self._model.get_response(less.instructions, less.input, *others, **named)

    async def stream_response(
        self, system_instructions: str | None, input: Any, *others: Any, **named: Any
    ) -> AsyncIterator[Any]:
        """The same, where the run is streamed."""
        begun = False
        try:
            told = self._model.stream_response(system_instructions, input, *others, **named)
            async for event in told:
                begun = True
                yield event
            return
        except Exception as error:
            less = None if begun else await self._session.fit_again(error)
            if less is None:
                raise
        again = self._model.stream_response(less.instructions, less.input, *others, **named)
        async for event in again:
            yield event
